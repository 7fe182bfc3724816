"""Queue of each device: a limited number of runs execute at a time, and the others wait in order of arrival.

Jobs on trained runs (evaluations, maps, ...) have a separate queue, `DEVICE-jobs`, because they take only seconds to
minutes and a user is usually waiting for the result.

The directory `.queue/DEVICE` of the run store holds one lock file per slot, `slot-N`; the file `slot-N.run` with the id
of the run that last took the slot; and one ticket per waiting run, with a name that sorts by age. A waiting process
holds the lock of its run, so the ticket of a run that is not locked is void. The queue therefore needs no coordinator,
and a killed process does not block others.
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
POLL_INTERVAL = 0.2  # seconds between two attempts to get a slot
TICKET = re.compile(r"[0-9.]{20}-(?P<run>[a-z0-9][a-z0-9-]{0,63})")


@dataclass(frozen=True)
class QueuePosition:
    """Position of a waiting run in the queue of its device.

    Attributes:
        ahead: Number of runs that wait before it.
        device: Device that the run waits for.
        running: Ids of the runs that execute on this device now.
    """

    ahead: int
    device: Device
    running: tuple[str, ...]


def device_of(spec: RunSpec) -> Device:
    """Return the device on which a run with this spec would train, without importing torch."""
    return "cuda" if spec.device != "cpu" and visible_gpus() else "cpu"


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that CUDA may use, as named in CUDA_VISIBLE_DEVICES; () if there are none.

    As in CUDA, the list ends at the first negative entry.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    present = sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))
    if not present and Path("/dev/dxg").exists():  # under WSL, this single device represents all GPUs
        present = ["0"]
    if named is None:
        return tuple(present)
    words = [word.strip() for word in named.split(",")]
    return tuple(word for word in itertools.takewhile(lambda word: not word.startswith("-"), words) if word)


def max_processes(spec: RunSpec) -> int:
    """Return the maximum number of processes of one run on this machine: its number of available GPUs or CPU cores."""
    return max(1, len(visible_gpus()) if device_of(spec) == "cuda" else len(os.sched_getaffinity(0)))


def count_slots(device: Device) -> int:
    """Return how many runs may execute at a time: one per GPU; on the CPU, $DML_CPU_RUNS or one per two cores."""
    if device == "cuda":
        return max(1, len(visible_gpus()))
    asked = os.environ.get("DML_CPU_RUNS", "")
    return max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)) // 2)


@contextmanager
def acquire_slot(
    run: Run, *, wait: bool, given_up: Callable[[], bool] = lambda: False, job: bool = False
) -> Iterator[bool]:
    """Acquire a slot of the device that a run uses, within this context; the caller must hold the lock of the run.

    With several GPUs, the slot determines which GPU the run uses.

    Args:
        run: The run.
        wait: Wait in the queue. False for a run that a user started in a terminal: it starts immediately, and occupies
            a slot if one is free.
        given_up: Predicate that is polled a few times per second while waiting; True ends the wait.
        job: Use the queue of jobs, where `start_now` has no effect.

    Yields:
        True once the run may start, False if the wait was given up.
    """
    device = device_of(run.spec)
    folder = _folder(run.path.parent, device, job)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        ticket = folder / f"{time.monotonic() if job else run.state().queued:020.6f}-{run.id}"
        if wait:
            # Remove tickets left by killed processes of this run. Now that the run is locked again, these tickets would
            # count as valid and block it.
            for left in os.listdir(folder):
                if (match := TICKET.fullmatch(left)) and match["run"] == run.id:
                    (folder / left).unlink(missing_ok=True)
            ticket.touch()
        try:
            while not (
                begins := _take_slots(folder, run, device, held, first=not wait or not _has_predecessor(folder, ticket))
            ):
                if not wait or (_is_start_requested(run) and not job):
                    begins = True
                    break
                if given_up():
                    break
                time.sleep(POLL_INTERVAL)
        finally:
            ticket.unlink(missing_ok=True)
        yield begins


def start_now(run: Run) -> None:
    """Let a waiting run start immediately, even if no slot of its device is free."""
    (run.path / "hurry").touch()


def clear_start_now(run: Run) -> None:
    """Withdraw the request made by `start_now`; called when a run is resumed."""
    (run.path / "hurry").unlink(missing_ok=True)


def waiting_runs(store: RunStore, *, job: bool = False) -> dict[str, QueuePosition]:
    """Return the queue position of each waiting run by run id; with `job`, of each run on which a job is waiting."""
    positions: dict[str, QueuePosition] = {}
    for device in DEVICES:
        tickets = _valid_tickets(_folder(store.root, device, job))
        if tickets:
            running = tuple(running_on(store, device, job=job))
            positions |= {run: QueuePosition(ahead, device, running) for ahead, run in enumerate(tickets.values())}
    return positions


def running_on(store: RunStore, device: Device, *, job: bool = False) -> list[str]:
    """Return the ids of the runs that hold a slot of the device for training or, with `job`, for a job."""
    folder = _folder(store.root, device, job)
    held = [path for path in folder.glob("slot-*") if path.suffix == "" and locks.holder(path)]
    running = []
    for path in held:
        with contextlib.suppress(OSError):
            running.append(path.with_suffix(".run").read_text().strip())
    return list(dict.fromkeys(running))  # a run that holds several slots occurs several times


def _take_slots(folder: Path, run: Run, device: Device, held: ExitStack, *, first: bool) -> bool:
    """Take the slots that the run needs, enter their locks into `held`, and return True.

    Returns False without taking any if too few slots are free, or if `first` is False because another run is ahead in
    the queue.
    """
    if not first:
        return False
    with ExitStack() as free:
        taken: list[int] = []
        for number in range(count_slots(device)):
            with contextlib.suppress(locks.Busy):
                free.enter_context(locks.ProcessLock(folder / f"slot-{number}", wait=0.0))
                taken.append(number)
            if len(taken) == _slots_needed(run, device):
                break
        else:
            return False
        held.enter_context(free.pop_all())
    for number in taken:
        atomic_files.replace(folder / f"slot-{number}.run", lambda file: file.write(run.id.encode()))
    # under torchrun, each process selects its GPU by its local rank instead
    if device == "cuda" and len(visible_gpus()) > 1 and "WORLD_SIZE" not in os.environ:
        # CUDA reads this variable when torch is imported, which happens later.
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible_gpus()[number] for number in taken)
    return True


def _slots_needed(run: Run, device: Device) -> int:
    """Return the number of slots that a run needs: one per process on GPUs, one per two processes on the CPU."""
    number = run.state().processes
    return min(count_slots(device), number if device == "cuda" else (number + 1) // 2)


def _has_predecessor(folder: Path, ticket: Path) -> bool:
    """Return True if a valid ticket in the queue is older than `ticket`."""
    return any(name < ticket.name for name in _valid_tickets(folder))


def _valid_tickets(folder: Path) -> dict[str, str]:
    """Return the ids of the waiting runs by ticket name, oldest first; remove void tickets."""
    tickets = {}
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        if match := TICKET.fullmatch(name):
            if locks.holder(folder.parents[1] / match["run"] / LOCK):
                tickets[name] = match["run"]
            else:
                (folder / name).unlink(missing_ok=True)
    return tickets


def _is_start_requested(run: Run) -> bool:
    return (run.path / "hurry").exists()


def _folder(root: Path, device: Device, job: bool = False) -> Path:
    return root / ".queue" / (f"{device}-jobs" if job else device)
