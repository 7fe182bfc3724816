"""Shipped specs with three seeds each: test MAP@R of raw inputs, of the untrained and the trained network, and time.

`python -m benchmarks.specs [NAME ...]`, by default glyphs, digits and digits-classes. Each run executes the command
that a user would type, in its own process; wall-clock and processor seconds include start and end of the process.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import ROOT, machine
from dmlcore.storage.runs import RunStore, scores

SEEDS = (0, 1, 2)
USUAL = ("glyphs", "digits", "digits-classes")


def main(names: list[str]) -> None:
    threads = os.environ.get("OMP_NUM_THREADS", f"{os.cpu_count()} (all)")
    print(f"{machine('torch')}, threads {threads}\n")
    print(f"{'spec':16} seed     raw  untrained  trained    rise  times    R@1  seconds  processor   (per cent, test)")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            rises = []
            for seed in SEEDS:
                store = RunStore(Path(folder) / f"{name}-{seed}")
                wall, processor = _train(name, seed, store)
                rows = scores(store.list()[0].metrics()[0])
                raw, before, after = (100 * rows[subject]["map_at_r"] for subject in ("inputs", "untrained", "trained"))
                first = 100 * rows["trained"]["recall_at"]["1"]
                rises.append(after - before)
                print(
                    f"{name:16} {seed:4} {raw:7.2f} {before:10.2f} {after:8.2f} {after - before:+7.2f} "
                    f"{after / before:6.1f} {first:6.1f} {wall:8.1f} {processor:10.1f}",
                    flush=True,
                )
            print(f"{name:16} mean rise {statistics.mean(rises):+.2f}, least {min(rises):+.2f}\n")


def _train(name: str, seed: int, store: RunStore) -> tuple[float, float]:
    """Train a shipped spec with a seed; return wall-clock seconds and processor seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "dmlcore", "train", name, f"seed={seed}", "--runs", str(store.root)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, processor


if __name__ == "__main__":
    main(sys.argv[1:] or list(USUAL))
