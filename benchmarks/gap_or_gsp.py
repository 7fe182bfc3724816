"""Frames a second of the page GAP or GSP while both training runs run, in headless Chromium.

The page trains its first state as fast as it goes, on a seed nobody has trained before: every frame is a new optimiser
step of GAP and of GSP, recorded, measured (hulls of both, every tenth step all overlaps and MAP@R), sent and painted.
Beside it, in the same run: the bare loop, `training.loop.step` of both in turn without record, server or page, once the
prototypes of GSP are placed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.charges import processor_seconds
from benchmarks.toys import GOAL, WATCH, browser_seconds, report
from tests.browser.harness import CHROMIUM_FLAGS, Server, chromium_path

PLACED = 20  # by this step GSP has its prototypes


def played(page: Any, url: str, seconds: float, pid: int) -> tuple[list[float], str]:
    """Milliseconds between painted frames; processor time of server and browser a frame."""
    page.goto(url)
    canvas = page.wait_for_selector("canvas[data-side=gsp][data-step]", timeout=120_000)
    page.get_by_label("speed").select_option("as fast as it goes")
    page.get_by_role("button", name="play", exact=True).click()
    page.wait_for_function(f"(el) => Number(el.dataset.step) >= {PLACED}", arg=canvas, timeout=120_000)
    before = processor_seconds(pid), browser_seconds(pid)
    times, _ = page.evaluate(WATCH, [canvas, seconds])
    after = processor_seconds(pid), browser_seconds(pid)
    server, browser = (1e3 * (now - then) / len(times) for now, then in zip(after, before, strict=True))
    return np.diff(times).tolist(), f"processor a frame: server {server:.1f} ms, browser {browser:.1f} ms"


def bare(steps: int) -> list[float]:
    """Milliseconds of a step of both networks without a page."""
    import torch

    from dmlcore.training import build, loop
    from pages.pooling.gap_or_gsp.state import POOLINGS, PoolingStudy

    torch.set_num_threads(1)
    study = PoolingStudy(seed=911)
    runs = [study.run(pooling) for pooling in POOLINGS]
    bags = build.load_data(runs[0])
    benches = [build.build(run, bags, torch.device("cpu")) for run in runs]
    times = []
    for step in range(1, steps + PLACED):
        began = time.perf_counter()
        for state in benches:
            loop.step(state, step)
        times.append(1e3 * (time.perf_counter() - began))
    return times[PLACED:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long the page plays")
    parser.add_argument("--steps", type=int, default=200, help="steps of the bare loop")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    load = json.dumps([round(x, 1) for x in os.getloadavg()])
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load before {load}, streamlit {version('streamlit')}, "
        f"torch {version('torch')}; 16 classes, 256 bags shown on each side, batches of 16 x 4 bags of 50 tokens"
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder) / "runs").start()
        try:
            time.sleep(15)  # it has loaded what it loads in quiet
            assert server.process
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
            url = f"{server.url}/gap_or_gsp?seed=910"
            rate = report("page, every step of both", *played(page, url, arguments.seconds, server.process.pid))
            browser.close()
        finally:
            server.kill()
    loop = report("bare loop, both networks", bare(arguments.steps))
    verdict = "at least" if rate >= GOAL else "BELOW"
    print(f"page: {rate:.1f} frames a second ({verdict} {GOAL:.0f}), {rate / loop:.2f} x the bare loop's steps")


if __name__ == "__main__":
    main()
