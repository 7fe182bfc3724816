"""Runs of ensembles: values logged at each step, and bit-for-bit resumes."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import batches, build, loop
from dmlcore.training.objective import Objective
from dmlcore.training.state import embedder, keep_best, use_best
from dmlcore.training.state import tensors as tensors_of
from tests.training.resumed import trained

BASE = RunSpec().with_overrides(
    [
        *("optimiser.learning_rate=0.01", "model.hidden=[8]", "model.embedding_dim=12"),
        *("batch.samples=4", "batch.classes=4", "schedule.steps=12", "schedule.validate_every=4"),
        *("schedule.checkpoint_every=100", "schedule.cluster=true"),
    ]
)
SPEC = BASE.with_overrides(
    [
        *("loss.name=wedl", "loss.compression=on", "loss.learning_rate=0.05", "loss.weights_rate=network"),
        "loss.classifier=off",
    ]
)
MEMBERS = ("triplet", "binomial", "proxy_nca")


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


def test_the_classifier_of_a_run_learns_from_what_the_embedding_layer_takes() -> None:
    """The classifier has the width of the last features; its gradient reaches the layers before them."""
    spec = RunSpec().with_overrides(
        [
            *("loss.name=wel", "loss.classifier_input=features", "loss.triplet=off", "loss.proxy_nca=off"),
            *("loss.weights=fixed", "model.hidden=[8]", "model.embedding_dim=4", "batch.classes=4"),
        ]
    )
    state = build.build(spec, build.load_data(spec), torch.device("cpu"))
    classifier = state.loss.metric.members[0]
    assert classifier.proxies.shape[1] == 8
    before = classifier.proxies.detach().clone()
    loop.step(state, 1)
    assert state.model.pooled.shape == (32, 8)
    assert not torch.equal(classifier.proxies, before)
    expected = torch.autograd.grad(classifier(state.model.pooled, state.last_batch[1]), state.model.pooled)[0]
    assert expected.abs().sum() > 0
    copied = copy.deepcopy(state.model)  # holds no graph of the batch
    assert copied.pooled is None
    plain = spec.with_overrides(["loss.classifier_input=embedding"])
    state = build.build(plain, state.data, torch.device("cpu"))
    loop.step(state, 1)
    assert state.model.pooled is None  # tensors that nobody reads are not stored


@pytest.mark.parametrize("changes", [["model.name=tokens"], ["model.name=conv4", "pooling.name=gsp"]])
def test_a_network_that_pools_last_has_nothing_for_the_classifier(changes: list[str]) -> None:
    spec = RunSpec().with_overrides(["loss.name=wel", "loss.classifier_input=features", *changes])
    with pytest.raises(build.TrainingError, match="no features before its embedding"):
        build.refuse_unusable(spec)


class _Halves(nn.Module):
    """A loss with a parameter that takes part in embedding, like the losses of ensembles."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return (self.scale * embeddings).square().sum()

    def embed(self, embeddings: Tensor) -> Tensor:
        return self.scale * embeddings[:, :2]


def test_a_loss_that_embeds_is_part_of_what_is_scored_and_of_the_best_weights() -> None:
    spec = RunSpec().with_overrides(["model.hidden=[8]", "model.embedding_dim=4", "batch.classes=4"])
    state = build.build(spec, build.load_data(spec), torch.device("cpu"))
    assert embedder(state) is state.model
    state.loss = Objective(_Halves())
    inputs = batches.to_device(state.data, state.data.splits["test"][:8], torch.device("cpu"))
    before = embedder(state)(inputs)
    assert torch.equal(before, state.model(inputs)[:, :2])
    keep_best(state)
    tensors = {key: tensor.clone() for key, tensor in tensors_of(state).items()}
    with torch.no_grad():
        state.loss.metric.scale.fill_(3.0)
    assert not torch.equal(embedder(state)(inputs), before)
    use_best(state)
    assert torch.equal(embedder(state)(inputs), before)
    assert tensors["best_loss.metric.scale"] == 1
