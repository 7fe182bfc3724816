"""Rows 12, 29 and 36 of the fault matrix; row 27 is in tests/pages/test_server.py."""

import ast
import os
import signal
import subprocess
from pathlib import Path

import pytest

from dmlcore.experiments.studies import StudyRequest, conductor
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import Task, TaskState

ROOT = Path(__file__).resolve().parents[2]


# Row 12


def test_row_12_one_module_reads_data_in_worker_processes():
    """Its batches are a function of (seed, step) for any number of workers: tests/training/test_batch_workers.py."""
    for path in {*(ROOT / "dmlcore").rglob("*.py")} - {ROOT / "dmlcore/training/batch_workers.py"}:
        names = {
            getattr(node, "id", getattr(node, "attr", getattr(node, "arg", None)))
            for node in ast.walk(ast.parse(path.read_text()))
        }
        assert not names & {"DataLoader", "num_workers"}, path


# Row 29: the end of a server (closed terminal, service manager) ends its session; tests/jobs kills one.


@pytest.fixture
def started(monkeypatch):
    """Processes started by a test, killed at its end."""
    found = []

    class Popen(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    yield found
    for process in found:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


STARTS = {
    "training": lambda folder: launch.launch(RunSpec(), RunStore(folder)),
    "study": lambda folder: conductor.launch(StudyRequest(study="losses-digits"), RunStore(folder)),
    "download or check": lambda folder: Task(folder / "task", TaskState).start(
        ("-c", "import time; time.sleep(60)"), TaskState()
    ),
}


@pytest.mark.parametrize("kind", STARTS)
def test_row_29_what_the_server_starts_has_a_session_of_its_own(kind, tmp_path, monkeypatch, started):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    STARTS[kind](tmp_path)
    (process,) = started
    assert os.getsid(process.pid) == process.pid


# Row 36

PLAIN = {"str", "int", "float", "bool", "bytes", "None", "Path", "tuple", "Literal"}
# literals and frozen dataclasses of plain values
OURS = {"Split", "Validation", "Folds", "ProtocolRequest", "DataKey", "SplitSettings", "ImportRequest"}
THE_SAME = {"Callable", "Any", "Same"}  # module functions, and the contents of `Same`: identical objects


def cached_functions():
    for path in sorted([ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
                if any(cache in decorators for cache in ("cache_data", "cache_resource", "cached(")):
                    yield pytest.param(node, id=f"{path.relative_to(ROOT)}:{node.name}")


@pytest.mark.parametrize("function", list(cached_functions()))
def test_row_36_keys_of_caches_are_names_and_numbers_never_arrays(function):
    """Streamlit hashes only a sample of a large array, so two arrays may share an entry; arguments named _name are no
    keys.
    """
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = {ast.unparse(argument.annotation) for argument in arguments if argument.annotation is not None}
    keys = PLAIN | OURS | (THE_SAME if "Same" in types else set())
    for argument in arguments:
        if not argument.arg.startswith("_"):
            assert argument.annotation is not None, f"{argument.arg} has no type"
            words = {
                ast.unparse(node)
                for node in ast.walk(argument.annotation)
                if isinstance(node, (ast.Name, ast.Attribute))
            }
            assert words <= keys, f"{argument.arg}: {ast.unparse(argument.annotation)}"
