"""Easy, semi-hard and hard negatives as in Fig. 2.5, for the ranking loss and for all other losses."""

from __future__ import annotations

import pytest
import torch

from dmlcore import losses
from dmlcore.geometry.hardness import hardness

A, P, N = (torch.tensor(x, dtype=torch.float64) for x in ((0.2, 0.1), (1.2, 0.1), (0.2, 1.6)))


@pytest.mark.parametrize(("probe", "radius"), [("negative", 1.0), ("positive", 1.5)])
def test_names_stand_in_their_regions(probe, radius):
    found = hardness(losses.create("ranking", m=0.4), A, P, N, probe)
    assert found.radius == pytest.approx(radius)
    assert {name for name, _ in found.names} == {"easy", "semi-hard", "hard"}
    for name, place in found.names:
        d = (torch.tensor(place, dtype=torch.float64) - A).norm().item()
        inner = d < radius
        if probe == "negative":
            assert name == ("hard" if inner else "semi-hard" if d < radius + 0.4 else "easy")
        else:
            assert name == ("easy" if d < radius - 0.4 else "semi-hard" if inner else "hard")


def test_a_window_drops_the_hardest():
    found = hardness(losses.create("distance_sensitive", m2=5), A, P, N, "negative")
    assert dict(found.names)["hard"]
    assert hardness(losses.create("ranking"), A, P, N, "anchor").names == ()
