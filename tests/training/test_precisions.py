"""Every pooling, loss, miner and optimiser trains in both precisions and beyond its warm-up, with GPU kernels too."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore import losses, mining, pooling
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import build as training_build
from dmlcore.training import loop, optimisers, starts
from dmlcore.training.errors import DeferredFiniteCheck
from dmlcore.training.state import TrainingState

CPU = torch.device("cpu")
WARM_UP = 2
VECTORS = RunSpec().with_overrides(
    [
        *("model.hidden=[8]", "model.embedding_dim=8", "batch.classes=4", "batch.samples=4"),
        *(f"schedule.warm_up={WARM_UP}", "schedule.steps=8", "schedule.validate_every=4"),
    ]
)
IMAGES = RunSpec().with_overrides(
    ["model.name=conv4_32", "model.embedding_dim=8", "batch.classes=4", "batch.samples=2"]
)
PROTOTYPES = ["pooling.prototypes=4", "pooling.memory=8"]  # prototypes are placed from the second batch of eight on
STARTS_LATE = {"gsp": PROTOTYPES, "gsp_gmp": PROTOTYPES}
precisions = pytest.mark.parametrize("precision", ["float32", "bfloat16"])
names = pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop", "sgd"])


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return training_build.load_data(VECTORS)


@pytest.fixture(scope="module")
def images() -> Dataset:
    """Return noise instead of photographs; the test only needs steps to succeed."""
    labels = np.arange(32) % 4
    noise = np.random.default_rng(0).integers(0, 256, (32, 3, 32, 32), np.uint8)
    splits = {"train": np.arange(24), "validation": np.arange(0), "test": np.arange(24, 32)}
    return Dataset("noise", noise, labels, tuple("abcd"), splits, None, ())


def train_steps(spec: RunSpec, dataset: Dataset, steps: int) -> TrainingState:
    """Make the steps; assert that trained parameters change and stay finite."""
    state = training_build.build(spec, dataset, CPU)
    before = {name: tensor.detach().clone() for name, tensor in state.model.named_parameters()}
    state.model.train()
    for step in range(1, steps + 1):
        loop.step(state, step)
    for name, tensor in state.model.named_parameters():
        assert torch.isfinite(tensor).all(), name
        assert not torch.equal(before[name], tensor), name
    return state


@precisions
@pytest.mark.parametrize("name", pooling.names())
def test_every_pooling_trains(name: str, precision: str, images: Dataset) -> None:
    overrides = [f"pooling.name={name}", f"compute.precision={precision}", *STARTS_LATE.get(name, [])]
    state = train_steps(IMAGES.with_overrides(overrides), images, 3)
    assert state.model.pooling_ready


@precisions
def test_bags_of_tokens_train_once_their_prototypes_are_placed(precision: str) -> None:
    tokens = ["data.name=tokens", "model.name=tokens", "model.embedding_dim=2", "batch.classes=4", "batch.samples=2"]
    spec = RunSpec().with_overrides([*tokens, "pooling.name=gsp", *PROTOTYPES, f"compute.precision={precision}"])
    assert train_steps(spec, training_build.load_data(spec), 3).model.pooling_ready


@precisions
@pytest.mark.parametrize("name", losses.LOSSES)
def test_every_loss_trains_past_the_warm_up(name: str, precision: str, digits: Dataset) -> None:
    train_steps(VECTORS.with_overrides([f"loss.name={name}", f"compute.precision={precision}"]), digits, WARM_UP + 2)


@precisions
@pytest.mark.parametrize("name", mining.names())
def test_every_miner_trains_past_the_warm_up(name: str, precision: str, digits: Dataset) -> None:
    overrides = [f"miner.name={name}", "loss.m=1", f"compute.precision={precision}"]  # all triplets are active
    train_steps(VECTORS.with_overrides(overrides), digits, WARM_UP + 2)


@precisions
@names
def test_every_optimiser_trains_past_the_warm_up(name: str, precision: str, digits: Dataset) -> None:
    spec = VECTORS.with_overrides([f"optimiser.name={name}", f"compute.precision={precision}"])
    train_steps(spec, digits, WARM_UP + 2)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use kernels and checks as on a GPU: fused where such kernels exist, and no step waits for its check."""

    def build(*args: object, **options: object) -> TrainingState:
        state = training_build.build(*args, **options)
        if optimisers.is_fused(state.optimiser):
            state.finite_check = DeferredFiniteCheck(CPU)
        return state

    monkeypatch.setattr(optimisers, "_fused", lambda name, parameters: name != "rmsprop")
    monkeypatch.setattr(starts, "build", build)


def train_run(run: Run, upto: int | None = None) -> None:
    steps = iter(range(1000))
    with run.lock():
        run.update(state="queued")
        state = loop.train(run, stop=lambda: upto is not None and next(steps) == upto - 1)
    assert state.state == ("done" if upto is None else "cancelled"), state.message


@pytest.mark.usefixtures("fused")
@names
def test_fused_kernels_train_past_the_warm_up(name: str, tmp_path: Path) -> None:
    store, spec = RunStore(tmp_path), VECTORS.with_overrides([f"optimiser.name={name}"])
    whole, stopped = store.create(spec), store.create(spec)
    train_run(whole)
    train_run(stopped, upto=WARM_UP + 1)
    train_run(stopped)
    assert (stopped.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()


def test_fused_momentum_begins_as_the_plain_one_does(digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = VECTORS.with_overrides(["optimiser.name=sgd"])
    plain = train_steps(spec, digits, WARM_UP + 2)
    monkeypatch.setattr(optimisers, "_fused", lambda *_: True)
    made = train_steps(spec, digits, WARM_UP + 2)
    for expected, found in zip(plain.model.parameters(), made.model.parameters(), strict=True):
        assert torch.allclose(expected, found, rtol=1e-5, atol=1e-7)


@names
def test_a_run_begun_with_plain_kernels_is_resumed_and_forked_where_updates_wait(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = RunStore(tmp_path)
    spec = VECTORS.with_overrides([f"optimiser.name={name}", "schedule.keep_every=3"])
    whole, stopped = store.create(spec), store.create(spec)
    train_run(whole)
    train_run(stopped, upto=WARM_UP + 1)
    request.getfixturevalue("fused")
    train_run(stopped)
    fork = store.create(spec.with_overrides([f"fork.run={whole.id}", "fork.step=3"]))
    train_run(fork)
    for run in (stopped, fork):
        steps = [row for row in run.metrics()[0] if row["kind"] == "step" and row["step"] > WARM_UP + 1]
        assert steps == [row for row in whole.metrics()[0] if row["kind"] == "step" and row["step"] > WARM_UP + 1]


def test_another_device_is_said_where_a_run_goes_on(tmp_path: Path) -> None:
    run = RunStore(tmp_path).create(VECTORS)
    train_run(run, upto=3)
    saved = loop.checkpoint.load(run.path)
    assert saved.facts["device"] == "CPU"
    loop.checkpoint.save(run.path, saved.tensors, saved.facts | {"device": "NVIDIA H100"})
    train_run(run)
    assert "device NVIDIA H100 before, CPU now" in run.state().message
