"""Effects of normalisation on each loss, against sections 1.3 and 3 of triplet-losses.md."""

from __future__ import annotations

import math

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry.sphere import random_triplets
from dmlcore.loss_analysis.normalised import normalisation
from tests.members import in_one_case

T = math.tan(0.6) ** 2
# The smallest margin that switches the lower clamp off everywhere on the unit sphere (section 1.3).
SWITCHING = [
    ("ranking", {}, 2.0),
    ("facenet", {}, 4.0),
    ("facenet_mined", {}, 4.0),
    ("entangle", {}, 4.0),
    ("modified_entangle", {"rho": 1.0}, 4.0),
    ("modified_entangle", {"rho": 12 / 7}, 4 * 12 / 7),
    ("angular", {"rho": 0.6}, 16 * T),
    ("angular", {"rho": math.pi / 4}, 16.0),
    ("lifted", {}, 2 - math.log(2)),
    ("location_aware", {"variant": "printed"}, 1.5),
    ("location_aware", {"variant": "rule"}, 2.5),
    ("distance_sensitive", {"rho": 1.0}, -1.0),
    ("distance_sensitive", {"rho": 2.5}, -2.5),
    ("ratio", {"m": 0.01}, 2.0),
    ("ratio", {"m": 0.7}, 2.0),
    ("moving", {}, math.inf),
]


@in_one_case(case=SWITCHING)
def test_the_margin_that_switches_the_clamp_off(case):
    name, hyper, margin = case
    assert normalisation(losses.create(name, **hyper)).margin_off == pytest.approx(margin, abs=1e-9)


@in_one_case(case=SWITCHING[:-1])
def test_with_that_margin_every_triplet_is_active_and_just_below_one_is_not(case):
    name, hyper, margin = case
    parameter = losses.formula(name).margin.name if losses.formula(name).margin else "m"
    opposite = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], dtype=torch.float64)
    triplets = random_triplets(5000, 3, seed=6)
    enough = losses.create(name, **(hyper | {parameter: margin + 1e-6}))
    short = losses.create(name, **(hyper | {parameter: margin - 1e-6}))
    assert float(enough.raw(*triplets).min()) > 0
    assert float(enough.raw(*opposite)) > 0 > float(short.raw(*opposite))


@in_one_case(name=["hoffer", "npairs"])
def test_losses_without_a_margin_are_never_clamped(name):
    found = normalisation(losses.create(name))
    assert found.margin_off is None
    assert found.clamp_is_off


def test_the_ranges_that_have_a_closed_form():
    closed = {
        "hoffer": (1 / (1 + math.e**2) ** 2, 1 / (1 + math.e**-2) ** 2),
        "npairs": (math.log1p(math.exp(-2)), math.log1p(math.exp(2))),
        "ranking": (-2, 2),
        "facenet": (-4, 4),
        "entangle": (-4, 0.5),
        "distance_sensitive": (1, math.inf),
    }
    for name, (low, high) in closed.items():
        found = normalisation(losses.create(name))
        assert found.least.value == pytest.approx(low, abs=1e-12)
        assert found.greatest.value == pytest.approx(high, abs=1e-12)


@in_one_case(name=losses.names())
def test_residuals_vanish_on_the_sphere(name):
    found = normalisation(losses.create(name))
    assert found.residual_tangential < 1e-12
    assert (found.residual > 0.1) == (name in ("moving", "npairs", "location_aware"))
    assert 0 < found.radial_share < 1


@pytest.mark.parametrize(
    ("name", "hyper", "text"),
    [
        ("facenet", {}, "2"),
        ("facenet_mined", {}, "2"),
        ("npairs", {}, "log"),
        ("moving", {"rho": 0.4}, "0.4"),
        ("location_aware", {"variant": "printed"}, "+2.5"),
        ("location_aware", {"variant": "rule"}, "+1.5"),
    ],
)
def test_the_forms_of_section_3_hold(name, hyper, text):
    identity = normalisation(losses.create(name, **hyper)).identity
    assert identity.deviation < 1e-12
    assert text in identity.text
