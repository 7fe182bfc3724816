"""Steps per second of training on cached feature maps of a frozen backbone, compared with training without a cache.

The set-up is CUB-mini (or the CUB data in DML_DATA), SqueezeNet 1.0, 227 pixels, batches of 16 x 4, multi-similarity
loss and one thread. The baseline is the same training run without a cache: its frozen backbone processes the images of
every batch, without gradients. `training.loop.step` alone is timed first, then a whole run of 200 steps as `python -m
dmlcore train` performs it, including validations, checkpoints and the test. If the feature maps are not cached yet,
their computation is timed too. The goal refers to the processor time of the one thread, which other processes do not
affect; wall-clock time is reported as well.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.harness import command_line, machine, verdict
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, loop
from dmlcore.training.state import TrainingState

GOAL = 100.0  # goal for average pooling, in steps per second of processor time
START = "squeezenet1_0-deep-compression.safetensors"
SPEC = [
    *("data.name=cub", "data.image_size=227", "model.name=squeezenet1_0", "model.freeze=backbone"),
    *("model.embedding_dim=128", "loss.name=multi_similarity", "batch.classes=16", "batch.samples=4"),
    *(
        "optimiser.learning_rate=3e-4",
        "optimiser.weight_decay=1e-4",
        "schedule.steps=200",
        "schedule.validate_every=50",
    ),
]
POOLINGS = {
    "GAP": ["pooling.name=gap"],
    "GSP, m = 64, mu = 0.3": ["pooling.name=gsp", "pooling.mu=0.3", "pooling.epsilon=5"],
    "GeM": ["pooling.name=gem"],
}


Times = list[tuple[float, float]]  # (wall-clock milliseconds, processor milliseconds) of each step


def steps_ms(training_state: TrainingState, count: int) -> Times:
    """Return the wall-clock and processor milliseconds of each of `count` steps after three warm-up steps."""
    training_state.model.train()
    times = []
    for step in range(1, count + 4):
        began = time.perf_counter(), time.process_time()
        float(loop.step(training_state, step))
        times.append((1e3 * (time.perf_counter() - began[0]), 1e3 * (time.process_time() - began[1])))
    return times[3:]


def report(name: str, times: Times, rival: float | None = None) -> float:
    """Print steps per second and times of a training run; return the mean processor time per step in milliseconds."""
    clock = statistics.median(clock for clock, _ in times)
    worked = statistics.mean(worked for _, worked in times)
    more = f"   {rival / worked:6.1f} x the rival" if rival else ""
    print(f"{name:34s} {1e3 / worked:7.1f} steps/s of processor time ({worked:7.1f} ms; clock {clock:7.1f} ms){more}")
    return worked


def main() -> None:
    """Print one line per pooling, one for the baseline without a cache, and one for the whole run."""
    parser = command_line(__doc__)
    parser.add_argument("--start", default=START, help="weights of SqueezeNet 1.0")
    parser.add_argument("--steps", type=int, default=100, help="timed steps of each training run")
    parser.add_argument("--rival-steps", type=int, default=2)
    arguments = parser.parse_args()
    device = build.prepare_device("cpu", 1)
    spec = RunSpec(device="cpu").with_overrides([*SPEC, f"model.start={arguments.start}"])
    data = build.load_data(spec)
    print(f"{machine('torch')}; {len(data.labels)} images")

    began = time.perf_counter()
    training_state = build.build(spec, data, device)
    assert training_state.data.features is not None
    training_state.data.features.open()
    shape = training_state.data.features[data.splits["test"][:1]].shape[1:]
    print(f"maps {shape}: available after {time.perf_counter() - began:.1f} s")

    plain = build.build(spec, data, device)
    # Read images instead of cached feature maps, so that the frozen backbone runs in every step.
    plain.batches.dataset = plain.data = data
    rival = report("rival: GAP, without cache", steps_ms(plain, arguments.rival_steps))
    measured = {}
    for name, overrides in POOLINGS.items():
        made = build.build(spec.with_overrides(overrides), data, device)
        measured[name] = report(f"cached features: {name}", steps_ms(made, arguments.steps), rival)

    with tempfile.TemporaryDirectory() as folder:
        run = RunStore(Path(folder)).create(spec)
        with run.lock():
            began = time.perf_counter()
            state = loop.train(run)
            took = time.perf_counter() - began
    count = spec.schedule.steps
    print(f"whole run of {count} steps, GAP: {took:.1f} s ({count / took:.0f} steps/s); {state.message}")
    rate = 1e3 / measured["GAP"]
    goal = f"at least {GOAL:.0f}: {verdict(rate >= GOAL)}"
    print(f"GAP: {rate:.0f} steps/s of processor time ({goal}), {rival / measured['GAP']:.0f} x the rival")


if __name__ == "__main__":
    main()
