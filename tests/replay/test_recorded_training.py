from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.losses.threshold_consistency import ThresholdConsistentMargin
from dmlcore.replay import recorded_training
from dmlcore.replay.recorded_training import LiveSpec, LiveTraining, SpecChange, _sided
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunStore
from dmlcore.training.build import Objective, TrainingError
from dmlcore.training.loop import train

TOY = RunSpec().with_overrides(
    ["data.name=toy", "model.hidden=[8]", "model.embedding_dim=2", "batch.classes=4", "batch.samples=4", "seed=3"]
)
BAGS = RunSpec().with_overrides(
    ["data.name=tokens", "model.name=tokens", "model.embedding_dim=2", "model.normalize=false", "loss.name=contrastive"]
)


def same(a: LiveTraining, b: LiveTraining) -> bool:
    return len(a.frames) == len(b.frames) and all(
        x.loss == y.loss and np.array_equal(x.embeddings, y.embeddings) for x, y in zip(a.frames, b.frames, strict=True)
    )


def test_it_makes_the_very_steps_of_a_run(tmp_path) -> None:
    spec = TOY.with_overrides(["schedule.steps=12", "data.validation=none"])
    run = RunStore(tmp_path).create(spec)
    with run.lock():
        assert train(run).state == "done"
    trained = [row["loss"] for row in run.metrics()[0] if row["kind"] == "step"]
    live = LiveTraining(LiveSpec(spec))
    live.frame(12)
    assert live.curves(1)["loss"] == pytest.approx(trained, rel=1e-6)


def test_frames_are_kept_and_scored_now_and_then() -> None:
    live = LiveTraining(LiveSpec(TOY, per_class=5))
    assert live.recorded == 0
    assert live.frame(0).loss is None
    assert live.frame(21) is live.frames[21]
    scored = [f.step for f in live.frames if f.map_at_r is not None]
    assert scored == [0, 10, 20]
    assert live.frames[3].embeddings.shape == (len(live.watched), 2)
    assert np.isnan(live.curves()["loss"][0])
    with pytest.raises(ValueError, match="step must be in"):
        live.frame(-1)


@pytest.mark.parametrize(
    "change",
    [
        SpecChange(20, ("loss.m=0.5",)),
        SpecChange(20, ("loss.name=distance_sensitive", "optimiser.learning_rate=0.01")),
        SpecChange(20, ("loss.name=proxy_nca",)),
        SpecChange(20, moves="pulls"),
    ],
)
def test_a_fork_shares_the_past_and_equals_a_fresh_training(
    change: SpecChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_training, "SNAPSHOT_EVERY", 16)  # the change is between two checkpoints
    live = LiveTraining(LiveSpec(TOY, per_class=5))
    live.frame(26)
    fork = live.forked(replace(live.spec, changes=(change,)))
    assert fork.recorded == 20
    assert fork.frames[20] is live.frames[20]
    fork.frame(24)
    assert not np.array_equal(fork.frames[21].embeddings, live.frames[21].embeddings)
    fresh = LiveTraining(LiveSpec(TOY, (change,), per_class=5))
    fresh.frame(24)
    assert same(fork, fresh)
    live.frame(35)  # the first history is unaffected
    alone = LiveTraining(LiveSpec(TOY, per_class=5))
    alone.frame(35)
    assert same(live, alone)


@pytest.mark.parametrize("weight", [0.0, 0.5])
@pytest.mark.parametrize("name", ["ranking", "ratio", "contrastive", "threshold_consistent_margin"])
def test_pulls_and_pushes_alone_are_the_two_parts_of_the_whole(name: str, weight: float) -> None:
    tcm = ThresholdConsistentMargin(0.8, 0.2) if weight else None
    objective = Objective(losses.for_training(name, classes=3, embedding_dim=2), tcm=tcm, tcm_weight=weight)
    points = 0.2 * torch.randn(9, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = torch.arange(9) % 3

    def gradient(moves: str) -> torch.Tensor:
        x = points.clone().requires_grad_()
        (_sided(objective, moves) or objective)(x, labels, None).backward()
        return x.grad

    assert torch.allclose(gradient("pulls") + gradient("pushes"), gradient("both"), atol=1e-12)
    assert gradient("pulls").abs().max() > 0
    assert gradient("pushes").abs().max() > 0


def test_bags_show_their_tokens_and_what_each_class_takes_from_them() -> None:
    spec = BAGS.with_overrides(
        ["pooling.name=gsp", "pooling.prototypes=8", "pooling.memory=64", "batch.classes=16", "batch.samples=2"]
    )
    live = LiveTraining(LiveSpec(spec, per_class=6, splits=("validation",)))
    frame = live.frame(3)
    assert frame.tokens.shape == (68, 2)
    assert frame.prototypes.shape == (8, 2)
    assert live.frames[0].prototypes is None  # not placed before the memory is full
    assert frame.histograms.shape == (16, 68)
    assert frame.histograms.sum(1) == pytest.approx(np.ones(16), abs=1e-5)
    ids = live.dataset.inputs[live.watched]
    counts = np.stack(
        [np.bincount(ids[live.dataset.labels[live.watched] == c].ravel(), minlength=68) for c in range(16)]
    )
    assert live.frames[0].histograms == pytest.approx(counts / counts.sum(1, keepdims=True), abs=1e-6)


def test_what_cannot_change_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"model.embedding_dim=3: cannot change while training; can: loss"):
        LiveSpec(TOY, (SpecChange(3, ("model.embedding_dim=3",)),))
    with pytest.raises(SpecError, match=r"optimiser.learning_rate"):
        LiveSpec(TOY, (SpecChange(3, ("optimiser.learning_rate=-1",)),))
    with pytest.raises(ValueError, match="moves must be"):
        LiveSpec(TOY, (SpecChange(3, moves="up"),))
    with pytest.raises(TrainingError, match="no split 'exam'"):
        LiveTraining(LiveSpec(TOY, splits=("exam",)))
    proxies = LiveTraining(LiveSpec(TOY.with_overrides(["loss.name=proxy_nca"]), (SpecChange(0, moves="pulls"),)))
    with pytest.raises(TrainingError, match="pulls alone are known for triplet losses, contrastive and"):
        proxies.frame(1)
