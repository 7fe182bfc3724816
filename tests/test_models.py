from pathlib import Path

import pytest
import torch

from dmlcore import models
from dmlcore.models import ModelError, ResNet20
from dmlcore.spec import ModelSpec

WEIGHTS = Path(__file__).parents[1] / "../shared/data/resnet20-cifar10.pt"
RESNET, MLP = ModelSpec(name="resnet20", embedding_dim=10, normalize=False), ModelSpec(hidden=(32, 16), embedding_dim=5)


@pytest.mark.parametrize("side", [32, 33, 64])
def test_resnet20_takes_pictures_from_32_up(side: int) -> None:
    model = models.build(RESNET, (3, side, side), seed=0)
    assert model(torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)).shape == (2, 10)


def test_resnet20_is_the_one_of_the_paper() -> None:
    model = models.build(RESNET, (3, 32, 32), seed=0)
    assert sum(p.numel() for p in model.parameters()) == 269_722  # He et al. 2016, table 6: 0.27 M
    assert len([m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]) == 19


@pytest.mark.skipif(not WEIGHTS.exists(), reason="no ../shared/data/resnet20-cifar10.pt")
def test_resnet20_takes_the_published_weights() -> None:
    published = torch.load(WEIGHTS, weights_only=True)
    model = models.build(RESNET, (3, 32, 32), seed=0)
    result = model.load_state_dict(published, strict=False)
    assert result.unexpected_keys == []
    assert all(name.startswith("normalise.") or name.endswith("num_batches_tracked") for name in result.missing_keys)


def test_option_a_shortcut_subsamples_and_pads_with_zeros() -> None:
    block = models.Block(16, 32, stride=2)
    x = torch.randn(1, 16, 8, 8)
    out = block.shortcut(x)
    assert torch.equal(out[:, 8:24], x[:, :, ::2, ::2])
    assert not out[:, :8].any()
    assert not out[:, 24:].any()


@pytest.mark.parametrize(("spec", "shape"), [(RESNET, (3, 32, 32)), (MLP, (64,))])
def test_initialisation_is_a_function_of_the_seed(spec: ModelSpec, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    first = models.build(spec, shape, seed=5).state_dict()
    state = torch.random.get_rng_state()
    torch.manual_seed(2)
    second = models.build(spec, shape, seed=5).state_dict()
    other = models.build(spec, shape, seed=6).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["linear.weight"], other["linear.weight"])
    torch.manual_seed(1)
    assert torch.equal(torch.random.get_rng_state(), state)  # and it leaves the global generator alone


def test_embedding_layer_has_he_initialisation() -> None:
    model = models.build(ModelSpec(hidden=(400,), embedding_dim=300), (64,), seed=0)
    weight = model.state_dict()["linear.weight"]
    assert weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert not model.state_dict()["linear.bias"].any()


def test_normalised_embeddings_lie_on_the_sphere() -> None:
    x = torch.randn(7, 64)
    assert torch.allclose(models.build(MLP, (64,), seed=0)(x).norm(dim=1), torch.ones(7))
    free = models.build(ModelSpec(normalize=False), (64,), seed=0)(x)
    assert free.norm(dim=1).std() > 0.01


def test_raw_inputs_are_normalised_inside() -> None:
    grey = torch.full((1, 3, 32, 32), 128, dtype=torch.uint8)
    model = models.build(RESNET, (3, 32, 32), seed=0)
    assert isinstance(model, ResNet20)
    expected = (128 / 255 - torch.tensor(models.PICTURE_MEAN)) / torch.tensor(models.PICTURE_STD)
    assert torch.allclose(model.normalise(grey)[0, :, 4, 7], expected)
    x = torch.randn(4, 64) * 3 + 2
    shifted = models.build(MLP, (64,), seed=0, mean=2.0, std=3.0)(x)
    assert torch.allclose(shifted, models.build(MLP, (64,), seed=0)((x - 2) / 3), atol=1e-6)


def test_an_mlp_without_hidden_layers_is_linear() -> None:
    model = models.build(ModelSpec(hidden=(), embedding_dim=3, normalize=False), (4,), seed=0)
    x, y = torch.randn(2, 4), torch.randn(2, 4)
    assert torch.allclose(model(x) + model(y), model(x + y), atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "shape", "message"),
    [(MLP, (3, 32, 32), "resnet20"), (RESNET, (64,), "pictures"), (RESNET, (3, 16, 16), "at least 32 x 32")],
)
def test_a_network_that_does_not_fit_is_refused(spec: ModelSpec, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        models.build(spec, shape, seed=0)
