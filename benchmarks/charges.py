"""Simulation steps a second on the charges page, in headless Chromium, against naive steps on the same points.

The page plays 300 points of five classes, all 4,248,000 triplets a step, as fast as it goes: every new step is computed
by the server, sent, painted with trails, curves and phase portrait, and counted once its frame is painted. Beside it
stands the processor time of the server per step, which a busy machine changes less. Rivals, in the same run and on the
same points, without server, browser, scores or drawing: the step with every triplet gathered as (T, 2) copies and
differentiated by autograd, and a step of pytorch-metric-learning's TripletMarginLoss (margin 0.1, all triplets). Each
rival may use all cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser.harness import CHROMIUM_FLAGS, Server, chromium_path

# Times at the end of the frames in which a new step was painted.
WATCH = """([canvas, seconds]) => new Promise((resolve) => {
  const times = [];
  const observer = new MutationObserver(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => times.push(performance.now());
    port2.postMessage(0);
  });
  observer.observe(canvas, { attributes: true, attributeFilter: ["data-step"] });
  setTimeout(() => { observer.disconnect(); resolve(times); }, seconds * 1000);
})"""


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def played(page: Any, url: str, seconds: float, pid: int) -> tuple[list[float], float]:
    """Milliseconds between painted steps while the page plays, and of the server's processor per step."""
    page.goto(url)
    canvas = page.wait_for_selector("canvas[data-step]")
    page.get_by_label("speed").select_option("as fast as it goes")
    page.get_by_role("button", name="play", exact=True).click()
    page.wait_for_function("(el) => Number(el.dataset.step) >= 3", arg=canvas)
    before = processor_seconds(pid)
    times = page.evaluate(WATCH, [canvas, seconds])
    return np.diff(times).tolist(), 1e3 * (processor_seconds(pid) - before) / max(len(times), 1)


def rivals(repeats: int) -> dict[str, list[float]]:
    """Milliseconds of naive steps on the points the page starts with."""
    import torch
    from pytorch_metric_learning.losses import TripletMarginLoss

    from dmlcore import losses
    from dmlcore.simulation import start_points

    points, labels = start_points("random", 5, 60, 0)
    x, y = torch.from_numpy(points).float(), torch.from_numpy(labels)
    same = y[:, None] == y
    positive = same & ~torch.eye(len(y), dtype=torch.bool)
    a, p, n = (positive[:, :, None] & ~same[:, None, :]).nonzero(as_tuple=True)
    metu, margin = losses.create("distance_sensitive"), TripletMarginLoss(margin=0.1)

    def timed(energy: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        times = []
        for _ in range(repeats):
            leaf = x.clone().requires_grad_()
            began = time.perf_counter()
            energy(leaf).backward()
            times.append(1e3 * (time.perf_counter() - began))
        return times[1:]

    return {
        "gathered triplets, same loss": timed(lambda leaf: metu.clamped(leaf[a], leaf[p], leaf[n]).mean()),
        "PML TripletMarginLoss": timed(lambda leaf: margin(leaf, y)),
    }


def report(name: str, times: list[float], ours: float | None = None) -> None:
    median, p95 = np.percentile(times, [50, 95])
    ratio = "" if ours is None else f"   {median / ours:5.1f} x a played step"
    print(f"{name:40s} median {median:7.1f} ms   p95 {p95:7.1f} ms   {1e3 / median:5.1f} steps/s{ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each page plays")
    parser.add_argument("--repeats", type=int, default=6, help="steps of each rival")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    print(
        f"{platform.machine()}, streamlit {version('streamlit')}, torch {version('torch')}, "
        f"PML {version('pytorch-metric-learning')}, 300 points, 5 classes, 4,248,000 triplets, "
        f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}"
    )
    pages = {"page, distance-sensitive": "", "page, ranking": "loss=ranking&rate=0.01"}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder) / "runs").start()
        try:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
            ours = {}
            for name, query in pages.items():
                context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
                assert server.process
                page = context.new_page()
                ours[name], busy = played(page, f"{server.url}/charges?{query}", arguments.seconds, server.process.pid)
                report(name, ours[name])
                print(f"{'':40s} server processor time {busy:.1f} ms a step")
                context.close()
            browser.close()
        finally:
            server.kill()
    for (name, times), own in zip(rivals(arguments.repeats).items(), ours.values(), strict=True):
        report(name, times, float(np.median(own)))


if __name__ == "__main__":
    main()
