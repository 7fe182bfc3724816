"""The presets draw what the thesis' figures show: forces of triplet-losses.md section 8."""

from __future__ import annotations

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.losses.presets import PRESETS

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


def points(preset):
    return [torch.tensor(x, dtype=torch.float64) for x in (preset.anchor, preset.positive, preset.negative)]


def test_every_figure_is_there():
    assert {p.figure for p in PRESETS} == {"3.4", "3.5", "3.6", "3.7", "B.1"}
    assert len({(p.figure, p.panel) for p in PRESETS}) == len(PRESETS)


@pytest.mark.parametrize("key", FORCES, ids=str)
def test_forces_of_the_figure(key):
    (preset,) = [p for p in PRESETS if (p.figure, p.panel) == key]
    loss = losses.create(preset.loss, **preset.hyper)
    for force, expected in zip(forces(loss, *points(preset)), FORCES[key], strict=True):
        assert force.tolist() == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: f"{p.figure} {p.panel}")
def test_every_panel_is_active_and_in_view(preset):
    loss = losses.create(preset.loss, **preset.hyper)
    x, y, half = preset.view
    assert 0 < loss.raw(*points(preset)) < loss.m2
    for point in (preset.anchor, preset.positive, preset.negative):
        assert abs(point[0] - x) < half
        assert abs(point[1] - y) < half
