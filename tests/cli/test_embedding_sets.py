"""Command `python -m dmlcore import`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from dmlcore import metrics
from dmlcore.cli.main import app
from dmlcore.experiments import embedding_sets
from dmlcore.jobs import local_app
from dmlcore.storage.runs import RunStore

DIGITS = load_digits()
COUNT = 200


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", "")  # set by the command
    np.save(tmp_path / "e.npy", DIGITS.data[:COUNT].astype(np.float32))
    (tmp_path / "photos").mkdir()
    lines = ["file,digit,ink"]
    for number in range(COUNT):
        Image.fromarray((DIGITS.images[number] * 15).astype(np.uint8)).save(tmp_path / "photos" / f"{number}.png")
        lines.append(f"{number}.png,{DIGITS.target[number]},{DIGITS.data[number].sum()}")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return tmp_path


def imported(folder, *options: str):
    arguments = [str(folder / "e.npy"), "--runs", str(folder / "runs"), *options]
    return CliRunner().invoke(app, ["import", *arguments])


def test_a_file_with_labels_and_images(files):
    done = imported(
        files, "--labels", str(files / "labels.csv"), "--label", "digit", "--images", str(files / "photos"), "--json"
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    vectors = DIGITS.data[:COUNT].astype(np.float32)
    expected = metrics.retrieval(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), DIGITS.target[:COUNT])
    assert told == {
        "id": told["id"],
        "samples": COUNT,
        "classes": 10,
        "recall_at_1": expected.recall_at[1],
        "map_at_r": expected.map_at_r,
    }
    stored = embedding_sets.of_run(RunStore(files / "runs").open(told["id"]))
    assert stored.roles.image == "file"
    assert [path.name for path in stored.images] == [f"{number}.png" for number in range(COUNT)]
    assert stored.columns.column("ink").to_pylist()[0] == DIGITS.data[0].sum()


def test_labels_of_an_unknown_name_are_asked_for(files):
    done = imported(files, "--labels", str(files / "labels.csv"))
    assert done.exit_code == 0, done.output
    assert "Choose one with --label: file, digit, ink" in done.stderr


def test_guessed_labels_are_announced(files):
    (files / "labels.csv").write_text((files / "labels.csv").read_text().replace("digit", "species"))
    done = imported(files, "--labels", str(files / "labels.csv"))
    assert done.exit_code == 0, done.output
    assert "labels: column 'species' was guessed, because its 10 values repeat; choose another" in done.stderr
    assert "200 samples of 10 classes" in done.stdout
    named = imported(files, "--labels", str(files / "labels.csv"), "--label", "species")
    assert "guessed" not in named.stderr


def test_vectors_alone(files):
    told = json.loads(imported(files, "--json", "--name", "mine").stdout)
    assert (told["samples"], told["classes"], told["recall_at_1"]) == (COUNT, 0, None)
    assert RunStore(files / "runs").open(told["id"]).spec.name == "mine"


def test_mistakes_name_the_option_or_the_row(files):
    labels = str(files / "labels.csv")
    assert "--label species: there is no such column; the file has file, digit, ink" in str(
        imported(files, "--labels", labels, "--label", "species").exception
    )
    (files / "labels.csv").write_text("digit\n1\n2\n")
    failure = str(imported(files, "--labels", labels).exception)
    assert "2" in failure
    assert "200" in failure
    assert not list((files / "runs").glob("*")) if (files / "runs").exists() else True


def test_training_takes_the_id(files):
    told = json.loads(imported(files, "--labels", str(files / "labels.csv"), "--label", "digit", "--json").stdout)
    options = ["schedule.steps=4", "schedule.validate_every=4", "device=cpu", "--runs", str(files / "runs")]
    done = CliRunner().invoke(app, ["train", told["id"], *options])
    assert done.exit_code == 0, done.output
    run = RunStore(files / "runs").open(done.stdout.split()[0])
    assert run.spec.data.root == str(files / "runs" / told["id"] / "set")
    assert run.spec.batch.classes <= 5


def test_the_map_can_be_opened_at_once(files, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(local_app, "ensure", lambda root: local_app.LocalApp(8509))
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    done = imported(files, "--open", "--json")
    assert opened == [f"http://127.0.0.1:8509/explore?run={json.loads(done.stdout)['id']}"]
    assert opened[0] in done.stderr


def test_a_folder_of_photographs(files):
    (files / "photos" / "bad.png").write_bytes(b"damaged")
    command = ["embed", str(files / "photos"), "--runs", str(files / "runs"), "--json"]
    done = CliRunner().invoke(app, [*command, "--labels", str(files / "labels.csv"), "--label", "digit"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["samples"], told["classes"]) == (COUNT, 10)
    assert told["recall_at_1"] > 0.3
    assert f"embedding the photographs: {COUNT} of {COUNT}" in done.stderr
    done = CliRunner().invoke(app, ["embed", str(files / "runs"), "--runs", str(files / "runs")])
    assert done.exit_code == 1
    assert "contains no photographs" in str(done.exception or done.output)


def test_absolute_image_paths_need_no_folder(files):
    lines = [f"{files / 'photos' / f'{row}.png'},{DIGITS.target[row]}" for row in range(COUNT)]
    (files / "absolute.csv").write_text("\n".join(["image,label", *lines]))
    done = imported(files, "--labels", str(files / "absolute.csv"), "--json")
    assert done.exit_code == 0, done.output
    stored = embedding_sets.of_run(RunStore(files / "runs").open(json.loads(done.stdout)["id"]))
    assert stored.images[3] == files / "photos" / "3.png"
