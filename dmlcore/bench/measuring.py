"""Clock, repetitions and memory of measurements on a device, and the printed table rows."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def is_small() -> bool:
    """Return True if the command line has `--small`: sizes for trying a part without a GPU."""
    return "--small" in sys.argv[1:]


def idle() -> float:
    """Wait until the device is idle; return the current time in seconds."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(call: Callable[[], object], repeats: int = 3, *, before: Callable[[], object] = lambda: None) -> float:
    """Return the median seconds of `call`, from an idle device to an idle device, after one untimed call.

    `before` is called before each repetition and not timed.
    """
    call()
    times = []
    for _ in range(repeats):
        before()
        began = idle()
        call()
        times.append(idle() - began)
    return statistics.median(times)


def peak_mebibytes(call: Callable[[], object]) -> float:
    """Return the peak memory in MiB that `call` allocates on the GPU beyond the current memory; NaN on a CPU."""
    if DEVICE.type != "cuda":
        return float("nan")
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def row(*cells: object) -> None:
    """Print one row of a Markdown table at once."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str) -> None:
    """Print the heading of a Markdown table; columns after the first are aligned to the right."""
    print()
    row(*cells)
    print("|", "|".join(["---", *["--:"] * (len(cells) - 1)]), "|", sep="", flush=True)
