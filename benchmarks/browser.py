"""Tools for the benchmarks of pages: servers of the app and a browser, which are those of the browser tests."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, processor_seconds, seconds_of, started_by
from tests.browser.harness import CHROMIUM_FLAGS, Server, chromium_path

# app with one slider and one number, the minimum work of a Streamlit page
EMPTY_RERUN = ROOT / "benchmarks" / "empty_rerun" / "app.py"
WINDOW = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}

# JavaScript function that returns the end times of the frames in which a new step was painted, and the step numbers.
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


def browser_seconds(server: int) -> float:
    """Return the processor seconds of the browser, that is of all descendants of this process except the server."""
    return seconds_of(started_by(os.getpid(), but=server))


@contextlib.contextmanager
def served(runs: Path, *scripts: Path, rest: float = 0.0) -> Iterator[list[Server]]:
    """Start the app on the folder `runs`, and one server for each script; yield the servers, and kill them at the end.

    `rest` is the number of seconds to wait before yielding.
    """
    servers = [Server(runs), *(Server(runs, script=script) for script in scripts)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.kill)
        time.sleep(rest)  # let the servers finish loading
        yield servers


def pid_of(server: Server) -> int:
    """Return the process id of a running server."""
    assert server.process
    return server.process.pid


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start headless Chromium with Playwright and yield the browser; close it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()


def launched(kind: Any) -> Any:
    """Launch a browser of a Playwright type: `playwright.chromium`, or the `browser_type` of a running browser."""
    return kind.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)


def played(
    page: Any, url: str, work: str, seconds: float, server: Server, *, speed: str = "as fast as it goes", start: int = 3
) -> tuple[list[float], float, str]:
    """Play the animation of a page for some seconds and time the painted steps.

    Args:
        page: Playwright page in which `url` is opened.
        url: Address of the page.
        work: CSS selector of the element that holds the number of the painted step as data-step.
        seconds: Duration of the measurement.
        server: Server of the page, to measure its processor time.
        speed: Option of the page's speed menu.
        start: Number of the step at which timing begins.

    Returns:
        Milliseconds between painted steps, steps per second, and a line of text with the processor time of server and
        browser per frame.
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
