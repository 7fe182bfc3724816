"""GDFL: the formula sample by sample, its sizes, its attention, and training, scoring and resuming like other heads."""

from __future__ import annotations

import copy

import pytest
import torch

from dmlcore.models import networks
from dmlcore.models.backbones import create
from dmlcore.models.depths import GatheredFeatures
from dmlcore.models.networks import ModelError
from dmlcore.spec import ModelSpec, PoolingSpec, RunSpec, SpecError

DOUBLE = torch.float64


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def network(side: int = 28, **changes: object) -> networks.ImageNetwork:
    spec = ModelSpec().model_copy(update={"name": "conv4_32", "embedding_dim": 6, "gather": "attention", **changes})
    return networks.build(spec, (3, side, side), seed=0)


def test_attention_is_that_of_the_formula_position_by_position() -> None:
    torch.manual_seed(0)
    gathered = GatheredFeatures(4, (3, 5), attention=True).double()
    u, maps = numbers(2, 4), [numbers(2, 3, 2, 3, seed=1), numbers(2, 5, 1, 2, seed=2)]
    found = gathered(u, maps)
    assert found.shape == (2, 12)
    for sample in range(2):
        parts = [u[sample]]
        for depth, (each, key, query) in enumerate(zip(maps, gathered.keys, gathered.queries, strict=True)):
            places = [(y, x) for y in range(each.shape[2]) for x in range(each.shape[3])]
            scores = []
            for y, x in places:
                hidden = torch.tanh(key.weight @ each[sample, :, y, x] + u[sample])
                scores.append((query.weight[0] * hidden).sum())
            shares = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
            parts.append(sum(share * each[sample, :, y, x] for share, (y, x) in zip(shares, places, strict=True)))
            torch.testing.assert_close(gathered.weights[depth][sample].flatten(), shares.detach())
        torch.testing.assert_close(found[sample], torch.cat(parts))


def test_without_attention_each_depth_is_its_mean_and_equal_positions_are_themselves() -> None:
    u, maps = numbers(2, 4), [numbers(2, 3, 2, 2, seed=1)]
    plain = GatheredFeatures(4, (3,), attention=False)
    assert torch.equal(plain(u, maps), torch.cat([u, maps[0].mean((2, 3))], dim=1))
    assert not list(plain.parameters())
    same = maps[0][:, :, :1, :1].expand(-1, -1, 2, 2)
    attended = GatheredFeatures(4, (3,), attention=True).double()
    torch.testing.assert_close(attended(u, [same])[:, 4:], same[:, :, 0, 0])


def test_gradients_are_those_of_central_differences() -> None:
    torch.manual_seed(0)
    gathered = GatheredFeatures(3, (2,), attention=True).double()
    u, maps = numbers(2, 3).requires_grad_(), numbers(2, 2, 2, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda *given: gathered(given[0], given[1:]), (u, maps))


def test_phi_of_bn_inception_has_the_3712_numbers_of_the_source() -> None:
    backbone = create("bn_inception", (224, 224))
    assert backbone.out_channels + sum(backbone.depths.values()) == 3712


@pytest.mark.parametrize(
    ("name", "side"), [("conv4_32", 28), ("bn_inception", 64), ("squeezenet1_0", 64), ("squeezenet1_1", 64)]
)
def test_the_maps_of_a_backbone_are_as_declared_and_its_features_the_same(name: str, side: int) -> None:
    backbone = create(name, (side, side)).eval()
    images = numbers(1, 3, side, side).float()
    with torch.no_grad():
        last, earlier = backbone.with_depths(images)
        assert torch.equal(last, backbone(images))
    assert [maps.shape[1] for maps in earlier] == list(backbone.depths.values())


@pytest.mark.parametrize("gather", ["mean", "attention"])
def test_all_of_the_head_learns_and_no_graph_stays(gather: str) -> None:
    model = network(gather=gather)
    images = torch.randint(0, 255, (4, 3, 28, 28), generator=torch.Generator().manual_seed(0)).float()
    embeddings = model(images)
    assert embeddings.shape == (4, 6)
    (embeddings @ torch.linspace(-1, 1, 6)).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.head_parameters())
    assert model.head.earlier == ()
    again = copy.deepcopy(model)
    assert torch.equal(again(images), embeddings)
    features = model.features(images)
    assert model.head.local(features) is None
    assert model.head(features).shape == (4, 6)
    with pytest.raises(ValueError, match="features of earlier depths are missing"):
        model.head(features)


@pytest.mark.parametrize("gather", ["mean", "attention"])
def test_stored_maps_of_a_frozen_backbone_hold_all_depths(gather: str) -> None:
    model = network(64, name="squeezenet1_0", gather=gather, freeze="backbone").eval()
    images = torch.randint(0, 255, (2, 3, 64, 64), generator=torch.Generator().manual_seed(0)).float()
    stored = model.frozen_maps(images)
    last, earlier = model.backbone.with_depths(model.normalise(images))
    assert stored.shape == (2, 512 + 384 + 384 + 512, *last.shape[2:])
    assert torch.equal(stored[:, :512], last)
    for maps, kept in zip(earlier, stored[:, 512:].split([384, 384, 512], dim=1), strict=True):
        side = maps.shape[2] // kept.shape[2] + 1  # the first cell averages this many pixels per side, rounded up
        torch.testing.assert_close(kept[:, :, 0, 0], maps[:, :, :side, :side].mean((2, 3)))
    embeddings = model(stored)
    assert torch.equal(embeddings, model(images))
    embeddings.square().sum().backward()
    assert all(p.grad is not None for p in model.head_parameters())
    assert all(p.grad is None for p in model.backbone.parameters())
    assert not torch.equal(embeddings, model(torch.cat([stored[:, :512], 2 * stored[:, 512:]], dim=1)))


def test_what_does_not_go_together_is_refused_by_name() -> None:
    for lines in (["model.freeze=early"], ["model.keep_classifier=true"], ["model.name=mlp"]):
        with pytest.raises(SpecError, match=r"model\.gather"):
            RunSpec().with_overrides(["data.name=glyphs", "model.name=conv4", "model.gather=mean", *lines])
    with pytest.raises(ModelError, match=r"model\.gather: resnet20 does not provide features of earlier depths"):
        network(name="resnet20")
    spec = ModelSpec().model_copy(update={"name": "conv4_32", "gather": "mean"})
    with pytest.raises(ModelError, match=r"works on embedded features; choose pooling\.name=gap"):
        networks.build(spec, (3, 28, 28), seed=0, pool=PoolingSpec(name="gsp"))
