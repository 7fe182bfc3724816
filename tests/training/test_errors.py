from pathlib import Path

import pytest
import torch

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import build as training_build
from dmlcore.training import loop, optimisers, starts
from dmlcore.training.errors import DeferredFiniteCheck, StepError
from dmlcore.training.state import TrainingState
from tests.training.resumed import trained

CPU = torch.device("cpu")
SPEC = RunSpec().with_overrides(
    ["model.hidden=[8]", "batch.classes=4", "batch.samples=2", "schedule.steps=12", "schedule.validate_every=6"]
)


def deferred(spec: RunSpec) -> TrainingState:
    """Return a training state as on a GPU: fused kernels, and a finite check that never waits."""
    made = training_build.build(spec, training_build.load_data(spec), CPU)
    made.finite_check = DeferredFiniteCheck(CPU)
    assert optimisers.is_fused(made.optimiser)
    return made


def weights(made: TrainingState) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in made.model.state_dict().items()}


@pytest.fixture(autouse=True)
def _fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimisers, "LARGE", 1)


@pytest.mark.parametrize("what", ["loss", "gradient"])
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_deferred_check_stops_the_weights_at_the_first_bad_step(what: str, name: str) -> None:
    made = deferred(SPEC.with_overrides([f"optimiser.name={name}"]))
    if what == "gradient":
        spoil = iter([1.0, 1.0, float("inf"), 1.0, 1.0])
        next(made.model.parameters()).register_hook(lambda gradient: gradient * next(spoil))
    for step in (1, 2):
        loop.step(made, step)
    made.finite_check.wait()  # no error so far
    before = weights(made)
    for step in (3, 4, 5):
        factor = float("nan") if what == "loss" and step == 3 else 1.0
        loop.step(made, step, lambda *batch, factor=factor: made.loss(*batch) * factor)
    assert all(torch.equal(tensor, before[key]) for key, tensor in weights(made).items())
    with pytest.raises(StepError, match=f"step 3 failed: the {what} is NaN or infinite") as caught:
        made.finite_check.wait()
    train = made.data.splits["train"]
    assert caught.value.indices == train[made.batches.sampler.batch(3)].tolist()


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_step_that_is_judged_at_once_is_not_made(what: str) -> None:
    made = training_build.build(SPEC, training_build.load_data(SPEC), CPU)
    assert made.finite_check is None
    loop.step(made, 1)
    before = weights(made)
    if what == "gradient":
        next(made.model.parameters()).register_hook(lambda gradient: gradient * torch.inf)
    factor = torch.nan if what == "loss" else 1.0
    with pytest.raises(StepError, match=f"step 2 failed: the {what} is NaN or infinite"):
        loop.step(made, 2, lambda *batch: made.loss(*batch) * factor)
    assert all(torch.equal(tensor, before[key]) for key, tensor in weights(made).items())


def test_a_training_that_waits_for_nothing_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_of(build: object) -> bytes:
        monkeypatch.setattr(starts, "build", build)
        return (trained(RunStore(tmp_path), SPEC).path / "metrics.jsonl").read_bytes()

    def build_deferred(*args: object, **options: object) -> TrainingState:
        made = training_build.build(*args, **options)
        made.finite_check = DeferredFiniteCheck(CPU)
        return made

    assert rows_of(build_deferred) == rows_of(training_build.build)


def test_a_deferred_failure_ends_the_run_at_its_last_good_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*args: object, **options: object) -> TrainingState:
        made = training_build.build(*args, **options)
        made.finite_check = DeferredFiniteCheck(CPU)
        spoil = iter([1.0] * 8 + [float("nan")] * 9)
        next(made.model.parameters()).register_hook(lambda gradient: gradient * next(spoil))
        return made

    monkeypatch.setattr(starts, "build", build)
    run = RunStore(tmp_path).create(SPEC)
    with run.lock():
        state = loop.train(run)
    assert state.state == "failed"
    assert "step 9 failed" in state.message
    steps = [row["step"] for row in run.metrics()[0] if row["kind"] == "step"]
    assert steps == list(range(1, steps[-1] + 1))
    assert steps[-1] <= 8
