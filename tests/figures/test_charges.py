"""A step of the charges as a figure: points are at their simulated positions, and equal steps give equal bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.figures.charges import draw_charges, save_figure
from dmlcore.simulation import MOST_STEPS, Dynamics, Simulation, Spec, phase_portrait

SPEC = Spec(classes=3, per_class=6, law=Dynamics(loss="distance_sensitive"))


def texts(figure) -> str:
    from matplotlib.text import Text

    return " ".join(" ".join(x.get_text() for x in figure.findobj(Text)).split())


def test_points_stand_where_the_simulation_has_them(skip_layout):
    simulation = Simulation(SPEC)
    left = draw_charges(simulation, 5, trails=False).axes[0]
    drawn = {tuple(point) for line in left.lines for point in np.column_stack(line.get_data())}
    for point in simulation.frame(5).positions:
        assert tuple(point) in drawn


def test_trails_end_at_the_points(skip_layout):
    simulation = Simulation(SPEC)
    left = draw_charges(simulation, 5, trails=True).axes[0]
    (trails,) = left.collections
    for i, path in enumerate(trails.get_segments()):
        np.testing.assert_allclose(path, [frame.positions[i] for frame in simulation.frames[:6]])


def test_the_portrait_shows_every_triplet(skip_layout):
    simulation = Simulation(SPEC)
    (image,) = draw_charges(simulation, 2).axes[1].images
    counts = np.ma.filled(image.get_array(), 0)
    assert counts.sum() == 18 * 5 * 12
    expected = phase_portrait(simulation.frame(2).positions.astype(np.float64), simulation.labels)
    np.testing.assert_array_equal(counts, expected.counts)


@pytest.mark.parametrize("start", ["random", "collapsed"])
def test_every_layer_is_drawn_and_equal_steps_give_equal_bytes(start):
    spec = Spec(start=start, classes=8, per_class=3, law=Dynamics(loss="ranking", normalise="project"))

    def drawn(dark: bool = False) -> bytes:
        return save_figure(draw_charges(Simulation(spec), 2, arrows=True, circles=True, dark=dark))

    first = drawn()
    assert start == "collapsed" or first == drawn() != drawn(dark=True)


def test_a_step_beyond_the_simulation_is_named():
    with pytest.raises(ValueError, match="step must be in"):
        draw_charges(Simulation(SPEC), MOST_STEPS + 1)
