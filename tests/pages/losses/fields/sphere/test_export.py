"""Exports of the circle-and-sphere page: its address gives its file, and an invalid address gives a valid file."""

from __future__ import annotations

import io
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
