"""A store of 10,000 runs: time to open the pages Runs, Gallery and Studies, cold and warm.

The runs are hard links to one real run on digits, each with its own spec (seed, loss) and state. Streamlit's test
runner opens a page in its own process: cold is the first opening, including imports; warm is the median of five more.
CPU seconds are reported for both. The same page is opened on a store of 20 runs, to show how much of the time is due to
the number of runs. The baseline reads all specs and states, as each listing did in earlier releases.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import ROOT, command_line
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunState, RunStore

PAGES = ("runs", "neighbours", "studies")
LOSSES = ("ranking", "facenet", "ratio", "contrastive", "multi_similarity", "proxy_anchor")
SHORT = ["schedule.steps=300", "schedule.validate_every=50", "schedule.checkpoint_every=100"]


def train(root: Path) -> Path:
    """Train one real run in a store at `root`; return its folder."""
    from dmlcore.training.loop import train as trained

    run = RunStore(root).create(RunSpec(device="cpu").with_overrides(SHORT))
    with run.lock():
        assert trained(run).state == "done"
    return run.path


def make(root: Path, original: Path, count: int) -> None:
    """Create `count` runs with start times one minute apart, the newest one minute old; shared files are hard links."""
    now = time.time()
    state = RunState.model_validate_json((original / "state.json").read_bytes())
    for number in range(count):
        loss, created = LOSSES[number % len(LOSSES)], now - 60 * (count - number)
        stamp = time.strftime("%Y%m%d-%H%M", time.gmtime(created))
        path = root / f"{stamp}-digits-{loss.replace('_', '-')}-{number:04x}"
        (path / "embeddings").mkdir(parents=True)
        for file in (*original.glob("*.ckpt"), original / "metrics.jsonl", *original.glob("embeddings/*.npz")):
            os.link(file, path / file.relative_to(original))
        spec = RunSpec(device="cpu", seed=number).with_overrides([*SHORT, f"loss.name={loss}"])
        (path / "spec.json").write_text(spec.to_json())
        (path / "state.json").write_text(state.model_copy(update={"created": created}).model_dump_json(indent=1))
        (path / "lock").touch()
        (path / "log.txt").touch()


def read_all(root: Path) -> int:
    """Read and validate every spec and state, as each listing did in earlier releases; return the number of runs."""
    entries = []
    for path in root.iterdir():
        if not path.name.startswith(".") and path.is_dir() and not path.is_symlink():
            spec = RunSpec.from_json((path / "spec.json").read_text())
            entries.append((RunState.model_validate_json((path / "state.json").read_bytes()).created, path.name, spec))
    return len(sorted(entries, key=lambda item: item[:2], reverse=True))


def measure(page: str) -> None:
    """Print wall-clock and CPU seconds of opening a page on $DML_RUNS, cold and warm, as JSON.

    Run this in its own process.
    """
    import torch
    from streamlit.testing.v1 import AppTest

    from pages.shared.widgets import menu

    torch.set_num_threads(1)
    app = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=600).run()  # the first page
    began, used = time.perf_counter(), time.process_time()
    app.switch_page(menu.PAGES[page].file).run()
    cold, first, warm, cpu = time.perf_counter() - began, time.process_time() - used, [], []
    assert not app.exception, app.exception
    time.sleep(1.5)  # wait, because the listing does not cache folders younger than one second
    for _ in range(5):
        wall, used = time.perf_counter(), time.process_time()
        app.run()
        warm.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - used)
    print(json.dumps([cold, first, statistics.median(warm), statistics.median(cpu)]))


def measured(page: str, root: Path) -> list[float]:
    """Run `measure` in its own process; return the four values that it prints."""
    command = [sys.executable, "-m", "benchmarks.store", "--measure", page]
    env = os.environ | {"DML_RUNS": str(root), "OMP_NUM_THREADS": "1"}
    output = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    return [float(value) for value in json.loads(output.splitlines()[-1])]


def listing(root: Path) -> None:
    """Time the listing of the store without a page, and the baseline `read_all`."""
    store = RunStore(root)
    looks = {
        "rival: all specs and states": lambda: read_all(root),
        "newest 200, first": lambda: store.newest(200),
        "all, first": store.list,
        "newest 200, again": lambda: store.newest(200),
        "those of one spec, again": lambda: store.find(lambda run_id, brief: brief.digest == "none"),
        "all, again": store.list,
    }
    for name, look in looks.items():
        wall, cpu = time.perf_counter(), time.process_time()
        look()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{name:30s} {1000 * wall:8.1f} ms   CPU {1000 * cpu:8.1f} ms")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder)
        original = train(root / "original")
        make(root / "few", original, 20)
        make(root / "many", original, arguments.runs)
        time.sleep(1.5)
        listing(root / "many")
        for page in PAGES:
            for name, count in (("few", 20), ("many", arguments.runs)):
                cold, first, warm, look = measured(page, root / name)
                times = f"cold {cold:6.2f} s (CPU {first:5.2f} s)   warm {warm:6.3f} s (CPU {look:6.3f} s)"
                print(f"{page:10s} {count:6,d} runs   {times}")


if __name__ == "__main__":
    main()
