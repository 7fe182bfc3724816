"""Training of a backbone's last stage alone, on cached maps of the stages before it."""

import dataclasses

import numpy as np
import pytest
import torch

from dmlcore.models import backbones, networks
from dmlcore.spec import RunSpec, SpecError
from dmlcore.training import build, evaluation, loop
from dmlcore.training.errors import TrainingError

CPU = torch.device("cpu")
EARLY = RunSpec(device="cpu").with_overrides(
    [
        *("data.name=digits_pictures", "data.split=classes", "data.augment=false", "model.embedding_dim=8"),
        *("model.name=resnet18", "model.freeze=early", "loss.name=proxy_nca", "loss.proxy_start=means"),
        *("batch.classes=2", "batch.samples=4", "schedule.steps=2", "model.freeze_batch_norm=true"),
    ]
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def digits():
    """Return some of the images of digits, 32 pixels per side, of all splits."""
    whole = build.load_data(EARLY)
    splits = {name: rows[::24] for name, rows in whole.splits.items()}
    return dataclasses.replace(whole, splits=splits)


def test_only_the_last_stage_and_the_head_learn(digits):
    state = build.build(EARLY, digits, CPU)
    before = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
    for step in (1, 2):
        state.model.train()
        loop.step(state, step)
    changed = {name for name, tensor in state.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {name.split(".")[1] for name in changed if name.startswith("backbone")} == {"layer4"}
    assert changed >= {"backbone.layer4.0.conv1.weight", "head.linear.weight"}
    assert not state.model.backbone.layer1[0].bn1.training


@pytest.mark.parametrize("batch_norm", ["true", "false"])
def test_cached_maps_train_like_images(digits, batch_norm):
    spec = EARLY.with_overrides([f"model.freeze_batch_norm={batch_norm}"])
    cached = build.build(spec, digits, CPU)
    images = build.build(spec, digits, CPU)
    images.data = images.batches.dataset = dataclasses.replace(images.data, features=None)
    losses = []
    for state in (cached, images):
        state.model.train()
        losses.append(float(loop.step(state, 1).detach()))
    assert cached.data.features is not None
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)  # maps are stored in half precision


def test_the_maps_stay_valid_while_the_last_stage_learns(digits, monkeypatch):
    state = build.build(EARLY, digits, CPU)
    state.data.features.open()
    monkeypatch.setattr(state.model, "frozen_maps", lambda inputs: pytest.fail("the maps were computed again"))
    for step in (1, 2):
        loop.step(state, step)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet18", "resnet50"])
def test_early_and_late_are_the_whole_backbone(name):
    backbone = backbones.create(name).eval()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        maps = backbone.forward_early(images)
        assert maps.shape[1] == backbone.early_channels
        assert torch.equal(backbone.forward_late(maps), backbone(images))


def test_a_backbone_without_a_separable_last_stage_is_refused(digits):
    with pytest.raises(networks.ModelError, match=r"model\.freeze: the last stage of conv4 cannot be trained alone"):
        build.build(EARLY.with_overrides(["model.name=conv4"]), digits, CPU)
    with pytest.raises(SpecError, match=r"model\.freeze: mlp has no backbone"):
        RunSpec().with_overrides(["model.freeze=early"])


def test_proxies_start_at_the_class_means(digits):
    state = build.build(EARLY, digits, CPU)
    train = state.data.splits["train"]
    labels = state.data.labels[train]
    embeddings = evaluation.embed(state.model, state.data, "train", CPU)
    for label in np.unique(labels):
        mean = embeddings[labels == label].mean(0)
        np.testing.assert_allclose(state.loss.metric.proxies[label].detach().numpy(), mean, atol=1e-6)


def test_a_loss_without_one_proxy_per_class_cannot_start_at_the_means(digits):
    with pytest.raises(TrainingError, match=r"loss\.proxy_start: multi_similarity learns no proxies"):
        build.build(EARLY.with_overrides(["loss.name=multi_similarity"]), digits, CPU)
    with pytest.raises(TrainingError, match=r"loss\.proxy_start: soft_triple does not have one proxy per class"):
        build.build(EARLY.with_overrides(["loss.name=soft_triple"]), digits, CPU)


def test_the_shrinkage_changes_the_whitening_start(digits):
    lines = ["model.freeze=backbone", "model.embedding_start=whitening"]
    layers = [
        build.build(EARLY.with_overrides([*lines, f"model.shrinkage={value}"]), digits, CPU).model.head.linear.weight
        for value in (1, 4)
    ]
    assert not torch.allclose(*layers)
