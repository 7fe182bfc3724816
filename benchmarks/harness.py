"""What the benchmarks share: command line, machine, rivals by turns, time and memory, servers and a browser.

A script runs as `python -m benchmarks.NAME` from the root of the project, and prints a ratio against a stated rival.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser.harness import CHROMIUM_FLAGS, ROOT, Server, chromium_path

EMPTY_RERUN = ROOT / "benchmarks" / "empty_rerun" / "app.py"  # the least that a page of Streamlit can do
WINDOW = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}

# Times at the end of the frames in which a new step was painted, and those steps.
WATCH = """([work, seconds]) => new Promise((resolve) => {
  const times = [], steps = [];
  const observer = new MutationObserver(() => {
    const { port1, port2 } = new MessageChannel(), step = Number(work.dataset.step);
    port1.onmessage = () => { if (step !== steps.at(-1)) { times.push(performance.now()); steps.push(step); } };
    port2.postMessage(0);
  });
  observer.observe(work, { attributes: true, attributeFilter: ["data-step"] });
  setTimeout(() => { observer.disconnect(); resolve([times, steps]); }, seconds * 1000);
})"""


def command_line(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def machine(*packages: str) -> str:
    """Processor, cores, load and the versions of packages, in a line."""
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
    """Milliseconds of every rival in each of so many rounds, after `warm` that do not count.

    twice: called before each timed call too, as the rival before it has emptied the caches.
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
    """How many times the other's the one's times are, round by round, the smallest first."""
    return sorted(a / b for a, b in zip(one, other, strict=True))


def verdict(reached: bool) -> str:
    """Of a goal."""
    return "reached" if reached else "MISSED"


def report(name: str, times: Sequence[float], more: str = "") -> float:
    """Print what milliseconds are like; their median."""
    median, p95 = np.percentile(times, [50, 95])
    spread = f"median {median:7.1f} ms   p95 {p95:7.1f} ms   worst {max(times):7.1f} ms of {len(times)}"
    print(f"{name:52s} {spread}   {more}".rstrip(), flush=True)
    return float(median)


def per_second(times: Sequence[float]) -> float:
    """How many of these milliseconds one after another fill a second."""
    return 1e3 / statistics.fmean(times)


def memory(key: str = "VmRSS", pid: int | str = "self") -> int:
    """Bytes of resident memory of a process, now (VmRSS) or at its highest since `reset_peak` (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))


def reset_peak() -> int:
    """Forget the highest memory of this process so far; the memory it holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started_by(process: int, but: int = 0) -> set[int]:
    """What a process has started, and what that has; but: one that does not count, nor what it has started."""
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
    """Processor time so far of those that are still there."""
    seconds = 0.0
    for pid in processes:
        with contextlib.suppress(OSError):
            seconds += processor_seconds(pid)
    return seconds


def browser_seconds(server: int) -> float:
    """Processor time so far of what this process has started, without the server: the browser."""
    return seconds_of(started_by(os.getpid(), but=server))


@contextlib.contextmanager
def served(runs: Path, *scripts: Path, rest: float = 0.0) -> Iterator[list[Server]]:
    """The app over these runs, and a server of each script; left alone for so many seconds, killed at the end."""
    servers = [Server(runs), *(Server(runs, script=script) for script in scripts)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.kill)
        time.sleep(rest)  # they load what they load in quiet
        yield servers


def pid_of(server: Server) -> int:
    """The process of a server that runs."""
    assert server.process
    return server.process.pid


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser of Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()


def launched(kind: Any) -> Any:
    """One more browser of that kind: `playwright.chromium`, or the `browser_type` of one that runs."""
    return kind.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)


def played(
    page: Any, url: str, work: str, seconds: float, server: Server, *, speed: str = "as fast as it goes", start: int = 3
) -> tuple[list[float], float, str]:
    """Play a page from step `start` on, whose element `work` tells its step.

    Milliseconds between painted steps; steps a second; a line about processor time of server and browser a frame.
    """
    page.goto(url)
    element = page.wait_for_selector(f"{work}[data-step]", timeout=120_000)
    page.get_by_label("speed").select_option(speed)
    page.get_by_role("button", name="play", exact=True).click()
    page.wait_for_function(f"(el) => Number(el.dataset.step) >= {start}", arg=element, timeout=120_000)
    pid = pid_of(server)
    before = processor_seconds(pid), browser_seconds(pid)
    times, steps = page.evaluate(WATCH, [element, seconds])
    after = processor_seconds(pid), browser_seconds(pid)
    own, shown = (1e3 * (now - then) / len(times) for now, then in zip(after, before, strict=True))
    rate = (steps[-1] - steps[0]) / (times[-1] - times[0]) * 1000
    return np.diff(times).tolist(), rate, f"processor a frame: server {own:.1f} ms, browser {shown:.1f} ms"
