"""Test MAP@R of raw pixels, untrained and trained network on the digits, three seeds, both splits, with seconds."""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dmlcore.runs import RunStore, scores
from dmlcore.spec import RunSpec
from dmlcore.train import train

SPECS = Path(__file__).resolve().parents[1] / "assets" / "specs"
SEEDS = (0, 1, 2)


def main() -> None:
    print(f"{platform.machine()}, {torch.get_num_threads()} cores, torch {torch.__version__}\n")
    print("spec             seed  raw pixels  untrained  trained    rise  seconds   (test MAP@R in per cent)")
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        for name in ("digits", "digits-classes"):
            spec = RunSpec.from_toml((SPECS / f"{name}.toml").read_text())
            rises = []
            for seed in SEEDS:
                run = store.create(spec.with_overrides([f"seed={seed}"]))
                with run.lock():
                    state = train(run)
                found = scores(run.metrics()[0])
                raw, before, after = (100 * found[of]["map_at_r"] for of in ("inputs", "untrained", "trained"))
                rises.append(after - before)
                print(
                    f"{name:16} {seed:4} {raw:11.2f} {before:10.2f} {after:8.2f} {after - before:+7.2f}"
                    f" {state.seconds:8.1f}",
                    flush=True,
                )
            print(f"{name:16} mean rise {statistics.mean(rises):+.2f}, least {min(rises):+.2f}\n")


if __name__ == "__main__":
    main()
