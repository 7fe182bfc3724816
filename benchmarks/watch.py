"""Cost of the validation frames of a run ("Map during training"), compared with the same training run without them.

Whole runs are trained in alternation in one process, as `python -m dmlcore train` does: the shipped specs `digits`
(13 validations in 600 steps) and `toy`. Both rivals must end with the same rows and weights. For larger validation
splits only the recorder is timed, and for the page the HTML of one frame.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from benchmarks.harness import command_line, machine, ratios, report, turns, verdict
from dmlcore import data, presets
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import checkpoint, validation_frames
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import build, loop, starts
from dmlcore.training.frame_recorder import FrameRecorder
from pages.training.runs import watch_html

GOAL, DRAWN = 1.05, 100.0  # goals: ratio of the processor times of whole runs; milliseconds per frame on the page
SIZES = ((500, 64), (5000, 128), (5000, 512), (50_000, 512))  # (samples, dimensions) of a validation split


def train(spec: RunSpec, folder: Path, *, frames: bool) -> Run:
    """Train a run with or without frames and return it."""
    run = RunStore(folder).create(spec)
    keep = starts._record_frames if frames else lambda *arguments: None
    with run.lock(), mock.patch.object(starts, "_record_frames", keep):
        state = loop.train(run)
    assert state.state == "done", state.message
    return run


def are_equal(one: Run, other: Run) -> bool:
    """Return True if two runs have the same rows and the same tensors in their last checkpoints."""
    first, second = checkpoint.load(one.path), checkpoint.load(other.path)
    assert first is not None
    assert second is not None
    tensors = all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
    return tensors and (one.path / "metrics.jsonl").read_bytes() == (other.path / "metrics.jsonl").read_bytes()


def milliseconds(call: Callable[[], object], rounds: int = 20) -> list[float]:
    """Return the milliseconds of each of `rounds` calls after a first one."""
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - began))
    return times[1:]


def make_recorder(samples: int, dimensions: int, folder: Path) -> FrameRecorder:
    """Return a recorder for a synthetic validation split of 100 classes that has a previous frame."""
    random = np.random.default_rng(0)
    made = data.load("digits", split="samples")
    made = type(made)(**vars(made) | {"labels": random.integers(0, 100, samples)})
    rows = np.arange(samples)
    folder.mkdir()
    recorder = FrameRecorder(folder, ScheduleSpec(steps=1000, validate_every=4), made, rows, np.zeros(samples, bool), 0)
    recorder(4, random.normal(size=(samples, dimensions)).astype(np.float32))
    return recorder


def main() -> None:
    """Print the ratio for each spec, the time of the recorder for each size, and the time to draw a frame."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    print(machine("torch", "numpy"))
    build.prepare_device("cpu", 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for preset in ("digits", "toy"):
            spec = RunSpec.from_toml((presets.SPECS / f"{preset}.toml").read_text())
            runs = [train(spec, folder, frames=frames) for frames in (True, False)]
            rivals = {str(frames): partial(train, spec, folder, frames=frames) for frames in (True, False)}
            times = turns(rivals, arguments.rounds, warm=0)
            ratio = statistics.median(ratios(times["True"], times["False"]))
            report(f"{preset}: with frames", times["True"])
            report(f"{preset}: rival without", times["False"], f"ratio {ratio:.3f}")
            count = len(validation_frames.paths(runs[0].path))
            size = sum(path.stat().st_size for path in validation_frames.paths(runs[0].path).values())
            print(f"{preset}: {count} frames, {size:,} bytes; same rows and weights: {are_equal(*runs)}")
            print(f"{preset}: ratio {ratio:.3f} (goal at most {GOAL}: {verdict(ratio <= GOAL)})")
        for samples, dimensions in SIZES:
            embeddings = np.random.default_rng(1).normal(size=(samples, dimensions)).astype(np.float32)
            recorder = make_recorder(samples, dimensions, folder / f"{samples}-{dimensions}")
            report(f"recorder, {samples:,} x {dimensions}", milliseconds(partial(recorder, 8, embeddings)))
        frame = validation_frames.read(validation_frames.paths(folder / "5000-128")[8])
        html = partial(watch_html.html, frame, frame, 8, "api/thumb/run/", str)
        drawn = report("page: HTML of 500 samples", milliseconds(html), f"{len(html()):,} characters")
        print(f"page: goal at most {DRAWN:.0f} ms: {verdict(drawn <= DRAWN)}")


if __name__ == "__main__":
    main()
