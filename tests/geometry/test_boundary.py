"""Boundaries of the active region compared with the closed forms of triplet-losses.md section 5."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import scan
from dmlcore.geometry.boundary import level_lines


def test_two_lobes_beside_singular_points():
    """Fig. 3.5 (c): at m2 = 20 the inner boundary is two lobes around anchor and positive, where raw diverges."""
    axis = torch.arange(-60, 81, dtype=torch.float64) / 40  # 0 and 0.5 are nodes: raw is infinite there
    a, p, n = torch.tensor([[0.0, 0.0], [0.5, 0.0], [9.0, 9.0]], dtype=torch.float64)
    loss = losses.create("distance_sensitive", s=0.0, r=2.0, rho=12 / 7, m1=-3.5, m2=20.0)
    field = scan(loss, a, p, n, x=axis, y=axis)
    assert torch.isinf(field.raw).sum() == 2
    lobes = level_lines(axis.numpy(), axis.numpy(), field.raw.numpy(), 20.0)
    assert len(lobes) == 2
    beyond = min(lobe[:, 0].min() for lobe in lobes)
    t, d = 13.4167, 0.5
    assert beyond == pytest.approx(-(2 - t * d + np.sqrt(t**2 * d**2 + 4)) / (2 * t), abs=6e-3)
