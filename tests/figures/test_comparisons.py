"""The figure of a comparison: one colour scale for all planes, and first minus second next to them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.figures.comparisons import ComparisonPlane, draw_comparison
from dmlcore.geometry.loss_variant import Variant, scan_variant

POINTS = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.3, 0.5]], dtype=torch.float64)
X = torch.linspace(-1, 1, 40, dtype=torch.float64)


def planes(*names: str, clamp: bool = True) -> list[ComparisonPlane]:
    found = []
    for name in names:
        variant = Variant(losses.create(name), clamp=clamp)
        forces = np.stack([f.numpy() for f in variant.table(*POINTS).forces])
        found.append(ComparisonPlane(name, scan_variant(variant, *POINTS, x=X, y=X), forces, variant.loss.m2, clamp))
    return found


def images(figure) -> list:
    return [axes.images[0] for axes in figure.axes if axes.images]


@pytest.mark.parametrize("signed", [True, False])
def test_planes_share_their_scale_and_the_last_one_is_the_difference(signed):
    shown = planes("ranking", "facenet", "distance_sensitive", clamp=not signed)
    figure = draw_comparison(
        shown, X.numpy(), X.numpy(), POINTS.numpy(), view=(0, 0, 1), pair=(2, 0), signed=signed, caption="a" * 400
    )
    *heats, left = images(figure)
    assert len(heats) == 3
    assert len({image.get_clim() for image in heats}) == 1
    low, top = heats[0].get_clim()
    assert low == (-top if signed else 0)
    np.testing.assert_allclose(heats[1].get_array(), np.clip(shown[1].field.energy.numpy(), low, top))
    span = left.get_clim()[1]
    assert left.get_clim() == (-span, span)
    apart = (shown[2].field.energy - shown[0].field.energy).numpy()
    np.testing.assert_allclose(left.get_array(), np.clip(np.nan_to_num(apart), -span, span))
    assert [a.get_title(loc="left") for a in figure.axes][:4] == ["ranking", "facenet", "distance_sensitive", "3 − 1"]


def test_the_difference_of_forces_is_that_of_vectors(skip_layout):
    shown = planes("ranking", "facenet")
    figure = draw_comparison(shown, X.numpy(), X.numpy(), POINTS.numpy(), view=(0, 0, 1), shade="force")
    left = images(figure)[-1]
    apart = (shown[0].field.force - shown[1].field.force).norm(dim=-1).numpy()
    np.testing.assert_allclose(left.get_array(), np.clip(apart, 0, left.get_clim()[1]))


def test_another_shade_is_refused_by_name():
    with pytest.raises(ValueError, match="'heat'"):
        draw_comparison(
            planes("ranking", "facenet"), X.numpy(), X.numpy(), POINTS.numpy(), view=(0, 0, 1), shade="heat"
        )
