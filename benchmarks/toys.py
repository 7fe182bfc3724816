"""Animated frames per second on the toys page while two MLPs train side by side, in headless Chromium.

The page trains two networks of its initial configuration in lockstep, batch by batch as fast as possible, with new
seeds. Every frame is a new optimiser step of both networks, which is recorded, sent, and painted in three windows with
curves; a step counts once it is painted. There are three baselines: the bare loop, `training.loop.step` for both
networks in turn without recording, server or page; the bare loop that also embeds the displayed points after each step,
which any animation needs; and Plotly, in the same browser, which redraws the same points (scatter3d for the inputs, a
scatter for each embedding) with `Plotly.react` from existing frames while nothing trains. If photographs are available
(DML_DATA), pages with photographs are measured too: average pooling next to generalized sum pooling on the cached
feature maps of a frozen SqueezeNet, with neighbours and weight maps painted. The feature maps are computed before the
timing starts.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import WINDOW, chromium, played, served
from benchmarks.harness import command_line, machine, per_second, report, verdict

GOAL = 20.0  # frames per second

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


def photographs() -> list[tuple[str, str, str]]:
    """Return the pages with photographs to measure, as (title, speed, URL query string); [] without photographs."""
    from dmlcore.replay import toy_runs
    from pages.losses.toy_training.presets import IMAGES

    if "cub" not in toy_runs.list_sets():
        print("no photographs found: set DML_DATA to a folder with CUB-200-2011 and weights of SqueezeNet 1.0")
        return []
    query = f"data=cub&{IMAGES}&a.loss=multi_similarity&b.loss=multi_similarity"
    return [
        ("photographs, GAP and GSP, every batch", "5", f"{query}&b.pooling=gsp&seed=904"),
        ("photographs, GAP and GAP, every batch", "5", f"{query.removesuffix('multi_similarity')}ranking&seed=905"),
    ]


def bare(steps: int, embed: bool) -> list[float]:
    """Return the milliseconds of each step of both networks without a page.

    If `embed`, a step includes embedding the displayed points.
    """
    import torch

    from dmlcore.replay.recorded_training import LiveTraining
    from dmlcore.training import build, loop
    from pages.losses.toy_training.state import Toy

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
    """Return the milliseconds between consecutive redraws of the three windows with Plotly."""
    import plotly

    from dmlcore.replay.recorded_training import LiveTraining
    from pages.losses.toy_training.state import Toy

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


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds that each page plays")
    parser.add_argument("--steps", type=int, default=200, help="steps of the bare loops")
    parser.add_argument("--photographs", action="store_true", help="measure only the pages with photographs")
    arguments = parser.parse_args()
    print(f"{machine('streamlit', 'torch', 'plotly')}; 12 classes, 312 points shown, batches of 4 x 8")
    pages = photographs()
    if not arguments.photographs:
        pages = [
            ("page, every batch, plane", "5", "seed=901"),
            ("page, every batch, space and sphere", "5", "seed=902&dim=3&normalize=1"),
            ("page, 4 batches per frame (default speed)", "2", "seed=903"),
            *pages,
        ]
    frames = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "runs", rest=15) as (server,),
        chromium() as browser,
    ):
        for name, speed, query in pages:
            context = browser.new_context(**WINDOW)
            url, seconds = f"{server.url}/toy_training?{query}", arguments.seconds
            times, rate, processor = played(context.new_page(), url, ".work", seconds, server, speed=speed, start=16)
            report(name, times, f"{rate:.0f} steps/s of each network; {processor}")
            frames[name] = per_second(times)
            context.close()
        if not arguments.photographs:
            drawn = plotly(browser.new_page(**WINDOW), arguments.seconds)
    if photos := frames.get("photographs, GAP and GSP, every batch"):
        print(f"photographs: {photos:.1f} painted frames/s (at least {GOAL:.0f}: {verdict(photos >= GOAL)})")
    if arguments.photographs:
        return
    report("Plotly, same points, no training", drawn)
    alone = bare(arguments.steps, embed=False)
    report("bare loop, both networks", alone)
    report("bare loop that embeds the watched points", bare(arguments.steps, embed=True))
    first = frames["page, every batch, plane"]
    print(
        f"page: {first:.1f} frames per second, a step of both each (at least {GOAL:.0f}: {verdict(first >= GOAL)}); "
        f"{first / per_second(drawn):.1f} x Plotly's redraws, {first / per_second(alone):.2f} x the bare loop's steps"
    )


if __name__ == "__main__":
    main()
