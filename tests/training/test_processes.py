"""Training by several processes equals training by one: gradients, batches, resumes with another number of processes.

The processes of each number are started once and perform all tasks; the tests check what they wrote.
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore import processes
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore, series
from dmlcore.training import loop
from dmlcore.training.batches import Batches
from tests.started import run_python
from tests.training import together

pytestmark = pytest.mark.processes

COUNTS = (2, 4)
PRECISIONS = {"float32": 1e-6, "float64": 1e-12}
CROPS = ("shift", "affine", "resized")
STEPS, PAUSE = 12, 4
# Projections, validations that choose the best weights, proxies, momentum.
SPEC = RunSpec().with_overrides(
    [
        *together.SHARED,
        *together.INPUTS["vectors"],
        # Proxies are placed on samples. If the loss has a kink there, rounding decides its gradient; this loss has none
        # inside the unit ball.
        "loss.name=multi_similarity_proxy",
        "model.normalize=false",
        "data.standardize=false",
        "projection.pool=8",
        "projection.patience=1",
        "optimiser.learning_rate=0.05",
        f"schedule.steps={STEPS}",
        "schedule.validate_every=2",
        "schedule.checkpoint_every=2",
        "schedule.measure_every=2",
        "schedule.covering_every=3",
        "schedule.validate_test=true",
    ]
)


# Further settings that use the samples of a batch as a whole.
METHODS = {
    "conditioned": ["conditioning.neighbours=3", "conditioning.after=3", "conditioning.among=train"],
    "neighbourhoods": ["batch.sampler=neighbourhood", "batch.neighbours=4", "batch.balanced_steps=3"],
}
SHORT = RunSpec().with_overrides(
    [*together.SHARED, *together.INPUTS["vectors"], "schedule.steps=6", "schedule.validate_every=3"]
)


def conduct(run: Run, until: int = 0) -> None:
    """Train or resume as a process of a group, or alone, to the end or to a given number of steps."""
    data = together.data("vectors", "float32")
    data = replace(data, inputs=data.inputs[:] / 10)
    if processes.rank():
        loop.follow(data)
        return
    with run.lock():
        if run.state().state != "queued":
            launch.prepare_resume(run)
        steps = itertools.count(run.state().step + 1)
        assert loop.train(run, dataset=data, stop=lambda: next(steps) == until).state in ("cancelled", "done")


def cut(crop: str) -> torch.Tensor:
    """Return all rows of a batch of images."""
    data = together.data("images", "float32")
    data = replace(data, inputs=data.inputs[:].clip(0, 255).astype(np.uint8))
    spec = RunSpec().with_overrides(
        [*together.SHARED, *together.INPUTS["images"], "data.augment=true", f"data.crop={crop}"]
    )
    batch = Batches(spec, data, torch.device("cpu")).make(3, lambda indices: np.empty(0, np.float32))
    return processes.gather(batch.inputs, len(batch.labels))


def is_made(case: together.Case, precision: str, count: int) -> bool:
    """Return True for cases that two processes compute in float64; ddp.py computes all others."""
    return case.few or (precision, count) == ("float64", 2)


def examine(folder: Path, runs: dict[str, Path]) -> None:
    """Run the tasks of one process of a group."""
    results: dict[str, Any] = {
        f"{case.name}|{precision}": together.gradients(case, precision)
        for case in together.cases()
        for precision in PRECISIONS
        if is_made(case, precision, processes.size())
    }
    results |= {crop: cut(crop).numpy() for crop in CROPS}
    if processes.rank() == 0:
        np.savez(folder / f"{processes.size()}.npz", **results)
    for name, path in runs.items():
        if name == "interrupted":
            conduct(Run(path), until=PAUSE)
        conduct(Run(path), until=PAUSE if name == "first" else 0)


class Trained:
    """Results of one process and of groups; runs by name."""

    def __init__(self, folder: Path) -> None:
        self.folder, store = folder, RunStore(folder / "runs")
        self.runs = {name: store.open(run) for name, run in json.loads((folder / "runs.json").read_text()).items()}

    def of(self, count: int, name: str) -> np.ndarray:
        with np.load(self.folder / f"{count}.npz") as file:
            values: np.ndarray = file[name]
        return values


def make(folder: Path) -> None:
    """Compute the results that the tests check, in a process of its own, from which those of the groups are forked."""
    store = RunStore(folder / "runs")
    runs = {f"{name} {count}": store.create(SPEC) for name in ("whole", "interrupted") for count in COUNTS}
    runs |= {name: store.create(SPEC) for name in ("alone", "by turns")}
    methods = {name: store.create(SHORT.with_overrides(keys)) for name, keys in METHODS.items()}
    runs |= methods | {f"{name} alone": store.create(run.spec) for name, run in methods.items()}
    (folder / "runs.json").write_text(json.dumps({name: run.id for name, run in runs.items()}))
    for name in METHODS:
        conduct(runs[f"{name} alone"])
    conduct(runs["alone"])
    # 2 -> 1 -> 4 processes
    for count, name in zip(COUNTS, ("first", "last"), strict=True):
        own = {each: runs[f"{each} {count}"].path for each in ("whole", "interrupted")}
        if count == COUNTS[0]:
            own |= {each: run.path for each, run in methods.items()}
        together.run_together(count, examine, folder, own | {name: runs["by turns"].path}, fork=True)
        if count == COUNTS[0]:
            conduct(runs["by turns"], until=2 * PAUSE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("processes")
    made = run_python("-c", f"from {__name__} import make, Path; make(Path({str(folder)!r}))")
    assert made.returncode == 0, made.stderr
    return Trained(folder)


@pytest.mark.parametrize("case", together.cases(), ids=lambda case: case.name)
def test_gradients_equal_those_of_one_process(trained: Trained, case: together.Case) -> None:
    made = [(precision, count) for precision in PRECISIONS for count in COUNTS if is_made(case, precision, count)]
    alone = {precision: together.gradients(case, precision) for precision in dict(made)}
    for precision, count in made:
        most = PRECISIONS[precision]
        if case.kind == "images":  # in float32 a backbone with batch norm loses digits even with one process
            most = max(most, 2 * together.error(alone[precision], alone["float64"]))
        found = trained.of(count, f"{case.name}|{precision}")
        assert together.error(found, alone[precision]) <= most, (precision, count)


@pytest.mark.parametrize("crop", CROPS)
def test_images_are_cut_as_in_the_whole_batch(trained: Trained, crop: str) -> None:
    for count in COUNTS:
        assert np.array_equal(trained.of(count, crop), cut(crop).numpy())


@pytest.mark.parametrize("count", COUNTS)
def test_a_resumed_run_equals_one_that_was_not_stopped(trained: Trained, count: int) -> None:
    whole, interrupted = (trained.runs[f"{name} {count}"] for name in ("whole", "interrupted"))
    assert whole.state().state == interrupted.state().state == "done"
    assert saved(whole).digest == saved(interrupted).digest
    assert (whole.path / "metrics.jsonl").read_bytes() == (interrupted.path / "metrics.jsonl").read_bytes()


def test_another_number_of_processes_goes_on_with_a_run(trained: Trained) -> None:
    alone, by_turns = trained.runs["alone"], trained.runs["by turns"]
    assert by_turns.state().state == "done"
    assert "processes 1 before, 4 now" in by_turns.state().message
    assert together.error(weights(by_turns), weights(alone)) < 1e-5
    for kind, field in (
        ("step", "loss"),
        ("validation", "map_at_r"),
        ("measure", "gradient_norm"),
        ("covering", "train_radius"),
    ):
        one, other = (series(run.metrics()[0], kind, field) for run in (alone, by_turns))
        assert one[0] == other[0]
        assert np.allclose(one[1], other[1], rtol=1e-4)
    assert [row["projection"] for row in by_turns.metrics()[0] if row["kind"] == "projection"]


@pytest.mark.parametrize("name", METHODS)
def test_what_a_run_does_with_all_its_samples_is_done_together(trained: Trained, name: str) -> None:
    one, two = trained.runs[f"{name} alone"], trained.runs[name]
    assert two.state().state == "done"
    assert together.error(weights(two), weights(one)) < 1e-5
    kinds = [[(row["kind"], row["step"]) for row in run.metrics()[0]] for run in (one, two)]
    assert kinds[0] == kinds[1]


def weights(run: Run) -> np.ndarray:
    tensors = checkpoint.select_prefix(saved(run).tensors, "model")
    return np.concatenate([tensors[name].numpy().ravel() for name in sorted(tensors)])[None]


def saved(run: Run) -> checkpoint.Checkpoint:
    found = checkpoint.load(run.path)
    assert found
    return found
