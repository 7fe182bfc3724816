"""Runs of ensembles: what they log at each step, and that a resume in the middle repeats them bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop

SPEC = RunSpec().with_overrides(
    [
        *("loss.name=wedl", "loss.compression=on", "loss.learning_rate=0.05", "loss.weights_rate=network"),
        *("loss.classifier=off", "optimiser.learning_rate=0.01", "model.hidden=[8]", "model.embedding_dim=12"),
        *("batch.samples=4", "batch.classes=4", "schedule.steps=12", "schedule.validate_every=4"),
        *("schedule.checkpoint_every=100", "schedule.cluster=true"),
    ]
)
MEMBERS = ("triplet", "binomial", "proxy_nca")


def trained(store: RunStore, spec: RunSpec, stops: tuple[int, ...] = ()) -> Run:
    run = store.create(spec)
    with run.lock():
        for stop in stops:
            asked = iter([False] * (stop - run.state().step - 1) + [True])  # once a step
            loop.train(run, stop=lambda asked=asked: next(asked))
            assert run.state().step == stop
            run.update(state="queued")
        assert loop.train(run).state == "done"
    return run


@pytest.mark.parametrize("order", ["update_first", "normalise_first"])
def test_a_resume_in_the_middle_of_an_ensemble_repeats_it_bit_for_bit(tmp_path: Path, order: str) -> None:
    """Running means, weights, proxies, the compression network and all of their moments come back."""
    spec = SPEC.with_overrides([f"loss.order={order}"])
    whole, stopped = trained(RunStore(tmp_path), spec), trained(RunStore(tmp_path), spec, stops=(1, 4, 7))
    assert (stopped.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()
    one, two = checkpoint.load(whole.path), checkpoint.load(stopped.path)
    assert one is not None
    assert two is not None
    assert one.tensors.keys() == two.tensors.keys()
    assert {"loss.metric.rescaling.means", "loss.metric.rescaling.steps", "loss.metric.coefficients.roots"} <= (
        one.tensors.keys()
    )
    assert all(torch.equal(one.tensors[name], two.tensors[name]) for name in one.tensors)


def test_each_step_tells_the_loss_and_the_weight_of_every_member(tmp_path: Path) -> None:
    run = trained(RunStore(tmp_path), SPEC)
    rows = run.metrics()[0]
    steps = [row for row in rows if row["kind"] == "step"]
    assert len(steps) == SPEC.schedule.steps
    weights = [[row[f"weight_{name}"] for name in MEMBERS] for row in steps]
    assert weights[0] == pytest.approx([1 / 6, 2 / 6, 3 / 6], rel=1e-6)
    assert weights[-1] != pytest.approx(weights[0], rel=1e-3)  # they learn
    assert all(sum(each) == pytest.approx(1, abs=0.05) for each in weights)
    for row in steps:
        assert {key for key in row if key.startswith("loss_")} == {f"loss_{name}" for name in MEMBERS}
        assert 0 <= row["diversity"] <= 3  # 2 M / (M - 1)
    validations = [row for row in rows if row["kind"] == "validation"]
    assert validations
    assert all(0 < row["nmi"] <= 1 for row in validations)
