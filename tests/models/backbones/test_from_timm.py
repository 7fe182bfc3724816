"""Adapter for timm: a stand-in with timm's interface shows the handling of maps, tokens and unsuitable networks."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dmlcore.models import backbones, networks, pretrained
from dmlcore.models.networks import ModelError
from dmlcore.spec import ModelSpec


class Patches(nn.Module):
    """One convolution into patches of 16, returned in the layouts of timm's families."""

    def __init__(self, kind: str, prefix: int = 0) -> None:
        super().__init__()
        self.kind, self.num_features, self.num_prefix_tokens = kind, 6, prefix
        self.stem = nn.Conv2d(3, 6, 16, 16)
        self.bn = nn.BatchNorm2d(6)
        if kind == "hidden":
            self.num_features, self.head_hidden_size = 4, 6

    def forward(self, images: Tensor) -> Tensor:
        x: Tensor = self.bn(self.stem(images))
        if self.kind in ("maps", "hidden"):
            return x
        if self.kind == "last":
            return x.permute(0, 2, 3, 1)
        if self.kind == "pooled":
            return x.mean((2, 3))
        tokens = x.flatten(2).mT
        return torch.cat([tokens.new_full((len(tokens), self.num_prefix_tokens, 6), 99.0), tokens], 1)


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Install the stand-in in place of timm; return the arguments of each created network."""
    asked: list[dict[str, Any]] = []
    kinds = {"maps": 0, "hidden": 0, "last": 0, "pooled": 0, "tokens": 1, "registers": 5, "distilled": 2}

    def create_model(name: str, **options: Any) -> nn.Module:
        assert name != "distilled", "The distilled head reads two tokens."
        asked.append({"name": name, **options})
        return Patches(name, kinds[name])

    def get_pretrained_cfg(name: str) -> SimpleNamespace:
        fixed = name in ("tokens", "registers")
        return SimpleNamespace(
            mean=(0.5, 0.4, 0.3), std=(0.1, 0.2, 0.4), fixed_input_size=fixed, classifier=("head", "head_dist")
        )

    module = ModuleType("timm")
    vars(module).update(
        create_model=create_model, get_pretrained_cfg=get_pretrained_cfg, is_model=lambda name: name in kinds
    )
    monkeypatch.setitem(sys.modules, "timm", module)
    return asked


def build(kind: str, shape: tuple[int, int] = (64, 96)) -> networks.ImageNetwork:
    made = networks.build(ModelSpec(name=f"timm:{kind}", embedding_dim=5), (3, *shape), seed=0).eval()
    assert isinstance(made, networks.ImageNetwork)
    return made


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("kind", ["maps", "hidden", "last", "tokens", "registers"])
def test_all_kinds_of_features_become_the_same_map(kind: str) -> None:
    model = build(kind)
    images = torch.randint(0, 256, (2, 3, 64, 96), dtype=torch.uint8)
    network = model.backbone.network
    expected = network.bn(network.stem(model.normalise(images)))
    assert expected.shape == (2, 6, 4, 6)
    torch.testing.assert_close(model.features(images), expected)
    assert model(images).shape == (2, 5)


def test_networks_are_made_without_pool_head_and_weights_for_their_images(timm: list[dict[str, Any]]) -> None:
    build("maps")
    build("tokens")
    plain = {"pretrained": False, "num_classes": 0, "global_pool": ""}
    assert timm == [{"name": "maps", **plain}, {"name": "tokens", **plain, "img_size": (64, 96)}]


@pytest.mark.usefixtures("timm")
def test_normalisation_is_the_networks_own() -> None:
    white = torch.full((1, 3, 64, 96), 255, dtype=torch.uint8)
    assert build("maps").normalise(white)[0, :, 0, 0].tolist() == pytest.approx([5.0, 3.0, 1.75])
    assert backbones.create("resnet20").normalisation == backbones.IMAGENET  # nobody else's


@pytest.mark.usefixtures("timm")
def test_a_file_of_timms_weights_is_loaded_strictly_less_its_classifiers() -> None:
    backbone = backbones.create("timm:maps")
    state = {k: torch.full_like(v, 2) for k, v in backbone.network.state_dict().items()}
    pretrained.assign(backbone, state | {"head.weight": torch.zeros(9, 6), "head_dist.bias": torch.zeros(9)}, "file")
    assert all(torch.equal(v, torch.full_like(v, 2)) for v in backbone.state_dict().values())
    with pytest.raises(pretrained.WeightsError, match=r"lacks network\.stem\.bias; it has unknown network\.other"):
        pretrained.assign(
            backbone, {k: v for k, v in state.items() if k != "stem.bias"} | {"other": torch.ones(1)}, "file"
        )


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("no_such", "model.name: timm has no network 'no_such'"),
        ("distilled", "model.name: timm:distilled cannot be created without its global pooling: The distilled"),
    ],
)
def test_networks_that_cannot_be_made_are_refused(kind: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build(kind)


@pytest.mark.usefixtures("timm")
def test_what_is_no_map_is_refused() -> None:
    with pytest.raises(ValueError, match=r"timm:pooled gives features of shape \(1, 6\), not a map of 6 channels"):
        build("pooled")(torch.zeros(1, 3, 64, 96))


@pytest.mark.usefixtures("timm")
def test_the_classifier_of_timm_cannot_be_kept() -> None:
    spec = ModelSpec(name="timm:maps", keep_classifier=True)
    with pytest.raises(ModelError, match=r"model\.keep_classifier: the classifier of timm:maps cannot be kept"):
        networks.build(spec, (3, 64, 64), seed=0)


def test_without_timm_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)  # import fails
    with pytest.raises(ModelError, match=r"model\.name: timm:vit_tiny needs timm, .* pip install timm"):
        networks.build(ModelSpec(name="timm:vit_tiny"), (3, 64, 64), seed=0)
