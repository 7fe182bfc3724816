"""Definitions shared by all commands: options, errors, access to the run store, and handling of signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.storage.task import TaskState

Runs = Annotated[Path | None, typer.Option("--runs", help="Folder of the runs [default: $DML_RUNS or ./runs]")]
Backend = Annotated[
    str,
    typer.Option("--backend", help="local, ray[:ADDRESS] or slurm[:PARTITION]; see docs/cluster.md [default: local]"),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id, as printed by train and list")]


ALIASES = {"photographs": "folder"}  # further names of shipped specs
FOLDER = "folder"  # name of the spec and of the data set that stand for a user's own folder of images


class CommandError(Exception):
    """Error whose message is printed to the user; `code` is the exit status of the command."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def say(text: str) -> None:
    """Print a message immediately."""
    print(text, flush=True)


def warn(text: str) -> None:
    """Print a message to standard error immediately."""
    print(text, file=sys.stderr, flush=True)


def exit_unless_done(state: TaskState | None) -> None:
    """Exit with the message of a task that is not done: with status 130 if it was stopped, otherwise 1."""
    if state and state.state != "done":
        warn(state.message)
        raise typer.Exit(130 if state.state == "cancelled" else 1)


def open_store(root: Path | None) -> RunStore:
    """Return the run store in directory `root`, or the default store if it is None.

    Also sets $DML_RUNS to its path, so that a spec can take its initial weights from another run in this store.
    """
    store = RunStore(root)
    os.environ["DML_RUNS"] = str(store.root)
    return store


def parse_integers(option: str, text: str) -> tuple[int, ...]:
    """Parse integers separated by commas; raises CommandError, with `option` in the message, for other text."""
    try:
        return tuple(int(word) for word in text.split(",") if word)
    except ValueError:
        raise CommandError(f"{option}: give whole numbers separated by commas, got {text!r}") from None


def stop_on_signal() -> Callable[[], bool]:
    """Install handlers for SIGTERM and Ctrl-C; return a function that returns True once either was received.

    A second Ctrl-C raises KeyboardInterrupt.
    """
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGINT, note)
    return lambda: bool(asked)


def _embedding_set(store: RunStore, name: str) -> Run | None:
    try:
        run = store.open(name)
        return run if run.is_embedding_set else None
    except RunError:
        return None


def read_spec(name: str, store: RunStore | None = None) -> RunSpec:
    """Return the spec for the SPEC argument of a command.

    Args:
        name: Name of a shipped spec, path of a .toml file, or folder of images with one subfolder per class. A shipped
            name takes precedence over a folder with that name, unless the folder is written with a slash.
        store: Run store; if given, `name` may also be the id of an embedding set in it.

    Raises:
        CommandError: The file cannot be read.
        SpecError: The spec is invalid.
    """
    if store is not None and (embedding_set := _embedding_set(store, name)):
        from dmlcore.experiments.embedding_sets import training_spec  # imported late: it imports torch

        return training_spec(embedding_set)
    path = Path(name)
    if not path.exists():
        name = ALIASES.get(name, name)
    if path.is_dir() and (os.sep in name or not (SPECS / f"{name}.toml").is_file()):
        root = str(path.absolute())
        folder = read_spec(FOLDER)
        return folder.model_copy(update={"data": folder.data.model_copy(update={"root": root})})
    if path.suffix != ".toml":
        path = SPECS / f"{name}.toml"
    try:
        return RunSpec.from_toml(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(preset.stem for preset in SPECS.glob("*.toml")))
        raise CommandError(
            f"{name}: cannot be read ({error}); give a SPEC.toml, a folder of class folders or one of {known}"
        ) from None
    except SpecError as error:
        raise SpecError(f"{path}:\n{error}") from None
