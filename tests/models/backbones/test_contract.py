"""Contract of every backbone in the catalogue; no backbone is named here."""

from __future__ import annotations

import pytest
import torch

from dmlcore.models import backbones
from dmlcore.models.networks import ModelError, build
from dmlcore.spec import ModelSpec

every = pytest.mark.parametrize("name", backbones.names())
FEW = 500_000  # parameters up to which outputs are computed, too


@every
def test_maps_have_the_channels_that_it_says(name, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "batch_norm", lambda maps, *_: maps)  # the size of the maps is unchanged
    with torch.device("meta"):  # nothing is computed
        backbone = backbones.create(name)
    with torch.no_grad():
        for side in (backbones.smallest(name), 97):
            maps = backbone(torch.zeros(2, 3, side, side, device="meta"))
            assert maps.ndim == 4
            assert maps.shape[:2] == (2, backbone.out_channels)
            assert min(maps.shape[2:]) >= 1


@every
def test_it_is_documented_and_its_inputs_are_declared(name):
    backbone = backbones.BACKBONES[name]
    assert backbone.__doc__
    assert len(backbone.normalisation.mean) == len(backbone.normalisation.std) == 3
    assert min(backbone.normalisation.std) > 0


@every
def test_parameters_learn_and_the_seed_decides_them(name):
    with torch.device("meta"):
        if sum(p.numel() for p in backbones.create(name).parameters()) > FEW:
            pytest.skip("too large for a unit test: tests/models/backbones/test_parity.py compares it")
    side = backbones.smallest(name)
    spec, images = ModelSpec(name=name, embedding_dim=4), torch.rand(4, 3, side, side) * 255
    model, again, other = (build(spec, (3, side, side), seed=seed) for seed in (0, 0, 1))
    assert all(torch.equal(x, y) for x, y in zip(model.parameters(), again.parameters(), strict=True))
    assert any(not torch.equal(x, y) for x, y in zip(model.parameters(), other.parameters(), strict=True))
    embeddings = model(images)
    assert embeddings.isfinite().all()
    (embeddings * torch.randn_like(embeddings)).sum().backward()
    silent = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert silent == []
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(images), model.eval()(images))


@every
def test_smaller_images_are_refused_by_name(name):
    side = backbones.smallest(name) - 1
    with pytest.raises(ModelError, match=rf"{name} takes images .* at least {side + 1} x {side + 1}"):
        build(ModelSpec(name=name), (3, side, side), seed=0)
