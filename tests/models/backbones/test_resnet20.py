from pathlib import Path

import pytest
import torch

from dmlcore.models import backbones
from dmlcore.models.backbones.resnet20 import ResidualBlock

WEIGHTS = Path(__file__).parents[3] / "../shared/data/resnet20-cifar10.pt"


def test_it_is_the_one_of_the_paper() -> None:
    model = backbones.create("resnet20")
    classifier = 64 * 10 + 10
    assert sum(p.numel() for p in model.parameters()) + classifier == 269_722  # He et al. 2016, table 6: 0.27 M
    assert len([m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]) == 19


@pytest.mark.skipif(not WEIGHTS.exists(), reason="no ../shared/data/resnet20-cifar10.pt")
def test_it_takes_the_published_weights() -> None:
    result = backbones.create("resnet20").load_state_dict(torch.load(WEIGHTS, weights_only=True), strict=False)
    assert result.unexpected_keys == ["linear.weight", "linear.bias"]
    assert all(name.endswith("num_batches_tracked") for name in result.missing_keys)


def test_option_a_shortcut_subsamples_and_pads_with_zeros() -> None:
    block = ResidualBlock(16, 32, stride=2)
    x = torch.randn(1, 16, 8, 8)
    out = block.shortcut(x)
    assert torch.equal(out[:, 8:24], x[:, :, ::2, ::2])
    assert not out[:, :8].any()
    assert not out[:, 24:].any()
