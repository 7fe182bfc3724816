"""Imports of embedding sets: images from a zip, hostile archives, and imports in the background."""

import os
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError
from dmlcore.experiments import embedding_sets, imports
from dmlcore.experiments.imports import ImportRequest
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import BUSY, JobError
from tests.cli.here import here
from tests.data.embedding_sets.samples import vectors
from tests.started import until

pytestmark = pytest.mark.processes

ROWS = 12


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_tasks: None) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def request_(tmp_path: Path) -> ImportRequest:
    """Request for vectors, labels and a zip of images in a folder of its own."""
    np.save(tmp_path / "e.npy", vectors(rows=ROWS))
    lines = "".join(f"{row}.png,{'ab'[row % 2]}\n" for row in range(ROWS))
    (tmp_path / "labels.csv").write_text("file,label\n" + lines)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as packed:
        for row in range(ROWS):
            Image.new("RGB", (8, 8), (20 * row, 0, 0)).save(tmp_path / "one.png")
            packed.write(tmp_path / "one.png", f"photos/{row}.png")
    names = {"file": "e.npy", "labels": "labels.csv", "images": "photos.zip"}
    return ImportRequest(
        **{key: str(tmp_path / name) for key, name in names.items()}, label="label", image="file", name="mine"
    )


def is_empty(folder: Path) -> bool:
    return not folder.exists() or not [path for path in folder.iterdir() if not path.name.startswith(".")]


def leftovers() -> list[Path]:
    return list(imports._scratch().iterdir())


def test_images_of_a_zip_are_copied_into_the_set(store: RunStore, request_: ImportRequest) -> None:
    run = imports.create(store, request_)
    os.remove(request_.images)
    made = embedding_sets.of_run(run)
    assert made.class_names == ("a", "b")
    assert run.spec.name == "mine"
    paths = list(made.images)
    assert len(paths) == ROWS
    assert all(Path(path).is_relative_to(run.path) and Path(path).is_file() for path in paths)
    assert leftovers() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"../../evil.png": b"1"}, "leads outside the folder"),
        ({"a.png": b"0" * 10**8}, "unpacks to more than"),
        ({"0.png": b"1"}, "11 images are missing in"),
        (b"PK\x03\x04 damaged", "cannot be unpacked"),
    ],
)
def test_hostile_archives_store_nothing(
    store: RunStore, request_: ImportRequest, content: dict[str, bytes] | bytes, message: str
) -> None:
    archive = Path(request_.images)
    if isinstance(content, bytes):
        archive.write_bytes(content)
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, value in content.items():
                packed.writestr(name, value)
    with pytest.raises(DataError, match=message):
        imports.create(store, request_)
    assert is_empty(store.root)
    assert leftovers() == []
    assert not list(store.root.parent.rglob("evil.png"))


def test_a_file_that_is_no_zip_is_refused(store: RunStore, request_: ImportRequest) -> None:
    with pytest.raises(DataError, match=r"labels.csv is neither a folder nor a .zip file"):
        imports.create(store, request_.model_copy(update={"images": request_.labels}))


def wait(task: imports.Import) -> imports.ImportState:
    until(lambda: task.state() and task.state().state not in BUSY and not task.is_alive(), task.log_tail)
    state = task.state()
    return state


def test_a_background_import_names_its_run_and_removes_the_uploads(store: RunStore, request_: ImportRequest) -> None:
    task = imports.new_import()
    task.files.mkdir()
    task.begin(request_, store)
    with pytest.raises(JobError):
        task.begin(request_, store)
    state = wait(task)
    assert (state.state, state.message[:24]) == ("done", "12 samples of 2 classes;")
    assert store.open(state.run).is_embedding_set
    assert not task.files.exists()
    task.remove()
    assert leftovers() == []


def test_a_failed_background_import_keeps_the_message_and_the_uploads(store: RunStore, request_: ImportRequest) -> None:
    task = imports.new_import()
    task.files.mkdir()
    task.begin(request_.model_copy(update={"id": "label"}), store)
    state = wait(task)
    assert state.state == "failed"
    assert "rows 1 and 3 both have the id 'a'; make ids unique" in state.message
    assert is_empty(store.root)
    assert task.files.is_dir()


def test_a_forged_request_is_refused(store: RunStore) -> None:
    task = imports.new_import()
    (task.path / imports.REQUEST).write_text('{"file": "e.npy", "command": "rm"}')
    with pytest.raises(DataError, match="holds no request for an import"):
        task.request()


def test_unused_folders_are_removed_after_a_day(store: RunStore) -> None:
    old, recent = imports.new_import(), imports.new_import()
    then = time.time() - imports.LIFETIME - 1
    os.utime(old.path, (then, then))
    imports.new_import()
    assert (old.path.exists(), recent.path.exists()) == (False, True)


def test_the_shipped_example_is_imported_by_the_command_of_the_readme(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    line = next(line for line in readme.splitlines() if "dml import" in line)
    ended = here(*line.split()[1:], "--runs", str(tmp_path / "runs"))
    assert ended.returncode == 0, ended.stderr
    assert "500 samples of 10 classes; MAP@R" in ended.stdout
