"""Every backbone compared with the public network: recorded everywhere, live where torchvision is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from dmlcore.models import backbones
from tests.members import in_one_case
from tests.models.backbones import golden, golden_lite

GOLDEN: dict[str, Any] = json.loads(golden.PATH.read_text())


@in_one_case(name=GOLDEN)
def test_names_shapes_and_parameters_are_those_of_the_public_network(name: str) -> None:
    with torch.device("meta"):
        model = backbones.create(name)
        if name not in golden.HEADLESS:
            model.keep_classifier()
        assert golden.layout(model.state_dict()) == GOLDEN[name]["layout"]
    assert sum(p.numel() for p in model.parameters()) == GOLDEN[name]["parameters"]


# In millions, as papers and torchvision's table print them.
@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet18", 11.69),
        ("resnet34", 21.80),
        ("resnet50", 25.56),
        ("resnet101", 44.55),
        ("googlenet", 6.62),
        ("bn_inception", 11.30),
        ("efficientnet_lite0", 4.65),
        ("efficientnet_lite1", 5.42),
        ("efficientnet_lite2", 6.09),
    ],
)
def test_the_record_has_the_sizes_that_are_published(name: str, millions: float) -> None:
    assert GOLDEN[name]["parameters"] / 1e6 == pytest.approx(millions, abs=0.005)


@in_one_case(name=["resnet18", "resnet50", "googlenet", "bn_inception", *golden_lite.NAMES, *golden.HEADLESS])
def test_features_are_those_of_the_public_network(name: str) -> None:
    model = backbones.create(name).double().eval()
    golden.fill(model)
    with torch.no_grad():
        found = golden.outputs(model(golden.image()))
    assert found == pytest.approx(GOLDEN[name]["outputs"], rel=1e-9, abs=1e-9)


@in_one_case(name=["resnet18", "resnet50", "googlenet"], size=[(64, 64), (97, 64)])
def test_forward_pass_equals_torchvisions(name: str, size: tuple[int, int]) -> None:
    published = _torchvision()
    model = backbones.create(name)
    model.keep_classifier()
    golden.fill(model.eval())
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    twin = getattr(published, name)(weights=None, **options).eval()
    twin.load_state_dict(model.state_dict())
    images = torch.randn(2, 3, *size)
    with torch.no_grad():
        torch.testing.assert_close(model.fc(model(images).mean((2, 3))), twin(images))


def _torchvision() -> Any:
    try:
        import torchvision.models
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
        pytest.skip(f"torchvision cannot be imported: {error}")
    return torchvision.models


@pytest.mark.parametrize(
    ("name", "channels", "sides"),
    [
        ("googlenet", 1024, {32: 1, 64: 2, 224: 7, 227: 7}),
        ("bn_inception", 1024, {32: 1, 40: 2, 64: 2, 101: 3, 224: 7, 227: 7}),
        ("resnet34", 512, {64: 2, 227: 8}),
        ("squeezenet1_0", 512, {32: 1, 64: 3, 227: 13}),
        ("squeezenet1_1", 512, {32: 1, 64: 3, 224: 13}),
        ("efficientnet_lite0", 1280, {32: 1, 97: 4, 224: 7}),
        ("efficientnet_lite1", 1280, {240: 8}),
        ("efficientnet_lite2", 1280, {260: 9}),
        ("mobilenet_v3_small", 576, {32: 1, 224: 7}),
        ("mobilenet_v3_large", 960, {32: 1, 224: 7}),
        ("conv4", 64, {28: 3, 32: 4, 56: 7}),
        ("conv4_32", 32, {28: 3}),
    ],
)
def test_feature_maps_by_size_of_the_image(name: str, channels: int, sides: dict[int, int]) -> None:
    model = backbones.create(name).eval()
    assert model.out_channels == channels
    for side, expected in sides.items():
        with torch.no_grad():
            assert model(torch.zeros(1, 3, side, side)).shape == (1, channels, expected, expected)


def test_blocks_of_bn_inception_are_those_that_gdfl_taps() -> None:
    model = backbones.create("bn_inception").eval()
    with torch.no_grad():
        shapes = {name: tuple(x.shape[1:]) for name, x in model.blocks(torch.zeros(1, 3, 224, 224)).items()}
    assert shapes["3b"] == (320, 28, 28)
    assert (shapes["4d"], shapes["4e"], shapes["5a"]) == ((608, 14, 14), (1056, 7, 7), (1024, 7, 7))


@in_one_case(name=golden.HEADLESS)
def test_a_classifier_that_no_linear_layer_stands_for_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no linear classifier to keep"):
        backbones.create(name).keep_classifier()


@in_one_case(name=["googlenet", "bn_inception", "conv4", "efficientnet_lite0", *golden.HEADLESS])
def test_every_parameter_learns_in_channels_last_too(name: str) -> None:
    model = torch.nn.utils.convert_conv2d_weight_memory_format(backbones.create(name), torch.channels_last)
    images = torch.randn(2, 3, 48, 40).contiguous(memory_format=torch.channels_last)
    model(images).square().mean().backward()
    silent = {key for key, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()}
    assert silent == set()
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(images), model(images.contiguous()), rtol=1e-3, atol=1e-4)
