"""A landscape: its heights are the loss, its cut is reported, and its slope is the force."""

from __future__ import annotations

import base64
import json
import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.figures import landscapes
from dmlcore.figures.landscapes import Landscape, draw, surface, to_one_scale
from dmlcore.geometry import forces
from dmlcore.geometry.field_table import PROBES
from dmlcore.geometry.loss_variant import Variant
from dmlcore.simulation.marble import roll
from tests.members import in_one_case

POINTS = list(torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.35, 0.3]], dtype=torch.float64))
VIEW = (0.25, 0.1, 1.5)


def landscape(*names: str, probe="negative", n: int = 25, mass: float = 0.0, **options) -> Landscape:
    variants = [Variant(losses.create(name), **options) for name in names]
    surfaces = to_one_scale([surface(v, POINTS, probe=probe, view=VIEW, n=n) for v in variants])
    rolls = [roll(v, *POINTS, view=VIEW, probe=probe, mass=mass) for v in variants]
    return Landscape(surfaces, POINTS, probe, VIEW, names, rolls)


def decoded(array: dict[str, str]) -> np.ndarray:
    shape = [int(x) for x in array["shape"].split(",")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def trace(figure: dict, name: str, scene: str = "scene") -> dict:
    return next(t for t in figure["data"] if t.get("name") == name and t["scene"] == scene)


@in_one_case(name=losses.names(), probe=PROBES)
def test_heights_are_the_loss_and_what_is_cut_off_is_told(name, probe):
    shown = surface(Variant(losses.create(name)), POINTS, probe=probe, view=VIEW, n=13)
    points = dict(zip(PROBES, POINTS, strict=True))
    points[probe] = torch.tensor([[[x, y] for x in shown.x] for y in shown.y])
    expected = losses.create(name).clamped(*points.values()).numpy()
    np.testing.assert_allclose(shown.energy, expected, rtol=1e-9, atol=1e-12)
    kept = (shown.cut == shown.energy) | np.isnan(shown.energy)
    assert ((shown.energy[~kept] > shown.high) | (shown.energy[~kept] < shown.low)).all()
    assert math.isfinite(shown.low)
    assert math.isfinite(shown.high)
    if not kept.all():
        assert f"cut off above {shown.high:.3g}" in shown.hidden
    if not shown.hidden:
        assert shown.highest <= shown.high * (1 + 1e-9)


def test_a_pole_is_cut_with_a_word():
    steep = Variant(losses.create("distance_sensitive", r=2.0), clamp=False)
    shown = surface(steep, POINTS, probe="negative", view=VIEW, n=25)
    assert shown.highest > 100 * shown.high
    assert shown.hidden.startswith("The surface is cut off above ")
    plain = surface(Variant(losses.create("ranking")), POINTS, probe="negative", view=VIEW, n=13)
    for energy, word in ((math.inf, "infinity"), (1e9, "1e+09")):
        shown = surface(_Peaked(energy), POINTS, probe="negative", view=VIEW, n=13)
        assert shown.high < 2 * plain.high
        assert word in shown.hidden


def test_the_well_of_a_decaying_pull_is_cut_below():
    well = Variant(losses.create("distance_sensitive", s=-2.0, r=0.0), clamp=False)
    shown = surface(well, POINTS, probe="positive", view=VIEW, n=25)
    assert shown.lowest == pytest.approx(-1e6, rel=1e-3)  # -1/d at the floor of 1e-6
    assert shown.low > -100
    assert " below " in shown.hidden


class _Peaked(Variant):
    """Loss with a different energy near the anchor."""

    def __init__(self, energy: float) -> None:
        super().__init__(losses.create("ranking"))
        self.energy = energy

    def table(self, *points, **options):
        read = super().table(*points, **options)
        read.energy.view(-1)[0] = self.energy
        return read


def test_the_figure_is_plain_data_with_the_surface_as_it_is_cut():
    shown = landscape("distance_sensitive", "ranking")
    assert {(s.low, s.high) for s in shown.surfaces} == {(0.0, 5.0)}  # one scale, that of the higher surface
    figure = draw(shown)
    json.dumps(figure, allow_nan=False)
    for k, scene in enumerate(("scene", "scene2")):
        heights = trace(figure, "energy", scene)
        np.testing.assert_array_equal(decoded(heights["z"]), shown.surfaces[k].cut.astype("f4"))
        assert figure["layout"][scene]["zaxis"]["range"] == list(shown.range)
    assert [figure["data"][m["trace"]]["name"] for m in figure["marbles"]] == ["marble", "marble"]


@in_one_case(probe=PROBES)
def test_the_slope_is_as_steep_as_the_force_is_strong(probe):
    loss = losses.create("ranking", m=0.6)
    shown = surface(Variant(loss), POINTS, probe=probe, view=VIEW)
    tangent = trace(draw(Landscape([shown], POINTS, probe, VIEW, ["ranking"])), "slope")
    force = forces(loss, *POINTS)[PROBES.index(probe)].numpy()
    x, y, z = (decoded(tangent[axis]).astype(float) for axis in "xyz")
    way = np.array([np.diff(x)[0], np.diff(y)[0]])
    assert way / np.hypot(*way) == pytest.approx(force / np.hypot(*force), abs=1e-5)
    assert -np.diff(z)[0] / np.hypot(*way) == pytest.approx(np.hypot(*force), rel=1e-4)
    lift = landscapes.STAND * np.diff(Landscape([shown], POINTS, probe, VIEW, []).range)[0]
    assert z[0] - lift == pytest.approx(loss.clamped(*POINTS).item(), abs=1e-6)


@pytest.mark.parametrize("mass", [0.0, 1.0])
def test_the_marble_is_drawn_from_where_it_is_let_go_to_where_it_ends(mass):
    shown = landscape("ranking", mass=mass)
    (marble,), way = draw(shown)["marbles"], shown.rolls[0]
    drawn = np.array([marble["x"], marble["y"]]).T
    assert drawn[0] == pytest.approx(way.path[0], abs=1e-4)
    assert drawn[-1] == pytest.approx(way.path[-1], abs=1e-4)
    lift = landscapes.STAND * np.diff(shown.range)[0]
    assert marble["z"][-1] - lift == pytest.approx(way.energy[-1], abs=1e-3)


def test_surfaces_stand_beside_or_below_each_other():
    for stacked, varies in ((False, "x"), (True, "y")):
        layout = draw(landscape("ranking", "facenet"), stacked=stacked)["layout"]
        first, second = (layout[scene]["domain"] for scene in ("scene", "scene2"))
        assert first[varies] != second[varies]
        assert [first["xy".replace(varies, "")], second["xy".replace(varies, "")]] == [[0.0, 1.0]] * 2


def test_a_marble_that_lies_still_has_its_frames():
    (marble,) = draw(landscape("ranking", probe="positive", clamp=True))["marbles"]
    assert len(marble["x"]) == landscapes.FRAMES + 10
