"""Exports of the circle-and-sphere page: its address gives its file, and an invalid address gives a valid file."""

from __future__ import annotations

import io
import json
from urllib.parse import parse_qsl

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.figures import spheres
from pages.losses.fields.sphere import export as sphere_export
from pages.losses.fields.sphere.state import SphereScene
from pages.shared.server import exports

VIEWS = {
    "sphere": "loss=ranking&m=0.3&n=60,-45&probe=positive&eye=40,-20&radial=0",
    "circle": "on=circle&loss=ranking&m=0.3&n=120&probe=positive&arrows=0",
}


@pytest.fixture(scope="module")
def client():
    with TestClient(Starlette(routes=sphere_export.ROUTES)) as client:
        yield client


@pytest.mark.parametrize(
    ("format", "on"), [*((format, "sphere") for format in ("svg", "npz", "json", "py")), ("npz", "circle")]
)
def test_every_format_of_the_shown_view(client, format, on):
    response = client.get(f"/api/sphere/export.{format}?{VIEWS[on]}")
    assert response.status_code == 200
    assert response.headers["content-type"] == exports.TYPES[format]
    assert response.headers["content-disposition"] == f'attachment; filename="dml-{on}-ranking-m0.3.{format}"'
    scene = SphereScene.from_query(dict(parse_qsl(VIEWS[on])))
    assert scene.on == on
    if on == "sphere":
        places, measure = (scene.anchor, scene.positive, (60.0, -45.0)), spheres.sphere_arrays
    else:
        places, measure = (scene.anchor[0], scene.positive[0], 120.0), spheres.circle_arrays
    if format in ("npz", "json"):
        expected = measure(losses.create("ranking", m=0.3), *places, probe="positive")
    if format == "npz":
        with np.load(io.BytesIO(response.content)) as kept:
            for name, array in expected.items():
                np.testing.assert_array_equal(kept[name], array)
    elif format == "json":
        found = response.json()
        assert found["forces"] == expected["forces"].tolist()
        assert (found["on"], found["hyper"], found["probe"]) == (on, {"m": 0.3, "m2": None}, "positive")
    elif format == "py":
        assert "losses.create('ranking', m=0.3, m2=None)" in response.text
        (line,) = [line for line in response.text.splitlines() if line.startswith("figure = ")]
        assert line.startswith("figure = draw_sphere(loss, ")
        assert line.endswith("probe='positive', radial=False, eye=(40.0, -20.0))")
    else:  # pdf and png save the same figure as tests/pages/losses/fields/plane
        assert response.content.startswith(b"<?xml")


def test_the_switches_of_the_page_reach_the_figure():
    query = {"region": "0", "arrows": "0", "radial": "0", "eye": "10,20"}
    expected = {"region": False, "arrows": False, "radial": False, "dark": True, "eye": (10.0, 20.0)}
    assert sphere_export.drawing(SphereScene.from_query(query), dark=True) == expected
    assert sphere_export.drawing(SphereScene()) == {}
    assert "eye" not in sphere_export.drawing(SphereScene.from_query(query | {"on": "circle"}))


def test_the_figure_is_that_of_the_view_and_dark_ones_differ(client):
    light, dark = (client.get(f"/api/sphere/export.svg?{VIEWS['circle']}{more}").content for more in ("", "&dark=1"))
    assert light == sphere_export.export(SphereScene.from_query(dict(parse_qsl(VIEWS["circle"]))), "svg") != dark


BAD = ("nan", "1e999", "../x", "%00", "x" * 100, "1,2,3,4", "inf")


# Draw the default on one surface and export the arrays on the other, which has fewer.
@pytest.mark.parametrize(
    ("bad", "format", "on"),
    [*((bad, "py", on) for on in VIEWS for bad in BAD), ("nan", "svg", "sphere"), ("1e999", "json", "circle")],
)
def test_a_senseless_query_gets_a_valid_file(client, bad, format, on):
    keys = ("loss", "a", "p", "n", "eye", "r", "rho", "m1", "m2", "probe", "region", "arrows", "radial", "dark")
    response = client.get(f"/api/sphere/export.{format}?on={on}&" + "&".join(f"{k}={bad}" for k in keys))
    assert response.status_code == 200
    assert '"' not in response.headers["content-disposition"].split('filename="')[1][:-1]
    if format == "json":
        json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    if format == "py":
        compile(response.text, "snippet.py", "exec")
    if format == "svg":
        assert response.content.startswith(b"<?xml")


@pytest.mark.parametrize(("name", "on"), [("distance_sensitive", "sphere"), ("moving", "circle")])
@pytest.mark.parametrize("value", ["-1e9", "0", "1e9", "inf"])
def test_extreme_parameters_are_drawn_and_measured(client, name, value, on):
    hyper = "&".join(f"{k}={value}" for k in losses.formula(name).parameters)
    query = f"on={on}&loss={name}&{hyper}&a=0,90&p=180,90&n=0,-90&eye=0,90"
    if (value, on) in (("-1e9", "sphere"), ("inf", "circle")):
        assert client.get(f"/api/sphere/export.svg?{query}").status_code == 200
    with np.load(io.BytesIO(client.get(f"/api/sphere/export.npz?{query}").content)) as kept:
        for array in ("energy", "force", "radial", "forces", "radials"):
            assert np.isfinite(kept[array]).all(), array


@pytest.mark.parametrize("path", ["export.exe", "export.", "export.svg/../x", "export.svg?" + "x" * 9000])
def test_anything_else_is_not_found(client, path):
    assert client.get(f"/api/sphere/{path}").status_code == 404
