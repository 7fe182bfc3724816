import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlcore.cli import own_folder
from dmlcore.cli.options import read_spec
from dmlcore.spec import RunSpec, keys
from dmlcore.storage.runs import RunStore
from tests.cli.here import here
from tests.data import layouts
from tests.started import run_python

REPOSITORY = Path(__file__).parents[2]


DML = ("-m", "dmlcore")


def dml(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *DML, *arguments]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_train_list_evaluate_resume(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(RunSpec(name="short").with_overrides(["model.hidden=[16]"]).to_toml())
    trained = dml("train", "short.toml", "schedule.steps=12", "loss.m=0.3", "--runs", "store", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    run_id = trained.stdout.strip()
    run = RunStore(tmp_path / "store").open(run_id)
    assert run.spec.loss.parameters == {"m": 0.3}
    assert "done: test MAP@R" in trained.stderr
    assert "done: test MAP@R" in "\n".join(run.log_tail())
    listed = here("list", "--runs", str(tmp_path / "store"))
    assert run_id in listed.stdout
    assert "done" in listed.stdout
    evaluated = run_python(*DML, "evaluate", run_id, "--runs", str(tmp_path / "store"))
    assert evaluated.returncode == 0, evaluated.stderr
    assert evaluated.stdout.startswith(f"{run_id}: test MAP@R ")
    again = run_python(*DML, "resume", run_id, "--runs", str(tmp_path / "store"))
    assert again.returncode == 1
    assert again.stderr == f"error: {run_id} is finished; there is nothing left to resume\n"


def test_a_folder_of_few_classes_is_trained_and_forked_by_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    folder, runs = tmp_path / "own", ("--runs", str(tmp_path / "runs"))
    layouts.class_folders(folder, names=("ant", "bee", "cat", "dog", "elk"))
    (folder / "ant" / "3.jpg").write_bytes(b"no image")
    (folder / "bee" / "notes.txt").touch()
    short = ("model.name=conv4_32", "data.image_size=16", "schedule.steps=1", "data.damaged=skip")
    trained = run_python(*DML, "train", str(folder), *short, *runs)
    assert trained.returncode == 0, trained.stderr
    assert "note: 1 file was skipped: 1 .txt (bee/notes.txt)" in trained.stderr
    assert "settings adapted to" in trained.stderr
    assert "1 of 40 images cannot be decoded and are left out: ant/3.jpg" in trained.stderr
    run = RunStore(tmp_path / "runs").open(trained.stdout.strip())
    assert (run.spec.data.root, run.spec.data.split, run.spec.batch.classes) == (str(folder), "samples", 5)
    forked = run_python(*DML, "fork", run.id, "--leave-out", "elk", "--more", "1", "batch.classes=4", *runs)
    assert forked.returncode == 0, forked.stderr
    assert RunStore(tmp_path / "runs").open(forked.stdout.strip()).spec.fork.leave_out == (4,)


def test_a_folder_and_the_spec_for_folders_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    own = layouts.class_folders(tmp_path / "digits", names="abcdefghijklmnopqrstuvwx", each=2)
    by_folder = own_folder.fit_to_folder(read_spec("./digits"), [])
    assert by_folder == own_folder.fit_to_folder(read_spec("folder"), [f"data.root={own}"])
    assert (by_folder.data.split, by_folder.batch.classes) == ("classes", 9)
    assert "batch.classes=9" in capsys.readouterr().err
    assert own_folder.fit_to_folder(read_spec("./digits"), ["batch.classes=3"]).batch.classes == 3
    assert read_spec("digits").data.name == "digits"  # the name of a shipped spec
    assert read_spec("photographs") == read_spec("folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "digits", "schedule.step=1"), "schedule.step: unknown key; did you mean steps?"),
        (
            ("train", "nothing"),
            "give a SPEC.toml, a folder of class folders or one of birds, cifar100, cub, cub-tuned, digits, ",
        ),
        (("resume", "../x"), "no run '../x'"),
        (("evaluate", "nothing"), "no run 'nothing'"),
        (("bench", "nothing"), "unknown benchmark 'nothing'"),
        (("unpack", "/nothing.tar.gz", "x"), "nothing.tar.gz"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    end = ["--runs", str(tmp_path)] if arguments[0] in ("train", "resume", "evaluate") else []
    found = here(*arguments, *end)
    assert found.returncode == 1
    assert message in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_failed_training_exits_1_with_its_reason(tmp_path: Path) -> None:
    found = run_python(*DML, "train", "digits", "batch.classes=11", "--runs", str(tmp_path))
    assert found.returncode == 1
    assert "a batch needs 11 classes" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("override", "reason"),
    [("loss.name=no_such_loss", "no_such_loss"), ("loss.q=1", "q"), ("data.root=/no/such/folder", "/no/such/folder")],
)
def test_an_unusable_spec_leaves_no_run_behind(tmp_path: Path, override: str, reason: str) -> None:
    said = here("train", "cifar100", override, "--runs", str(tmp_path / "runs"))
    assert (said.returncode, said.stdout) == (1, "")
    assert reason in said.stderr
    assert "Traceback" not in said.stderr
    assert not list((tmp_path / "runs").glob("*"))


def test_help_lists_every_key() -> None:
    text = here("train", "--help").stdout
    assert all(f"{key}: " in text for key in keys())


def test_bench_lists_the_scripts() -> None:
    assert "specs" in here("bench").stdout
