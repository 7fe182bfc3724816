"""Circle and sphere as figures, arrays and scripts: numbers of the library, and equal bytes for equal views."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.figures import fields, spheres
from dmlcore.figures.sphere_arrays import colour_scale, unit
from dmlcore.geometry.sphere import sphere_forces
from tests.members import in_one_case

PLACES = (-30.0, 0.0), (20.0, 30.0), (45.0, -10.0)
ANGLES = -30.0, 20.0, 45.0
POINTS = ("anchor", "positive", "negative")
SURFACES = {
    "sphere": (PLACES, spheres.sphere_arrays, spheres.draw_sphere),
    "circle": (ANGLES, spheres.circle_arrays, spheres.draw_circle),
}


@in_one_case(name=losses.names(), probe=POINTS)
def test_arrays_of_the_sphere_are_the_loss_at_every_node(name, probe):
    loss = losses.create(name)
    arrays = spheres.sphere_arrays(loss, *PLACES, probe=probe, rows=13)
    for row, col in ((0, 3), (5, 11), (9, 24)):
        points = dict(zip(POINTS, map(unit, PLACES), strict=True))
        points[probe] = unit([arrays["longitude"][col], arrays["latitude"][row]])
        raw, forces = loss.raw(*points.values()).item(), sphere_forces(loss, *points.values())
        assert arrays["raw"][row, col] == pytest.approx(raw, rel=1e-9)
        assert arrays["energy"][row, col] == pytest.approx(min(max(raw, 0), loss.m2), rel=1e-9)
        assert arrays["active"][row, col] == (0 < raw < loss.m2)
        i = POINTS.index(probe)
        assert arrays["force"][row, col] == pytest.approx(forces.tangential[i].numpy(), rel=1e-9, abs=1e-12)
        assert arrays["radial"][row, col] == pytest.approx(forces.radial[i].item(), rel=1e-9, abs=1e-12)


@in_one_case(name=losses.names())
def test_arrays_of_the_circle_are_the_loss_on_ring_and_map(name):
    loss = losses.create(name)
    arrays = spheres.circle_arrays(loss, *ANGLES, n=19)
    a, p, _ = map(unit, ANGLES)
    for k in (0, 100, 555):
        n = unit(arrays["angle"][k])
        assert arrays["raw"][k] == pytest.approx(loss.raw(a, p, n).item(), rel=1e-9)
        force = sphere_forces(loss, a, p, n).tangential[2]
        assert arrays["force"][k] == pytest.approx(force.numpy(), rel=1e-9, abs=1e-12)
    for row, col in ((2, 3), (17, 8)):
        p, n = (unit(arrays["map_axis"][i]) for i in (col, row))
        assert arrays["map_raw"][row, col] == pytest.approx(loss.raw(unit(0.0), p, n).item(), rel=1e-9)
    np.testing.assert_array_equal(arrays["map_energy"], arrays["map_raw"].clip(0, loss.m2))


@in_one_case(on=SURFACES)
def test_the_triplet_itself(on):
    places, measure, _ = SURFACES[on]
    loss = losses.create("distance_sensitive")
    arrays, points = measure(loss, *places), [unit(x) for x in places]
    forces = sphere_forces(loss, *points)
    np.testing.assert_array_equal(arrays["points"], np.stack(points))
    np.testing.assert_array_equal(arrays["forces"], np.stack(forces.tangential))
    np.testing.assert_array_equal(arrays["radials"], np.stack(forces.radial))
    cosines = [points[i] @ points[j] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert arrays["angles"] == pytest.approx([math.degrees(math.acos(c)) for c in cosines])
    assert arrays["edges"] == pytest.approx([math.sqrt(2 - 2 * c) for c in cosines])
    assert arrays["triplet"].tolist() == [loss.raw(*points).item(), loss.clamped(*points).item()]


@in_one_case(on=SURFACES)
def test_boundaries_lie_where_raw_meets_the_clamp(on):
    places, measure, _ = SURFACES[on]
    loss = losses.create("distance_sensitive")
    arrays, prefix = measure(loss, *places), "map_" if on == "circle" else ""
    a, p, _ = map(unit, places)
    for name, level, near in (("outer", 0.0, 0.01), ("inner", loss.m2, 0.15)):
        lines = fields.polylines(arrays, prefix + name)
        assert lines, name
        for at in np.concatenate(lines)[::7]:
            raw = loss.raw(a, p, unit(at)) if on == "sphere" else loss.raw(unit(0.0), *map(unit, at))
            assert abs(raw.item() - level) < near


def test_the_colour_scale_holds_95_per_cent_of_random_triplets():
    loss = losses.create("ranking")
    top, reference = colour_scale(loss, "negative", 3)
    x = torch.randn(3, 20000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    points = x / x.norm(dim=-1, keepdim=True)
    energy = loss.clamped(*points)
    assert 0.93 < (energy[energy > 0] <= top).double().mean() <= 1
    felt = sphere_forces(loss, *points).tangential[2].norm(dim=-1)
    assert reference == pytest.approx(felt[energy > 0].median().item(), rel=0.05)


# With an open clamp, without one, with a choice, and with a clamp tied to the margin.
@pytest.mark.parametrize(
    ("name", "on"),
    [
        ("ranking", "sphere"),
        ("distance_sensitive", "circle"),
        ("location_aware", "sphere"),
        ("facenet_mined", "circle"),
    ],
)
def test_the_snippet_reproduces_the_arrays_exactly(name, on, tmp_path, monkeypatch, capsys):
    places, measure, draw = SURFACES[on]
    loss, drawing = losses.create(name), {"radial": False, "dark": True}
    arrays = measure(loss, *places, probe="positive")
    script = spheres.snippet(loss, on, *places, probe="positive", **drawing)
    assert loss.formula.source in script
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    numbers, _, drawing_lines = script.partition("\nfigure = ")
    exec(compile(numbers, "snippet.py", "exec"), found)
    for key, mine in (("raw", "raw"), ("energy", "energy"), ("active", "active"), ("tangential", "force")):
        np.testing.assert_array_equal(getattr(found["field"], key).numpy(), arrays[mine])
    np.testing.assert_array_equal(found["field"].radial.numpy(), arrays["radial"])
    for axis in ("longitude", "latitude") if on == "sphere" else ("angle",):
        np.testing.assert_array_equal(found[axis].numpy(), arrays[axis])
    if on == "circle":
        np.testing.assert_array_equal(found["map_raw"].numpy(), arrays["map_raw"])
    np.testing.assert_array_equal(torch.stack(found["forces"].tangential).numpy(), arrays["forces"])
    np.testing.assert_array_equal(torch.stack(found["forces"].radial).numpy(), arrays["radials"])
    assert [found["raw"].item(), found["energy"].item()] == arrays["triplet"].tolist()
    assert f"raw {arrays['triplet'][0]:.6g}" in capsys.readouterr().out
    if name not in ("ranking", "distance_sensitive"):  # draw each surface once
        return
    assert f"{on}.pdf" in drawing_lines  # a PNG takes a third of the time
    exec(f"figure = {drawing_lines.replace('.pdf', '.png')}", found)
    expected = draw(loss, *places, probe="positive", **drawing)
    assert (tmp_path / f"{on}.png").read_bytes() == fields.save_figure(expected, format="png")


@in_one_case(on=SURFACES)
def test_npz_and_json_hold_the_arrays(on):
    places, measure, _ = SURFACES[on]
    loss = losses.create("distance_sensitive")
    few = {"rows": 13} if on == "sphere" else {"n": 19}
    arrays, about = measure(loss, *places, **few), spheres.about(loss, on, *places)
    with np.load(io.BytesIO(fields.as_npz(arrays, about))) as kept:
        assert set(kept) == {"about", *arrays}
        for name, array in arrays.items():
            np.testing.assert_array_equal(kept[name], array)
    found = json.loads(fields.as_json(arrays, about), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert (found["on"], found["loss"], found["forces"]) == (on, "distance_sensitive", arrays["forces"].tolist())
    assert found["anchor"] == (list(places[0]) if on == "sphere" else places[0])


def texts(figure) -> str:
    from matplotlib.text import Text

    return "\n".join(x.get_text() for x in figure.findobj(Text))


def test_the_surface_turns_with_the_eye(skip_layout):
    loss = losses.create("ranking")
    front = spheres.draw_sphere(loss, *PLACES, title="", eye=(20, 15))
    behind = texts(spheres.draw_sphere(loss, *PLACES, title="", eye=(-160, -15)))
    assert "behind the sphere" in behind
    assert "behind the sphere" not in texts(front)
    # A point viewed from directly above is in the centre.
    figure = spheres.draw_sphere(loss, *PLACES, title="", eye=PLACES[1])
    (letter,) = [x for x in figure.axes[0].texts if x.get_text() == "P"]
    assert letter.xy == pytest.approx((0, 0), abs=1e-12)


@pytest.mark.parametrize("name", losses.names())
def test_every_loss_is_drawn(name, skip_layout):
    loss, i = losses.create(name), losses.names().index(name)  # covers every probe and both surfaces
    places, _, draw = SURFACES[("sphere", "circle")[i % 2]]
    assert loss.formula.title in texts(draw(loss, *places, probe=POINTS[i % 3]))


def test_coincident_and_opposite_points_are_drawn():
    loss = losses.create("distance_sensitive", m2=20)
    satisfied = losses.create("ranking", m=-2.5)
    for figure in (
        spheres.draw_sphere(loss, (0, 90), (77, 90), (180, -90), eye=(0, 90)),
        spheres.draw_circle(loss, 0, 0, 180),
        spheres.draw_circle(satisfied, 0, 0, 180),
        spheres.draw_sphere(satisfied, (0, 0), (0, 0), (0, 0)),
    ):
        assert len(fields.save_figure(figure, format="png", dpi=60)) > 10_000


@pytest.mark.parametrize(
    ("measure", "places", "message"),
    [
        (spheres.sphere_arrays, (*PLACES[:2], 45.0), "negative must be a longitude"),
        (spheres.circle_arrays, (PLACES[0], *ANGLES[1:]), "anchor must be one angle"),
        (spheres.sphere_arrays, ((0, math.nan), *PLACES[1:]), "finite degrees"),
        (spheres.circle_arrays, (math.inf, *ANGLES[1:]), "finite degrees"),
    ],
)
def test_bad_places_are_named(measure, places, message):
    with pytest.raises(ValueError, match=message):
        measure(losses.create("ranking"), *places)


def test_other_bad_input_is_named():
    loss = losses.create("ranking")
    with pytest.raises(ValueError, match="probe"):
        spheres.sphere_arrays(loss, *PLACES, probe="self")
    with pytest.raises(ValueError, match="rows"):
        spheres.sphere_arrays(loss, *PLACES, rows=1)
    with pytest.raises(ValueError, match="n >= 2"):
        spheres.circle_arrays(loss, *ANGLES, n=1)
    with pytest.raises(ValueError, match="degrees"):
        spheres.draw_sphere(loss, *PLACES, eye=(0, 0, 0))
