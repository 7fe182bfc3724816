"""Pair weights: the direct computation against the gradient of the loss, and manually derived weights."""

from __future__ import annotations

import pytest
import torch

from dmlcore import losses
from dmlcore.loss_analysis.pair_weights import (
    Similarities,
    similarities,
    triplet_weights,
    unit_triplet,
)
from tests.loss_analysis.gram import gram_weights
from tests.members import in_one_case

ONE = (torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))


def grid(rival="perpendicular", pn=0.0, n=5):
    # All values differ, because on a clamp boundary rounding decides which pairs are active.
    ap, an = (torch.linspace(*ends, n, dtype=torch.float64) for ends in ((-0.853, 0.901), (-0.817, 0.874)))
    s = similarities(ap[None, :], an[:, None], rival, pn)
    keep = s.determinant() > 1e-3
    return Similarities(*(x[keep] for x in s))


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


@in_one_case(case=[("perpendicular", 0.0), ("symmetric", 0.0), ("fixed", 0.3)])
def test_unit_vectors_have_the_similarities(case):
    rival, pn = case
    s = grid(rival, pn)
    points = unit_triplet(s)
    gram = points @ points.mT
    close(gram.diagonal(dim1=-2, dim2=-1), torch.ones(len(s.ap), 3, dtype=torch.float64))
    for (i, j), expected in zip(((0, 1), (0, 2), (1, 2)), s, strict=True):
        close(gram[:, i, j], expected)
    close(gram.det(), s.determinant())


def test_the_perpendicular_rival_exists_everywhere_and_others_do_not():
    axis = torch.linspace(-0.99, 0.99, 21, dtype=torch.float64)
    assert (similarities(axis[None], axis[:, None]).determinant() > 0).all()
    s = similarities(torch.tensor(-0.9), torch.tensor(0.9), "symmetric")
    assert s.determinant() < 0, "two opposite points have no common close rival"
    with pytest.raises(ValueError, match="independent"):
        unit_triplet(s)
    with pytest.raises(ValueError, match="independent"):
        unit_triplet(similarities(torch.tensor(1.0), torch.tensor(0.5)))
    for bad in ({"rival": "none"}, {"pn": 1.5}):
        with pytest.raises(ValueError, match="rival"):
            similarities(axis, axis, **bad)


@in_one_case(case=[("perpendicular", 0.0), ("symmetric", 0.0), ("fixed", -0.2)], name=losses.names())
def test_the_direct_route_equals_the_gradient_of_the_module(name, case):
    rival, pn = case
    loss, s = losses.create(name), grid(rival, pn)
    direct = triplet_weights(loss, s)
    through = gram_weights(lambda x: loss(x, torch.tensor([0, 0, 1]), ONE), s)
    for key in ("ap", "an", "pn", "loss"):
        close(getattr(direct, key), getattr(through, key))
    assert (direct.ap != 0).any() or name == "facenet_mined"
    points = unit_triplet(s)
    close(direct.raw, loss.raw(*points.unbind(-2)))


@in_one_case(name=losses.names())
def test_weights_are_the_slopes_of_the_loss(name):
    """Compared with central differences in each similarity separately."""
    loss, s, h = losses.create(name), grid(n=4), 1e-6
    weights = triplet_weights(loss, s)
    away = ((weights.raw.abs() > 1e-4) & ((weights.raw - loss.m2).abs() > 1e-4)).nonzero()[:, 0]
    for i, key in enumerate(("ap", "an", "pn")):
        up, down = (triplet_weights(loss, s._replace(**{key: s[i] + e})).loss for e in (h, -h))
        torch.testing.assert_close(((up - down) / (2 * h))[away], getattr(weights, key)[away], rtol=1e-5, atol=1e-6)


def test_known_weights_of_triplet_losses():
    s = grid("symmetric")
    d = s.distances()
    active = {name: triplet_weights(losses.create(name, m=40), s) for name in ("ranking", "facenet")}
    close(active["facenet"].ap, torch.full_like(s.ap, -2))  # d^2 = 2 - 2S
    close(active["facenet"].an, torch.full_like(s.ap, 2))
    close(active["ranking"].ap, -1 / d.ap)
    close(active["ranking"].an, 1 / d.an)
    metu = triplet_weights(losses.create("distance_sensitive", s=1, r=2, rho=1, m1=40, m2=1000), s)
    close(metu.ap, -torch.ones_like(s.ap))
    close(metu.an, d.an**-3)
    close(metu.pn, d.pn**-3)
    soft = torch.sigmoid(s.an - s.ap)
    npairs = triplet_weights(losses.create("npairs"), s)
    close(npairs.ap, -soft)
    close(npairs.an, soft)
    close(npairs.pn, torch.zeros_like(soft))
    by = active["ranking"].by_distance(s)
    close(by.ap, torch.ones_like(s.ap))
    close(by.an, -torch.ones_like(s.ap))


def test_no_weight_outside_the_clamp_window():
    loss, s = losses.create("facenet_mined"), grid(n=9)
    weights = triplet_weights(loss, s)
    inactive = (weights.raw <= 0) | (weights.raw >= loss.m2)
    assert inactive.any()
    assert (weights.ap[inactive] == 0).all()
    assert (weights.an[~inactive] > 0).all()


def test_coincident_points_have_finite_weights():
    s = similarities(torch.tensor([1.0, -1.0]), torch.tensor([1.0, 1.0]))
    for name in losses.names():
        weights = triplet_weights(losses.create(name), s)
        for key in ("ap", "an", "pn"):
            assert getattr(weights, key).isfinite().all(), name
