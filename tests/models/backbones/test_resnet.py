"""Sizes of feature maps; names, shapes and the forward pass are compared with torchvision's in test_parity.py."""

from __future__ import annotations

import pytest
import torch

from dmlcore.models import backbones


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_features_are_a_thirty_second_of_the_image(name):
    model = backbones.create(name)
    for size in ((32, 32), (65, 40)):
        height, width = (-(-s // 32) for s in size)
        assert model(torch.randn(2, 3, *size)).shape == (2, model.out_channels, height, width), size
