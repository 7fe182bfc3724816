"""ResNet-18 and ResNet-50 against torchvision's layout, written out plainly, and against a forward pass by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from dmlcore import backbones

Shapes = dict[str, tuple[int, ...]]


def norm(name: str, width: int) -> Shapes:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {**{f"{name}.{part}": (width,) for part in parts}, f"{name}.num_batches_tracked": ()}


def torchvision_18() -> Shapes:
    """State of torchvision.models.resnet18, less fc."""
    shapes: Shapes = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    for stage, inward, width in ((1, 64, 64), (2, 64, 128), (3, 128, 256), (4, 256, 512)):
        for block, inside in ((0, inward), (1, width)):
            at = f"layer{stage}.{block}"
            shapes |= {f"{at}.conv1.weight": (width, inside, 3, 3), **norm(f"{at}.bn1", width)}
            shapes |= {f"{at}.conv2.weight": (width, width, 3, 3), **norm(f"{at}.bn2", width)}
        if stage > 1:
            at = f"layer{stage}.0.downsample"
            shapes |= {f"{at}.0.weight": (width, inward, 1, 1), **norm(f"{at}.1", width)}
    return shapes


def torchvision_50() -> Shapes:
    """State of torchvision.models.resnet50, less fc."""
    shapes: Shapes = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    for stage, blocks, inward, width in ((1, 3, 64, 64), (2, 4, 256, 128), (3, 6, 512, 256), (4, 3, 1024, 512)):
        for block in range(blocks):
            at, inside = f"layer{stage}.{block}", inward if block == 0 else 4 * width
            shapes |= {f"{at}.conv1.weight": (width, inside, 1, 1), **norm(f"{at}.bn1", width)}
            shapes |= {f"{at}.conv2.weight": (width, width, 3, 3), **norm(f"{at}.bn2", width)}
            shapes |= {f"{at}.conv3.weight": (4 * width, width, 1, 1), **norm(f"{at}.bn3", 4 * width)}
        at = f"layer{stage}.0.downsample"
        shapes |= {f"{at}.0.weight": (4 * width, inward, 1, 1), **norm(f"{at}.1", 4 * width)}
    return shapes


@pytest.mark.parametrize(
    ("name", "expected", "parameters", "channels"),
    [("resnet18", torchvision_18(), 11_176_512, 512), ("resnet50", torchvision_50(), 23_508_032, 2048)],
)
def test_names_shapes_and_count_are_torchvisions(name, expected, parameters, channels):
    model = backbones.create(name)
    assert {k: tuple(v.shape) for k, v in model.state_dict().items()} == expected
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert model.out_channels == channels
    classifier = {"fc.weight": torch.zeros(1000, channels), "fc.bias": torch.zeros(1000)}
    result = model.load_state_dict({**model.state_dict(), **classifier}, strict=False)
    assert result.missing_keys == []
    assert result.unexpected_keys == ["fc.weight", "fc.bias"]


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
@pytest.mark.parametrize("size", [(32, 32), (65, 40)])
def test_features_are_a_thirty_second_of_the_picture(name, size):
    model = backbones.create(name)
    height, width = (-(-s // 32) for s in size)
    assert model(torch.randn(2, 3, *size)).shape == (2, model.out_channels, height, width)


@pytest.mark.parametrize(("name", "convolutions"), [("resnet18", 2), ("resnet50", 3)])
def test_the_forward_pass_is_the_papers(name, convolutions):
    torch.manual_seed(0)
    model, x = backbones.create(name).double().eval(), torch.randn(1, 3, 64, 48, dtype=torch.float64)
    state = model.state_dict()
    for key, value in state.items():
        if key.endswith(("running_mean", "running_var")):
            value.uniform_(0.5, 1.5)  # so that each normalisation shows

    def layer(x, conv, bn, stride=1):
        kernel = state[f"{conv}.weight"]
        x = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        mean, var, scale, shift = (
            state[f"{bn}.{k}"][:, None, None] for k in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * scale + shift

    expected = F.max_pool2d(layer(x, "conv1", "bn1", 2).clamp(min=0), 3, 2, padding=1)
    for stage in (1, 2, 3, 4):
        block = 0
        while f"layer{stage}.{block}.conv1.weight" in state:
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            inside, strided = expected, 1 if convolutions == 2 else 2  # which convolution subsamples
            for k in range(1, convolutions + 1):
                inside = layer(inside, f"{at}.conv{k}", f"{at}.bn{k}", stride if k == strided else 1)
                inside = inside.clamp(min=0) if k < convolutions else inside
            down = f"{at}.downsample"
            short = layer(expected, f"{down}.0", f"{down}.1", stride) if f"{down}.0.weight" in state else expected
            expected = (inside + short).clamp(min=0)
            block += 1
    torch.testing.assert_close(model(x), expected)
