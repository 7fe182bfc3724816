"""Presets against the figures of the thesis: forces of triplet-losses.md section 8."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import field_table, forces, margin_for_ellipse
from dmlcore.geometry.boundary import level_lines
from dmlcore.loss_analysis.thesis_figures import PRESETS
from tests.members import in_one_case

FORCES = {  # figure, panel -> force on a, p, n
    ("3.4", "ρ = 0.5"): ((0.75, -0.4330), (-0.75, -0.4330), (0, 0.8660)),
    ("3.4", "ρ = 12/7"): ((0.1429, -1.4846), (-0.1429, -1.4846), (0, 2.9692)),
    ("3.6", "r = -1"): ((1, -0.8571), (0.7143, -0.8571), (-1.7143, 1.7143)),
    ("3.6", "r = 0"): ((1, -1.7143), (0.5333, -0.7667), (-1.5333, 2.4809)),
    ("3.6", "r = 2"): ((1, -6.8571), (0.2266, -0.6133), (-1.2266, 7.4705)),
    ("3.6", "r = 3"): ((1, -13.7143), (0.0971, -0.5486), (-1.0971, 14.2629)),
    ("3.7", "s = 0, r = 2"): ((1, -1.7143), (-0.3867, -1.2266), (-0.6133, 2.9409)),
    ("3.7", "s = 1, r = 2"): ((0.5, -1.7143), (0.1133, -1.2266), (-0.6133, 2.9409)),
}


def preset_of(figure, panel):
    (preset,) = [p for p in PRESETS if (p.figure, p.panel) == (figure, panel)]
    return preset


def module(preset):
    return losses.create(preset.loss, **preset.hyper)


def points(preset):
    return [torch.tensor(x, dtype=torch.float64) for x in (preset.anchor, preset.positive, preset.negative)]


def test_every_figure_is_there():
    panels = {"2.5": 2, "3.1": 1, "3.2": 1, "3.3": 2, "3.4": 4, "3.5": 4, "3.6": 4, "3.7": 6, "B.1": 4}
    assert Counter(p.figure for p in PRESETS) == panels
    assert len({(p.figure, p.panel) for p in PRESETS}) == len(PRESETS)
    assert [p.figure for p in PRESETS] == sorted(p.figure for p in PRESETS), "in the order of the thesis"


@pytest.mark.parametrize("key", FORCES, ids=str)
def test_forces_of_the_figure(key):
    preset = preset_of(*key)
    for force, expected in zip(forces(module(preset), *points(preset)), FORCES[key], strict=True):
        assert force.tolist() == pytest.approx(expected, abs=5.1e-5)


def test_like_charges_attract_and_both_repel_the_third():
    preset = preset_of("3.1", "charges")
    a, p, n = points(preset)
    found = field_table(module(preset), a, p, n)
    assert found.strengths > (0, 0, 0)
    pull, push_an, _ = found.strengths
    assert pull.item() == pytest.approx(1.0)  # d^s
    assert push_an.item() == pytest.approx(1 / (0.25 + 0.81))  # rho / d^r
    assert [force[1].item() > 0 for force in found.forces] == [False, False, True]


def test_a_unit_equilateral_triangle_of_entangled_points():
    preset = preset_of("3.2", "entangled")
    a, p, n = points(preset)
    assert [round(math.dist(*pair), 12) for pair in ((a, p), (a, n), (p, n))] == [1, 1, 1]
    expected = (p - n, a - n, 2 * n - a - p)  # minus the gradients n - p, n - a, a + p - 2n
    for force, vector in zip(forces(module(preset), a, p, n), expected, strict=True):
        assert force.tolist() == pytest.approx(vector.tolist())


def test_unequal_sides_under_constant_and_falling_push():
    modified, sensitive = (preset_of("3.3", panel) for panel in ("modified", "distance-sensitive"))
    for preset, expected in ((modified, [1, 1, 1]), (sensitive, [1, 1 / 0.4, 1])):
        strengths = field_table(module(preset), *points(preset)).strengths
        assert [x.item() for x in strengths] == pytest.approx(expected)


@in_one_case(case=[("(a) negative", "negative"), ("(b) positive", "positive")])
def test_the_mining_figure_scans_a_semi_hard_point(case):
    panel, probe = case
    preset = preset_of("2.5", panel)
    a, p, n = points(preset)
    d_ap, d_an = math.dist(a, p), math.dist(a, n)
    assert (preset.probe, preset.mining, preset.hyper) == (probe, True, {"m": 0.4})
    assert d_ap < d_an < d_ap + 0.4


def raw_at(preset, *places):
    a, p, _ = points(preset)
    return module(preset).raw(a, p, torch.tensor(places, dtype=torch.float64)).tolist()


@pytest.mark.parametrize(
    ("panel", "centre", "outer", "inner"),
    [
        ("r = -1", 0.25, (1.29904, 1.29904), (0.72169, 0.72169)),  # circles
        ("r = 0", 0.25, (0.875, 0.83853), (0.29167, 0.15023)),  # ellipses
    ],
)
def test_circles_and_ellipses_of_figure_3_5(panel, centre, outer, inner):
    preset = preset_of("3.5", panel)
    for (A, B), level in ((outer, 0.0), (inner, 2.0)):
        assert raw_at(preset, (centre + A, 0), (centre, B)) == pytest.approx([level] * 2, abs=5e-5)


@pytest.mark.parametrize(
    ("panel", "r", "outer", "inner", "saddle", "holes"),
    [("r = 2", 2, 1.75, 13.4167, 8, 2), ("r = 3", 3, 3.5, 26.8333, 32, 1)],
)
def test_lobes_of_figure_3_5(panel, r, outer, inner, saddle, holes):
    preset = preset_of("3.5", panel)
    rho, m1, m2 = (preset.hyper[k] for k in ("rho", "m1", "m2"))
    # d_an^(1-r) + d_pn^(1-r) = T on the boundary, T = -(r-1)(E - m2)/rho with E = P_1(d) + m1, d = 0.5.
    assert -(r - 1) * (0.5 + m1) / rho == pytest.approx(outer, abs=5e-5)
    assert -(r - 1) * (0.5 + m1 - m2) / rho == pytest.approx(inner, abs=5e-5)
    assert 2 * 0.25 ** (1 - r) == saddle
    assert (inner > saddle) == (holes == 2)
    x, y, half = preset.view
    nodes = (np.linspace(x - half, x + half, 401), np.linspace(y - half, y + half, 401))
    raw = np.array(raw_at(preset, *np.stack(np.meshgrid(*nodes), -1).reshape(-1, 2).tolist())).reshape(401, 401)
    assert [len(level_lines(*nodes, raw, level)) for level in (0.0, m2)] == [1, holes]


def test_discs_and_ellipse_of_figure_b_1():
    assert raw_at(preset_of("B.1", "A"), (0, 1.1), (-1.1, 0)) == pytest.approx([0, 0])
    assert raw_at(preset_of("B.1", "B"), (1, 1.1), (2.1, 0)) == pytest.approx([0, 0])
    for panel in "CD":
        ellipse = preset_of("B.1", panel)
        assert raw_at(ellipse, (0.5 + 1.64445, 0), (0.5, 1.56659)) == pytest.approx([0, 0], abs=5e-5)
        assert ellipse.hyper["m1"] == pytest.approx(margin_for_ellipse(1, 0.1, 0, 12 / 7), abs=5e-5)
        assert ellipse.discs == (panel == "D")
        # The ellipse holds both discs of radius 1.1.
        circle = [(x + 1.1 * math.cos(t), 1.1 * math.sin(t)) for x in (0, 1) for t in np.linspace(0, 2 * math.pi, 200)]
        assert min(raw_at(ellipse, *circle)) > 0


@in_one_case(preset=PRESETS)
def test_every_panel_is_active_and_in_view(preset):
    loss = module(preset)
    x, y, half = preset.view
    assert 0 < loss.raw(*points(preset)) < loss.m2
    for point in (preset.anchor, preset.positive, preset.negative):
        assert abs(point[0] - x) < half
        assert abs(point[1] - y) < half
