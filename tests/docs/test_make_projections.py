"""The figure of projections: two frames at the end of each projection, between which only the proxies move."""

from __future__ import annotations

import numpy as np
from PIL import Image

from docs import make_projections


def test_a_projection_ends_in_two_frames_between_which_only_proxies_move() -> None:
    spec = make_projections.SPEC.with_overrides(
        ["schedule.steps=30", "schedule.validate_every=3", "projection.patience=1", "optimiser.learning_rate=0.1"]
    )
    shown = make_projections.frames(spec)
    ends = [number for number, frame in enumerate(shown) if frame.title.endswith("ends")]
    assert ends
    for number in ends:
        before, after = shown[number : number + 2]
        assert (before.step, before.projection + 1) == (after.step, after.projection)
        assert np.array_equal(before.points, after.points)
        assert not np.array_equal(before.proxies, after.proxies)
    pictures = [np.asarray(make_projections.drawn(frame)) for frame in shown[ends[0] : ends[0] + 2]]
    assert pictures[0].shape == pictures[1].shape
    assert not np.array_equal(*pictures)


def test_the_figure_that_ships_moves() -> None:
    with Image.open(make_projections.FILE) as image:
        assert image.n_frames > 40
        assert make_projections.FILE.stat().st_size < 600_000
