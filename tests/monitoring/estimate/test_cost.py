import pytest
import torch

from dmlcore.models import backbones
from dmlcore.models.networks import build
from dmlcore.monitoring.estimate import cost
from dmlcore.spec.sections import ModelSpec


def test_the_table_is_what_counting_gives() -> None:
    for name, side in (("conv4", 28), ("conv4_32", 28), ("resnet20", 32)):
        assert cost.count(name, side) == cost.BACKBONES[name]


def test_every_backbone_is_in_the_table_with_its_parameters() -> None:
    assert set(cost.BACKBONES) <= set(backbones.names())
    with torch.device("meta"):
        for name in ("resnet20", "resnet18"):
            network = backbones.create(name)
            found = cost.BACKBONES[name]
            assert found.parameters == sum(p.numel() for p in network.parameters())
            assert found.channels == network.out_channels


@pytest.mark.parametrize(
    ("spec", "shape"),
    [(ModelSpec(hidden=(256, 128)), (64,)), (ModelSpec(name="resnet20", embedding_dim=16), (3, 32, 32))],
)
def test_parameters_are_those_of_the_network(spec: ModelSpec, shape: tuple[int, ...]) -> None:
    found = cost.cost_of(spec, shape)
    assert found is not None
    assert found.parameters == sum(p.numel() for p in build(spec, shape, seed=0).parameters())


def test_memory_grows_with_the_image_and_an_unknown_network_has_none() -> None:
    spec = ModelSpec(name="resnet18")
    small, large = cost.cost_of(spec, (3, 64, 64)), cost.cost_of(spec, (3, 128, 128))
    assert small is not None
    assert large is not None
    assert large.activation_bytes == 4 * small.activation_bytes
    assert cost.cost_of(ModelSpec(name="timm:resnet26"), (3, 64, 64)) is None
