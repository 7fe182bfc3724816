"""Who may train now: few runs at once on each device, the others wait, first come first served.

Jobs on trained runs (evaluations, maps, ...) have a queue of their own beside that of the training runs, `DEVICE-jobs`:
they take seconds to minutes, and somebody looks at a page meanwhile.

`.queue/DEVICE` in the run store has a lock file per slot, `slot-N`, beside it the id of who took it last, and a ticket
per waiting run, named so that tickets sort by age. Whoever waits holds the lock of its run: a ticket whose run nobody
holds is void. So nobody has to be asked, and whatever is killed leaves nothing that others would wait for.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.run_directory import LOCK
from dmlcore.storage.runs import Run, RunStore

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")
LOOK = 0.2  # seconds between two looks of whoever waits
TICKET = re.compile(r"[0-9.]{20}-(?P<run>[a-z0-9][a-z0-9-]{0,63})")


@dataclass(frozen=True)
class Waiting:
    """A run in a queue: how many wait before it, for which device, and the ids of the runs that work there."""

    ahead: int
    device: Device
    at_work: tuple[str, ...]


def device_of(spec: RunSpec) -> Device:
    """Where a spec would train, told without loading torch."""
    return "cuda" if spec.device != "cpu" and gpus() else "cpu"


def gpus() -> tuple[str, ...]:
    """The GPUs that CUDA may use, as CUDA_VISIBLE_DEVICES names them; () where the driver shows none.

    As CUDA reads it, the list ends at the first name that is negative.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    present = sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))
    if not present and Path("/dev/dxg").exists():  # under WSL all go through this one
        present = ["0"]
    if named is None:
        return tuple(present)
    words = [word.strip() for word in named.split(",")]
    return tuple(word for word in itertools.takewhile(lambda word: not word.startswith("-"), words) if word)


def most_processes(spec: RunSpec) -> int:
    """Return how many processes of one run have room on this machine: one for each GPU or core that it may use."""
    return max(1, len(gpus()) if device_of(spec) == "cuda" else len(os.sched_getaffinity(0)))


def slots(device: Device) -> int:
    """Runs at work at once: one per GPU; on the CPU $DML_CPU_RUNS, or else one for two cores."""
    if device == "cuda":
        return max(1, len(gpus()))
    asked = os.environ.get("DML_CPU_RUNS", "")
    return max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)) // 2)


@contextmanager
def turn(run: Run, *, wait: bool, given_up: Callable[[], bool] = lambda: False, job: bool = False) -> Iterator[bool]:
    """Hold a slot of the device of a run whose lock this process holds; True once it may train.

    wait: False for what somebody started by hand, which begins in any case, and keeps others waiting if a slot is free.
    False where given_up() before that; it is asked a few times a second. With several GPUs the slot decides which.
    job: in the queue of the jobs, where nobody is in a hurry.
    """
    device = device_of(run.spec)
    folder = _folder(run.path.parent, device, job)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        ticket = folder / f"{time.monotonic() if job else run.state().queued:020.6f}-{run.id}"
        if wait:
            # Of a process of this run that was killed: valid again, now that we live, it would keep us waiting for us.
            for left in os.listdir(folder):
                if (match := TICKET.fullmatch(left)) and match["run"] == run.id:
                    (folder / left).unlink(missing_ok=True)
            ticket.touch()
        try:
            while not (begins := _take(folder, run, device, held, first=not wait or not _before(folder, ticket))):
                if not wait or (_hurried(run) and not job):
                    begins = True
                    break
                if given_up():
                    break
                time.sleep(LOOK)
        finally:
            ticket.unlink(missing_ok=True)
        yield begins


def hurry(run: Run) -> None:
    """Let a waiting run begin at once, beside those at work."""
    (run.path / "hurry").touch()


def withdraw_hurry(run: Run) -> None:
    """Forget that, at a resume."""
    (run.path / "hurry").unlink(missing_ok=True)


def waiting(store: RunStore, *, job: bool = False) -> dict[str, Waiting]:
    """Every run that waits for its turn, or on which a job does, by id."""
    waiting_runs: dict[str, Waiting] = {}
    for device in DEVICES:
        tickets = _tickets(_folder(store.root, device, job))
        if tickets:
            at_work = tuple(at_work_on(store, device, job=job))
            waiting_runs |= {run: Waiting(ahead, device, at_work) for ahead, run in enumerate(tickets.values())}
    return waiting_runs


def at_work_on(store: RunStore, device: Device, *, job: bool = False) -> list[str]:
    """Ids of the runs that hold a slot of the device, themselves or a job on them."""
    folder = _folder(store.root, device, job)
    held = [path for path in folder.glob("slot-*") if path.suffix == "" and locks.holder(path)]
    at_work = []
    for path in held:
        with contextlib.suppress(OSError):
            at_work.append(path.with_suffix(".run").read_text().strip())
    return list(dict.fromkeys(at_work))  # one may hold several


def _take(folder: Path, run: Run, device: Device, held: ExitStack, *, first: bool) -> bool:
    """Hold as many free slots as the run needs, if there are and we are the first who waits."""
    if not first:
        return False
    with ExitStack() as free:
        taken: list[int] = []
        for number in range(slots(device)):
            with contextlib.suppress(locks.Busy):
                free.enter_context(locks.ProcessLock(folder / f"slot-{number}", wait=0.0))
                taken.append(number)
            if len(taken) == _needed(run, device):
                break
        else:
            return False
        held.enter_context(free.pop_all())
    for number in taken:
        atomic_files.replace(folder / f"slot-{number}.run", lambda file: file.write(run.id.encode()))
    if device == "cuda" and len(gpus()) > 1 and "WORLD_SIZE" not in os.environ:  # what torchrun starts chooses itself
        # Read when torch is loaded, which comes later.
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus()[number] for number in taken)
    return True


def _needed(run: Run, device: Device) -> int:
    """Slots for all its processes: a GPU for each, or half the two cores of one."""
    number = run.state().processes
    return min(slots(device), number if device == "cuda" else (number + 1) // 2)


def _before(folder: Path, ticket: Path) -> bool:
    """Whether somebody has waited longer."""
    return any(name < ticket.name for name in _tickets(folder))


def _tickets(folder: Path) -> dict[str, str]:
    """Runs that wait here by the names of their tickets, the oldest first; void tickets are removed."""
    tickets = {}
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        if match := TICKET.fullmatch(name):
            if locks.holder(folder.parents[1] / match["run"] / LOCK):
                tickets[name] = match["run"]
            else:
                (folder / name).unlink(missing_ok=True)
    return tickets


def _hurried(run: Run) -> bool:
    return (run.path / "hurry").exists()


def _folder(root: Path, device: Device, job: bool = False) -> Path:
    return root / ".queue" / (f"{device}-jobs" if job else device)
