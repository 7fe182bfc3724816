"""Frame rate of the page GAP vs GSP while both of its training runs are active, in headless Chromium.

The page trains from its initial configuration as fast as possible, with a new seed. Each frame shows a new optimiser
step of both networks: the step is recorded, its convex hulls are computed (every tenth step also all overlaps and
MAP@R), and the result is sent and painted. The baseline is `training.loop.step` for both networks in turn without
recording, server or page, after the prototypes of GSP have been initialised.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.browser import WINDOW, chromium, played, served
from benchmarks.harness import command_line, machine, per_second, report, verdict

GOAL = 20.0  # frames per second
PLACED = 20  # number of untimed steps, after which GSP has initialised its prototypes


def bare(steps: int) -> list[float]:
    """Return the milliseconds of each step of both networks without a page."""
    import torch

    from dmlcore.training import build, loop
    from pages.pooling.gap_vs_gsp.state import POOLINGS, PoolingStudy

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
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds that the page plays")
    parser.add_argument("--steps", type=int, default=200, help="steps of the bare loop")
    arguments = parser.parse_args()
    shown = "16 classes, 256 bags shown on each side, batches of 16 x 4 bags of 50 tokens"
    print(f"{machine('streamlit', 'torch')}; {shown}")
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "runs", rest=15) as (server,),
        chromium() as browser,
    ):
        url, seconds = f"{server.url}/gap_vs_gsp?seed=910", arguments.seconds
        page = browser.new_page(**WINDOW)
        times, _, processor = played(page, url, "canvas[data-side=gsp]", seconds, server, start=PLACED)
    report("page, every step of both networks", times, processor)
    alone = bare(arguments.steps)
    report("bare loop, both networks", alone)
    rate = per_second(times)
    print(f"page: {rate:.1f} frames per second (at least {GOAL:.0f}: {verdict(rate >= GOAL)}), ", end="")
    print(f"{rate / per_second(alone):.2f} x the bare loop's steps")


if __name__ == "__main__":
    main()
