"""Exported numbers are those of the library, and the same view always gives the same bytes."""

from __future__ import annotations

import io
import json
import math
import threading

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.figures import fields
from dmlcore.geometry import forces
from tests.members import in_one_case

POINTS = (0.0, 0.1), (0.5, 0.0), (0.3, 0.6)
METU = {"s": 1, "r": 2, "rho": 12 / 7, "m1": -2.5, "m2": 20}


def tensors(points=POINTS):
    return [torch.tensor(x, dtype=torch.float64) for x in points]


@in_one_case(name=losses.names(), probe=["anchor", "positive", "negative"])
def test_arrays_are_the_loss_at_every_node(name, probe):
    loss = losses.create(name)
    arrays = fields.field_arrays(loss, *POINTS, probe=probe, view=(0.2, 0.1, 1.0), n=9)
    assert arrays["x"][[0, -1]] == pytest.approx([-0.8, 1.2])
    for row, col in ((0, 0), (3, 7), (8, 2)):
        points = dict(zip(("anchor", "positive", "negative"), tensors(), strict=True))
        points[probe] = torch.tensor([arrays["x"][col], arrays["y"][row]])
        raw = loss.raw(*points.values()).item()
        force = dict(zip(points, forces(loss, *points.values()), strict=True))[probe]
        assert arrays["raw"][row, col] == pytest.approx(raw, rel=1e-9)
        assert arrays["energy"][row, col] == pytest.approx(min(max(raw, 0), loss.m2), rel=1e-9)
        assert arrays["force"][row, col] == pytest.approx(force.numpy(), rel=1e-9, abs=1e-12)
        assert arrays["active"][row, col] == (0 < raw < loss.m2)


@in_one_case(name=losses.names())
def test_parts_and_residuals_add_up_to_the_forces(name):
    arrays = fields.field_arrays(losses.create(name), *POINTS, n=5)
    assert arrays["parts"].sum(1) + arrays["residuals"] == pytest.approx(arrays["forces"], abs=1e-12)
    a, p, n = tensors()
    assert arrays["edges"] == pytest.approx([math.dist(a, p), math.dist(a, n), math.dist(p, n)])


def test_boundaries_lie_where_raw_meets_the_clamp():
    loss = losses.create("distance_sensitive", **METU)
    arrays = fields.field_arrays(loss, *POINTS, view=(0.2, 0.1, 1.5))
    a, p, _ = tensors()
    for name, level, near in (("outer", 0.0, 0.01), ("inner", loss.m2, 1.0)):
        lines = fields.polylines(arrays, name)
        assert [len(line) for line in lines] == arrays[f"{name}_sizes"].tolist()
        assert lines, name
        for line in lines:
            assert (loss.raw(a, p, torch.tensor(line)) - level).abs().max() < near
    assert fields.polylines(fields.field_arrays(losses.create("hoffer"), *POINTS, n=5), "outer") == []


def test_npz_and_json_hold_the_arrays_and_nothing_that_is_not_finite():
    loss = losses.create("distance_sensitive", **METU)
    view = (0.0, 0.1, 0.5)  # a node is at the anchor: raw = +inf there
    arrays, about = fields.field_arrays(loss, *POINTS, view=view, n=11), fields.about(loss, view=view)
    assert np.isposinf(arrays["raw"]).sum() >= 1
    with np.load(io.BytesIO(fields.as_npz(arrays, about))) as kept:
        assert set(kept) == {"about", *arrays}
        for name, array in arrays.items():
            np.testing.assert_array_equal(kept[name], array)
        assert json.loads(str(kept["about"])) == about
    text = fields.as_json(arrays, about).decode()
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert found["loss"] == "distance_sensitive"
    assert found["source"] == loss.formula.source
    back = np.array([[math.inf if v is None else v for v in row] for row in found["raw"]])
    np.testing.assert_array_equal(back, arrays["raw"])
    assert fields.about(losses.create("ranking"))["hyper"]["m2"] == math.inf
    assert json.loads(fields.as_json({}, fields.about(losses.create("ranking"))))["hyper"]["m2"] is None


# With an open clamp, without one, with a choice, and with a clamp tied to the margin.
@pytest.mark.parametrize("name", ["ranking", "distance_sensitive", "location_aware", "facenet_mined"])
def test_the_snippet_reproduces_the_arrays_exactly(name, tmp_path, monkeypatch, capsys):
    loss, probe, view = losses.create(name), "positive", (0.17, 0.1, 1.1)
    arrays = fields.field_arrays(loss, *POINTS, probe=probe, view=view, n=21)
    script = fields.snippet(loss, *POINTS, probe=probe, view=view, n=21, shade="force", dark=True)
    assert loss.formula.source in script
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    numbers, _, drawing_lines = script.partition("\nview = ")
    exec(compile(numbers, "snippet.py", "exec"), found)
    for key in ("raw", "energy", "force", "active"):
        np.testing.assert_array_equal(getattr(found["field"], key).numpy(), arrays[key])
    for axis in "xy":
        np.testing.assert_array_equal(found[axis].numpy(), arrays[axis])
    for i, key in enumerate(("force_a", "force_p", "force_n")):
        np.testing.assert_array_equal(found[key].numpy(), arrays["forces"][i])
    assert [found["raw"].item(), found["energy"].item()] == arrays["triplet"].tolist()
    assert f"raw {arrays['triplet'][0]:.6g}" in capsys.readouterr().out
    if name != "distance_sensitive":  # draw only once
        return
    assert "field.pdf" in drawing_lines  # a PNG takes a third of the time
    exec(f"view = {drawing_lines.replace('.pdf', '.png')}", found)
    expected = fields.draw_field(loss, *POINTS, probe=probe, view=view, n=21, shade="force", dark=True)
    assert (tmp_path / "field.png").read_bytes() == fields.save_figure(expected, format="png")


def test_equal_views_give_equal_bytes_without_a_date():
    loss = losses.create("distance_sensitive", **METU)
    first, second = (fields.draw_field(loss, *POINTS, n=31, decomposed=True) for _ in range(2))
    saved = {format: fields.save_figure(first, format=format, dpi=60) for format in fields.FORMATS}
    for format, once in saved.items():
        assert fields.save_figure(second, format=format, dpi=60) == once
        assert once.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[format])
        assert b"CreationDate" not in once
        assert b"dc:date" not in once
    assert fields.save_figure(first, dpi=60) == saved["svg"], "saving must not change the figure"


def test_figures_may_be_drawn_in_several_threads():
    found, loss = [], losses.create("ranking")

    def draw():
        found.append(fields.save_figure(fields.draw_field(loss, *POINTS, n=31)))

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1


def texts(figure) -> str:
    from matplotlib.text import Text

    return "\n".join(x.get_text() for x in figure.findobj(Text))


def test_the_figure_says_what_it_shows(skip_layout):
    loss = losses.create("distance_sensitive", **METU)
    shown = texts(fields.draw_field(loss, *POINTS, n=61))
    force = forces(loss, *tensors())[2].norm().item()
    for expected in (loss.formula.title, loss.formula.source.split(",")[0], "A", "P", "N", "1.7143", f"{force:.3g}"):
        assert expected in shown
    for key in ("solid line", "dashed", "hatched", "clamped loss"):
        assert key in shown
    assert "hatched" not in texts(fields.draw_field(losses.create("hoffer"), *POINTS, n=31))
    assert "before the clamp" in texts(fields.draw_field(loss, *POINTS, n=31, shade="raw"))


def test_the_margin_belongs_to_the_energy_not_to_the_condition_beside_it():
    assert losses.formula("facenet_mined").energy_latex == r"d_{ap}^2-d_{an}^2 + m,\quad m_2=m"
    assert losses.formula("hoffer").energy_latex == losses.formula("hoffer").latex
    assert losses.formula("distance_sensitive").energy_latex.endswith(r"\right) + m_1")


@in_one_case(name=losses.names())
def test_every_loss_is_drawn_with_all_layers(name):
    i = losses.names().index(name)  # covers every shade and both themes
    layers = {"contours": "raw", "decomposed": True, "discs": True, "mining": True, "streams": i % 6 == 0}
    figure = fields.draw_field(
        losses.create(name), *POINTS, n=21, shade=fields.SHADES[i % 4], dark=i % 2 == 0, **layers
    )
    assert losses.formula(name).title in texts(figure)


def test_coincident_points_and_an_empty_field_are_drawn():
    loss = losses.create("distance_sensitive", **METU)
    figure = fields.draw_field(loss, (0, 0), (0, 0), (0, 0), n=31, decomposed=True, contours="clamped")
    assert len(fields.save_figure(figure, format="png", dpi=60)) > 10_000
    satisfied = losses.create("ranking", m=-0.5)
    figure = fields.draw_field(satisfied, (0, 0), (0, 0), (9, 9), n=31, streams=True, contours="clamped")
    assert len(fields.save_figure(figure, format="png", dpi=60)) > 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"view": (0, 0, 0)}, "view"),
        ({"view": (0, math.nan, 1)}, "view"),
        ({"n": 1}, "n=1"),
        ({"probe": "self"}, "probe"),
        ({"shade": "rainbow"}, "shade"),
        ({"contours": "none"}, "contours"),
        ({"positive": (0, math.inf)}, "positive"),
        ({"negative": (0, 1, 2)}, "negative"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = dict(zip(("anchor", "positive", "negative"), POINTS, strict=True)) | change
    with pytest.raises(ValueError, match=message):
        fields.draw_field(losses.create("ranking"), **arguments)


def test_an_unknown_format_is_refused():
    figure = fields.draw_field(losses.create("ranking"), *POINTS, n=11)
    with pytest.raises(ValueError, match="gif"):
        fields.save_figure(figure, "x.gif")
