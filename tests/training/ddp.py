"""Training on several processes compared with one process: equality of gradients, and speed on this machine.

For every loss, every miner and every other computation on the whole batch, the script prints the relative gradient
error |difference| / |gradient| of a step on two and four processes (gloo), in float32 and float64, next to the
difference between float32 and float64 on one process. It then times steps of a convolutional network on one process
with one and with two threads, and on two processes with one thread each.

    python -m tests.training.ddp            # everything, a few minutes
    python -m tests.training.ddp --few      # the cases that the test suite checks in both precisions
    python -m tests.training.ddp --cuda     # gradients only: on several GPUs with NCCL, or on a single GPU with gloo
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.harness import command_line, machine, verdict
from dmlcore import processes
from dmlcore.training.loop import step
from tests.training import together

COUNTS = (2, 4)
GOALS = {"float32": 1e-6, "float64": 1e-12}
WORK = together.Case(
    "steps", ("model.name=conv4", "batch.classes=6", "batch.samples=8", "loss.name=multi_similarity"), kind="images"
)
STEPS = 20


def gradients(file: Path, names: list[str], device: str) -> None:
    """Compute the gradients of the named cases in every precision; rank 0 writes them to `file`."""
    results = {
        f"{case.name}|{precision}": together.gradients(case, precision, device)
        for case in together.cases()
        if case.name in names
        for precision in GOALS
    }
    if processes.rank() == 0:
        np.savez(file, allow_pickle=False, **results)


def steps(file: Path, threads: int) -> None:
    """Time training steps; rank 0 writes the wall-clock seconds and its processor seconds per step to `file`."""
    torch.set_num_threads(threads)
    state = together.made(WORK, "float32", threads)
    if processes.shares_work():
        processes.synchronise(state.model)
    for number in (1, 2):
        step(state, number)
    clock, own = time.perf_counter(), time.process_time()
    for number in range(3, 3 + STEPS):
        step(state, number)
    if processes.rank() == 0:
        np.save(file, [(time.perf_counter() - clock) / STEPS, (time.process_time() - own) / STEPS])


def compare(cases: list[together.Case], folder: Path, device: str) -> bool:
    """Print the gradient errors of all cases as a table; return True if every error is within its goal."""
    names = [case.name for case in cases]
    for count in (1, *COUNTS):
        one_card = device == "cuda" and torch.cuda.device_count() < count
        file = folder / f"{count}.npz"
        together.run_together(count, gradients, file, names, device, timeout=900, one_card=one_card)
    files = {count: np.load(folder / f"{count}.npz") for count in (1, *COUNTS)}
    print(f"\n{'':38s}{'float32':>18s}{'':>14s}{'float64':>18s}")
    print(f"{'case':38s}{'2':>9s}{'4':>9s}{'one: rounding':>14s}{'2':>9s}{'4':>9s}   processes")
    reached = True
    for case in cases:
        alone = {precision: files[1][f"{case.name}|{precision}"] for precision in GOALS}
        rounding = together.error(alone["float32"], alone["float64"])
        errors = {
            precision: [together.error(files[count][f"{case.name}|{precision}"], alone[precision]) for count in COUNTS]
            for precision in GOALS
        }
        # Batch norm amplifies rounding errors even on one process, so allow several processes twice that error.
        most = {"float32": max(GOALS["float32"], 2 * rounding), "float64": GOALS["float64"]}
        fine = all(max(errors[precision]) <= most[precision] for precision in GOALS)
        reached &= fine
        numbers = [*errors["float32"], rounding, *errors["float64"]]
        row = "".join(f"{number:{14 if i == 2 else 9}.0e}" for i, number in enumerate(numbers))
        print(f"{case.name:38s}{row}   {verdict(fine)}", flush=True)
    return reached


def scale(folder: Path) -> None:
    """Print the times per step on one process and on two processes, and their ratio."""
    seconds = {}
    for name, count, threads in (("one, 1 thread", 1, 1), ("one, 2 threads", 1, 2), ("two, 1 thread each", 2, 1)):
        together.run_together(count, steps, folder / "steps.npy", threads, timeout=900)
        seconds[name] = np.load(folder / "steps.npy")
        clock, own = seconds[name]
        print(f"{name:22s} {1e3 * clock:8.1f} ms per step, {1e3 * own:8.1f} ms of processor time of rank 0")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    note = f"  (load {load:.1f} on {cores} cores: unreliable)" if load > cores / 2 + 2 else ""
    for rival in ("one, 1 thread", "one, 2 threads"):
        ratio = seconds[rival][0] / seconds["two, 1 thread each"][0]
        print(f"two processes run {ratio:.2f} times as many steps as {rival}{note}")


if __name__ == "__main__":
    parser = command_line(__doc__)
    parser.add_argument(
        "--few", action="store_true", help="only the cases that the test suite checks in both precisions"
    )
    parser.add_argument("--cuda", action="store_true", help="on GPUs, without the timed steps")
    arguments = parser.parse_args()
    print(machine("torch"))
    with tempfile.TemporaryDirectory() as place:
        chosen = [case for case in together.cases() if case.few or not arguments.few]
        reached = compare(chosen, Path(place), "cuda" if arguments.cuda else "cpu")
        print(f"\nall equal: {verdict(reached)}\n")
        if not arguments.cuda:
            scale(Path(place))
