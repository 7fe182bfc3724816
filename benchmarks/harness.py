"""Shared tools for the benchmarks: command line, alternating measurements, time and memory, servers and a browser.

A benchmark runs as `python -m benchmarks.NAME` from the root of the project, and prints the ratio to a stated baseline,
which its code calls rival.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# app with one slider and one number, the minimum work of a Streamlit page
EMPTY_RERUN = ROOT / "benchmarks" / "empty_rerun" / "app.py"
CHUNK = 100_000  # points that are drawn at a time
START = 300.0  # seconds that a server may take to start

P = ParamSpec("P")
T = TypeVar("T")


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
    rivals: Mapping[str, Callable[[], object]], rounds: int, *, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Time several functions in alternation, after one untimed round; return the milliseconds of each by name.

    Args:
        rivals: Functions to time, by name.
        rounds: Number of timed rounds.
        clock: Function that returns the time in seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(-1, rounds):
        for name, call in rivals.items():
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


def in_process(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Return the result of a function of a module, called in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments, options)


def points_in_classes(out: np.ndarray, each: int, noise: float) -> None:
    """Fill `out` (N, D) in chunks with unit vectors, `each` per class, around random centres.

    `noise` is the length of the noise relative to that of a centre.
    """
    generator = np.random.default_rng(0)
    for start in range(0, len(out), CHUNK):
        rows = min(CHUNK, len(out) - start)
        centres = generator.standard_normal((-(-rows // each), out.shape[1]), dtype=np.float32)
        part = np.repeat(centres, each, axis=0)[:rows]
        part += noise * generator.standard_normal(part.shape, dtype=np.float32)
        out[start : start + rows] = part / np.linalg.norm(part, axis=1, keepdims=True)


# ---- memory and processor time


def memory(key: str = "VmRSS", pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes: current (VmRSS), or the peak since `reset_peak` (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))


def reset_peak() -> int:
    """Reset the recorded memory peak of this process; return its current memory in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def started_by(process: int) -> set[int]:
    """Return the IDs of a process and of all its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    ours, newer = {process}, {process}
    while newer:
        newer = {pid for pid, parent in parents.items() if parent in newer} - ours
        ours |= newer
    return ours


def seconds_of(processes: Iterable[int]) -> float:
    """Return the user and system time in seconds that those processes have used that still exist."""
    ticks = 0
    for pid in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


# ---- servers and a browser


def free_ports(count: int = 1) -> list[int]:
    """Return consecutive free ports."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            sockets[0].bind(("127.0.0.1", 0))
            first = int(sockets[0].getsockname()[1])
            for number, each in enumerate(sockets[1:], 1):
                each.bind(("127.0.0.1", first + number))
            return list(range(first, first + count))


@contextlib.contextmanager
def running(command: Sequence[str], runs: Path, addresses: Sequence[str]) -> Iterator[int]:
    """Run a server on the folder `runs`; yield its process ID once all `addresses` answer 200, and end it at the end.

    Raises:
        RuntimeError: If the server does not start; the message has the end of its log.
    """
    log = runs.parent / "server.log"
    environment = os.environ | {"DML_RUNS": str(runs)}
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=file, stderr=file
        )
    try:
        deadline = time.monotonic() + START
        while not all(map(is_answered, addresses)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def is_answered(address: str) -> bool:
    """Return True if a request to `address` is answered with status 200."""
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
        return bool(answer.status == 200)
    return False


@contextlib.contextmanager
def served(runs: Path, script: Path = ROOT / "app.py") -> Iterator[tuple[str, int]]:
    """Run a script with Streamlit on the folder `runs`; yield its address and its process ID."""
    url = f"http://127.0.0.1:{(port := free_ports()[0])}"
    command = ["streamlit", "run", str(script), "--server.headless=true", f"--server.port={port}"]
    with running(command, runs, [f"{url}/_stcore/health"]) as process:
        yield url, process


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start headless Chromium with Playwright and yield the browser; close it at the end."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-quic"])
        try:
            yield browser
        finally:
            browser.close()
