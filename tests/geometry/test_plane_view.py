"""The view of a triplet in the plane holds the numbers of the library, and only the requested layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore import geometry, losses
from dmlcore.geometry import PlaneScene, field_table, forces

SCENE = PlaneScene(
    loss=losses.create("ranking", m=0.5),
    points=((0.1, 0.2), (0.5, 0.0), (0.35, 0.75)),
    probe="negative",
    window=(0.0, 0.0, 1.5),
    grid=41,
)
LAYERS = ("rings", "contours", "streams", "cut", "discs", "mining")
ALL = replace(SCENE, lines="raw", region=True, streams=True, discs=True, mining=True, cut=(-1, 0.4, 1.5, 0.1))


def test_a_view_holds_the_numbers_of_the_triplet_and_of_each_node():
    shown = geometry.view(SCENE)
    points = [torch.tensor(point, dtype=torch.float64) for point in SCENE.points]
    assert shown.raw == pytest.approx(SCENE.loss.raw(*points).item())
    np.testing.assert_allclose(shown.forces, torch.stack(forces(SCENE.loss, *points)))
    assert shown.edges["an"] == pytest.approx((points[0] - points[2]).norm().item())
    field = field_table(SCENE.loss, *points, at=torch.from_numpy(np.ascontiguousarray(shown.places)))
    np.testing.assert_allclose(shown.shade.ravel(), field.energy)
    np.testing.assert_allclose(shown.force.reshape(2, -1).T, field.force)


def test_only_the_layers_of_the_scene_are_computed():
    assert [getattr(geometry.view(SCENE), name) for name in LAYERS] == [None] * len(LAYERS)
    assert all(getattr(geometry.view(ALL), name) is not None for name in LAYERS)
    assert geometry.view(replace(ALL, shade="none")).shade is None


def test_given_scales_stay_until_they_are_refitted_and_mislead():
    fits = geometry.view(SCENE)
    given = replace(SCENE, scale=9 * fits.scale, reference=1.1 * fits.reference)
    assert geometry.view(given).scale == 9 * fits.scale
    again = geometry.view(replace(given, refit=True))
    assert (again.scale, again.reference) == (fits.scale, 1.1 * fits.reference)


def test_the_nearest_active_position_has_a_force():
    shown = geometry.view(SCENE)
    brought = shown.nearest_active((3.0, 3.0))
    assert geometry.view(replace(SCENE, points=(*SCENE.points[:2], brought))).hit
    quiet = geometry.view(replace(SCENE, loss=losses.create("ranking", m=-100.0)))
    assert quiet.nearest_active((0.0, 0.0)) is None
