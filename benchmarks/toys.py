"""Animated frames a second on the toys page while two MLPs train side by side, in headless Chromium.

The page trains its first state, two networks on one clock, batch by batch as fast as it goes, on seeds nobody has
trained before: every frame is a new optimiser step of both, recorded, sent, and painted in three windows with curves,
and counted once it is painted. Beside it, in the same run: the bare loop, `training.loop.step` for both in turn
without record, server or page; the same with the watched points embedded after each step, which any animation needs;
and Plotly, in the same browser, drawing the same points (scatter3d for the inputs, a scatter for each embedding) anew
by `Plotly.react` from frames that are already there, with nothing training. Where photographs are (DML_DATA) also
these: average pooling beside generalized sum pooling on the kept maps of a frozen SqueezeNet, neighbours and weight
maps painted too; their maps are computed before the clock starts.
"""

from __future__ import annotations

import argparse
import contextlib
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
from tests.browser.harness import CHROMIUM_FLAGS, Server, chromium_path

GOAL = 20.0  # frames a second

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

REDRAW = """async ([inputs, frames, colours, seconds]) => {
  const names = ["input", "a", "b"], times = [], margin = { l: 0, r: 0, t: 0, b: 0 };
  const layout = { width: 360, height: 360, margin };
  const axis = (points, k) => points.map((p) => p[k]);
  const trace = (points) => {
    const space = points[0].length === 3, marker = { size: space ? 3 : 6, color: colours };
    const flat = { type: "scatter", mode: "markers", x: axis(points, 0), y: axis(points, 1), marker };
    return space ? { ...flat, type: "scatter3d", z: axis(points, 2) } : flat;
  };
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0);
  }));
  const until = performance.now() + 1000 * seconds;
  for (let k = 0; performance.now() < until; k++) {
    const shown = [inputs, ...frames.map((side) => side[k % side.length])];
    await Promise.all(names.map((name, i) => Plotly.react(name, [trace(shown[i])], layout)));
    await painted();
    times.push(performance.now());
  }
  return times;
}"""


def browser_seconds(server: int) -> float:
    """Processor time so far of what this process has started, without the server: the browser."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    ours, found = {os.getpid()}, True
    while found:
        found = {pid for pid, parent in parents.items() if parent in ours and pid not in ours and pid != server}
        ours |= found
    seconds = 0.0
    for pid in ours - {os.getpid()}:
        with contextlib.suppress(OSError):
            seconds += processor_seconds(pid)
    return seconds


def played(page: Any, url: str, speed: str, seconds: float, pid: int) -> tuple[list[float], str]:
    """Milliseconds between painted frames; steps a second, and processor time of server and browser a frame."""
    page.goto(url)
    work = page.wait_for_selector(".work[data-step]", timeout=120_000)
    page.get_by_label("speed").select_option(speed)
    page.get_by_role("button", name="play", exact=True).click()
    page.wait_for_function("(el) => Number(el.dataset.step) >= 16", arg=work)
    before = processor_seconds(pid), browser_seconds(pid)
    times, steps = page.evaluate(WATCH, [work, seconds])
    after = processor_seconds(pid), browser_seconds(pid)
    server, browser = (1e3 * (now - then) / len(times) for now, then in zip(after, before, strict=True))
    rate = (steps[-1] - steps[0]) / (times[-1] - times[0]) * 1000
    more = f"{rate:.0f} steps/s of each network; processor a frame: server {server:.1f} ms, browser {browser:.1f} ms"
    return np.diff(times).tolist(), more


def photographs() -> list[tuple[str, str, str]]:
    """Pages of photographs, where there are any, at both speeds."""
    from dmlcore.replay import toy_runs
    from pages.losses.toys.presets import IMAGES

    if "cub" not in toy_runs.offered():
        print("no photographs here: point DML_DATA to CUB-200-2011 and weights of SqueezeNet 1.0")
        return []
    both = f"data=cub&{IMAGES}&a.loss=multi_similarity&b.loss=multi_similarity"
    return [
        ("photographs, GAP and GSP, every batch", "5", f"{both}&b.pooling=gsp&seed=904"),
        ("photographs, GAP and GAP, every batch", "5", f"{both.removesuffix('multi_similarity')}ranking&seed=905"),
    ]


def bare(steps: int, embed: bool) -> list[float]:
    """Milliseconds of a step of both networks without a page."""
    import torch

    from dmlcore.replay.recorded_training import LiveTraining
    from dmlcore.training import build, loop
    from pages.losses.toys.state import Toy

    torch.set_num_threads(1)
    toy = Toy(seed=900)
    benches = [build.build(toy.run(i), toy.dataset, torch.device("cpu")) for i in range(2)]
    watched = torch.from_numpy(toy.dataset.inputs[LiveTraining(toy.live(0), toy.dataset).watched])
    times = []
    for step in range(1, steps + 20):
        began = time.perf_counter()
        for state in benches:
            loop.step(state, step)
            if embed:
                with torch.no_grad():
                    state.model(watched)
        times.append(1e3 * (time.perf_counter() - began))
    return times[20:]


def plotly(page: Any, seconds: float) -> list[float]:
    """Milliseconds between two redraws of the three windows by Plotly."""
    import plotly

    from dmlcore.replay.recorded_training import LiveTraining
    from pages.losses.toys.state import Toy

    toy = Toy()
    trainings = [LiveTraining(toy.live(i), toy.dataset) for i in range(2)]
    for training in trainings:
        training.frame(12)
    points = [[frame.embeddings.tolist() for frame in training.frames] for training in trainings]
    inputs = toy.dataset.inputs[trainings[0].watched].tolist()
    colours = toy.dataset.labels[trainings[0].watched].tolist()
    page.set_content("<div id=input></div><div id=a></div><div id=b></div>")
    page.add_script_tag(path=str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js"))
    times = page.evaluate(REDRAW, [inputs, points, colours, seconds])
    return np.diff(times).tolist()


def report(name: str, times: list[float], more: str = "") -> float:
    median, p95 = np.percentile(times, [50, 95])
    rate = 1000 * len(times) / sum(times)
    print(f"{name:46s} {rate:6.1f} /s   median {median:6.1f} ms   p95 {p95:6.1f} ms   {more}")
    return float(rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each page plays")
    parser.add_argument("--steps", type=int, default=200, help="steps of the bare loops")
    parser.add_argument("--photographs", action="store_true", help="no other pages")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    load = json.dumps([round(x, 1) for x in os.getloadavg()])
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load before {load}, streamlit {version('streamlit')}, "
        f"torch {version('torch')}, plotly {version('plotly')}; 12 classes, 312 points shown, batches of 4 x 8"
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder) / "runs").start()
        try:
            time.sleep(15)  # it has loaded what it loads in quiet
            assert server.process
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
            window = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}
            rates = {}
            pages = [
                ("page, every batch, plane", "5", "seed=901"),
                ("page, every batch, space and sphere", "5", "seed=902&dim=3&normalize=1"),
                ("page, 4 batches a frame (its first speed)", "2", "seed=903"),
                *photographs(),
            ]
            if arguments.photographs:
                pages = photographs()
            for name, speed, query in pages:
                context = browser.new_context(**window)
                url = f"{server.url}/toys?{query}"
                rates[name] = report(
                    name, *played(context.new_page(), url, speed, arguments.seconds, server.process.pid)
                )
                context.close()
            if photos := rates.get("photographs, GAP and GSP, every batch"):
                verdict = "at least" if photos >= GOAL else "BELOW"
                print(f"photographs: {photos:.1f} painted frames/s ({verdict} {GOAL:.0f})")
            if arguments.photographs:
                return
            context = browser.new_context(**window)
            drawn = report("Plotly, same points, nothing trains", plotly(context.new_page(), arguments.seconds))
            context.close()
            browser.close()
        finally:
            server.kill()
    loop = report("bare loop, both networks", bare(arguments.steps, embed=False))
    report("bare loop, and the watched points embedded", bare(arguments.steps, embed=True))
    first = rates["page, every batch, plane"]
    verdict = "at least" if first >= GOAL else "BELOW"
    print(
        f"page: {first:.1f} frames a second, each a step of both ({verdict} {GOAL:.0f}); "
        f"{first / drawn:.1f} x Plotly's redraws, {first / loop:.2f} x the bare loop's steps"
    )


if __name__ == "__main__":
    main()
