"""Read-only check that a machine meets the requirements of the lab; suggests remedies."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from dmlcore import data
from dmlcore.data.files.locate import cache_folder, search_folders
from dmlcore.jobs import device_queue
from dmlcore.storage import leftovers, locks
from dmlcore.storage.runs import RunStore

Verdict = Literal["good", "note", "fault"]
GB = 1e9
# minimum free memory in bytes, for one training run in addition to the app, and minimum free disk space in bytes, for
# checkpoints and caches
MIN_MEMORY, MIN_SPACE = 2 * GB, 5 * GB
PORT = 8501
MAX_NAMED = 3  # maximum number of runs listed in a diagnosis
MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True)
class Diagnosis:
    """Result of one check.

    Attributes:
        subject: Name of the checked component, such as "memory".
        verdict: "good", "note" (something optional is missing), or "fault" (the lab will fail).
        what: Description of the state found.
        remedy: Suggested action, or "".
    """

    subject: str
    verdict: Verdict
    what: str
    remedy: str = ""


def examine(store: RunStore, port: int = PORT) -> Iterator[Diagnosis]:
    """Check the machine, its GPUs, packages, run store, data, weights and a port; yield one diagnosis per finding.

    If a check raises an exception, this is reported as a diagnosis and the other checks continue.
    """
    looks: tuple[Callable[[], Iterator[Diagnosis]], ...] = (
        _machine,
        _settings,
        _packages,
        _gpu,
        lambda: _store(store),
        _cache,
        _data,
        _weights,
        lambda: _port(port),
    )
    for look in looks:
        try:
            yield from look()
        except Exception as error:  # a failed check must not prevent the others
            yield Diagnosis(
                "doctor", "fault", f"a check failed: {type(error).__name__}: {error}", "Please report this."
            )


def _machine() -> Iterator[Diagnosis]:
    version = ".".join(map(str, sys.version_info[:3]))
    cores = len(os.sched_getaffinity(0))
    yield Diagnosis(
        "machine", "good", f"Python {version}, {cores} cores, {device_queue.count_slots('cpu')} runs at once"
    )
    lines = dict(line.split(":") for line in MEMORY.read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    if free < MIN_MEMORY:
        yield Diagnosis(
            "memory",
            "fault",
            f"{free / GB:.1f} GB are free",
            f"Close other programs: the app and one training run need {MIN_MEMORY / GB:.0f} GB.",
        )
    else:
        yield Diagnosis("memory", "good", f"{free / GB:.1f} GB are free")


def _settings() -> Iterator[Diagnosis]:
    """Report environment variables with invalid values, which are otherwise ignored without a message."""
    for name in ("DML_CPU_RUNS", "DML_FIELD_WORKERS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value and not (value.isdecimal() and int(value)):
            yield Diagnosis("settings", "fault", f"{name} is {value!r}", f"Set {name} to a whole number, or unset it.")
    token = os.environ.get("DML_TOKEN", "")
    if token and token != "proxy" and len(token) < 16:
        yield Diagnosis(
            "settings", "fault", "DML_TOKEN is shorter than 16 characters", "Generate one: openssl rand -hex 24"
        )


def _packages() -> Iterator[Diagnosis]:
    """Check the versions of all required packages; a missing package of an optional extra is only a note."""
    try:
        wanted = [Requirement(text) for text in metadata.requires("dml-lab") or ()]
    except metadata.PackageNotFoundError:
        yield Diagnosis("packages", "note", "the library is not installed", "Run make run once, or pip install -e .")
        return
    well = 0
    for requirement in wanted:
        extra = requirement.marker is not None and "extra" in str(requirement.marker)
        if requirement.name == "dml-lab":
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            verdict: Verdict = "note" if extra else "fault"
            yield Diagnosis("packages", verdict, f"{requirement.name} is missing", _install(requirement))
            continue
        if requirement.specifier.contains(version, prereleases=True):
            well += 1
        else:
            other = f"{requirement.name} is {version}, tested with {requirement.specifier}"
            yield Diagnosis("packages", "note", other, _install(requirement))
    yield Diagnosis("packages", "good", f"{well} packages have tested versions")


def _install(requirement: Requirement) -> str:
    return f"pip install '{requirement.name}{requirement.specifier}'"


def _gpu() -> Iterator[Diagnosis]:
    cards = device_queue.visible_gpus()
    import torch  # imported late: the import takes seconds, and earlier diagnoses should be displayed meanwhile

    if not cards and not torch.cuda.is_available():
        yield Diagnosis("GPU", "note", "none found; runs train on the CPU")
    elif not torch.cuda.is_available():
        build = "has no CUDA" if torch.version.cuda is None else f"for CUDA {torch.version.cuda} cannot use it"
        yield Diagnosis(
            "GPU",
            "fault",
            f"{len(cards)} found, but torch {torch.__version__} {build}",
            "Install the torch build for your driver (pytorch.org, Get Started), or set device=cpu in specs.",
        )
    else:
        for index in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(index)
            free, total = torch.cuda.mem_get_info(index)
            room = f"{free / GB:.0f} of {total / GB:.0f} GB free"
            yield Diagnosis("GPU", "good", f"{card.name}, {room}, torch {torch.__version__}")


def _store(store: RunStore) -> Iterator[Diagnosis]:
    if not store.root.exists():
        yield Diagnosis("store", "note", f"{store.root} does not exist yet", "The first run creates it.")
        return
    try:
        with tempfile.TemporaryDirectory(dir=store.root, prefix=leftovers.NEW) as folder:
            with locks.ProcessLock(Path(folder) / "lock", wait=0.0):
                (Path(folder) / "probe.tmp").touch()
            (Path(folder) / "probe.tmp").replace(Path(folder) / "probe")
    except (OSError, locks.Busy) as error:
        remedy = (
            "Make the folder writable for this account, or set DML_RUNS to another one; it must support file locks."
        )
        yield Diagnosis("store", "fault", f"{store.root} cannot be written to ({error})", remedy)
    runs = store.list()
    yield _space("store", store.root, f"{len(runs)} runs in {store.root}")
    for run_id, reason in store.unreadable():
        yield Diagnosis("store", "note", f"{run_id} is unreadable: {reason}", "Restore it from a copy, or delete it.")
    if lost := [run.id for run in runs if run.status() == "lost"]:
        named = ", ".join(lost[:MAX_NAMED])
        yield Diagnosis(
            "store", "note", f"{len(lost)} interrupted, including {named}", "Run dml recover to resume them."
        )


def _cache() -> Iterator[Diagnosis]:
    folder = cache_folder()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK):
        yield Diagnosis(
            "cache", "fault", f"{there} cannot be written to", "Set DML_CACHE to a folder that you can write to."
        )
    else:
        yield _space("cache", there, str(folder))


def _space(subject: str, folder: Path, what: str) -> Diagnosis:
    free = shutil.disk_usage(folder).free
    summary = f"{what}, {free / GB:.0f} GB free"
    if free < MIN_SPACE:
        return Diagnosis(subject, "fault", summary, "Free some space: dml clean lists what can be removed.")
    return Diagnosis(subject, "good", summary)


def _data() -> Iterator[Diagnosis]:
    with_files = [name for name in data.names() if data.describe(name).needs_files and data.describe(name).folder]
    present = [name for name in with_files if data.available(name) is not None]
    if present:
        yield Diagnosis("data", "good", f"found: {', '.join(present)}")
    if absent := [name for name in with_files if name not in present]:
        where = f"Unpack the official archives in {search_folders()[0]}; the Data page says where to get each."
        yield Diagnosis("data", "note", f"not found: {', '.join(absent)}", where)


def _weights() -> Iterator[Diagnosis]:
    from dmlcore.models import pretrained  # imported late, as it imports torch

    files = pretrained.CHECKPOINTS.values()
    present = [file.file for file in files if pretrained.find(file) is not None]
    summary = f"{len(present)} of {len(files)} files of pretrained weights found"
    missing = "" if len(present) == len(files) else "Runs download missing files on demand."
    yield Diagnosis("weights", "good" if not missing else "note", summary, missing)


def _port(port: int) -> Iterator[Diagnosis]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            remedy = f"Stop the program that uses it, or choose another port: dml serve --port {port + 1}"
            yield Diagnosis("port", "note", f"{port} is in use ({error.strerror})", remedy)
        else:
            yield Diagnosis("port", "good", f"{port} is free")
