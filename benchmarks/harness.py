"""Shared tools for the benchmarks: command line, alternating measurements, time and memory. See also `browser`.

A benchmark runs as `python -m benchmarks.NAME` from the root of the project, and prints the ratio to a stated baseline,
which its code calls rival.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Return an argument parser whose help text is `description`, the docstring of the script."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def machine(*packages: str) -> str:
    """Return one line with the processor, number of cores, current load and the versions of `packages`."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    versions = [f"{name} {version(name)}" for name in packages]
    processor = names[0] if names else platform.processor() or platform.machine()
    return ", ".join([processor, f"{os.cpu_count()} cores", f"load {os.getloadavg()[0]:.1f}", *versions])


def turns(
    rivals: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    warm: int = 1,
    twice: bool = False,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Time several functions in alternation; return the milliseconds of each round by function name.

    Args:
        rivals: Functions to time, by name.
        rounds: Number of timed rounds.
        warm: Number of untimed rounds before the timed ones.
        twice: True to call each function once untimed before each timed call, because the previous function has evicted
            its data from the processor caches.
        clock: Function that returns the time in seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(-warm, rounds):
        for name, call in rivals.items():
            if twice:
                call()
            began = clock()
            call()
            if turn >= 0:
                times[name].append(1e3 * (clock() - began))
    return times


def ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the ratios of `one` to `other`, computed round by round and sorted in increasing order."""
    return sorted(a / b for a, b in zip(one, other, strict=True))


def verdict(reached: bool) -> str:
    """Return "reached" if a goal is reached, otherwise "MISSED"."""
    return "reached" if reached else "MISSED"


def report(name: str, times: Sequence[float], more: str = "") -> float:
    """Print the median, 95th percentile and maximum of `times` in milliseconds; return the median."""
    median, p95 = np.percentile(times, [50, 95])
    spread = f"median {median:7.1f} ms   p95 {p95:7.1f} ms   worst {max(times):7.1f} ms of {len(times)}"
    print(f"{name:52s} {spread}   {more}".rstrip(), flush=True)
    return float(median)


def per_second(times: Sequence[float]) -> float:
    """Return the events per second, given the milliseconds between consecutive events."""
    return 1e3 / statistics.fmean(times)


def memory(key: str = "VmRSS", pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes: current (VmRSS), or the peak since `reset_peak` (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))


def reset_peak() -> int:
    """Reset the recorded memory peak of this process; return its current memory in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def processor_seconds(pid: int) -> float:
    """Return the user and system time that a process has used so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started_by(process: int, but: int = 0) -> set[int]:
    """Return the IDs of all descendants of a process, excluding the process `but` and its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    ours, newer = {process}, {process}
    while newer:
        newer = {pid for pid, parent in parents.items() if parent in ours and pid not in ours and pid != but}
        ours |= newer
    return ours - {process}


def seconds_of(processes: Iterable[int]) -> float:
    """Return the total processor time in seconds of those processes that still exist."""
    seconds = 0.0
    for pid in processes:
        with contextlib.suppress(OSError):
            seconds += processor_seconds(pid)
    return seconds
