"""Exports of the fields page: the address of the page gives its file, an invalid one the default or an error."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.figures import fields
from pages.losses.fields.plane import export as plane_export
from pages.shared.plane.state import Scene
from pages.shared.server import exports

VIEW = "loss=ranking&m=0.3&n=0.3,0.8&probe=positive&view=0.2,0.1,1.2"


@pytest.fixture(scope="module")
def client():
    with TestClient(Starlette(routes=plane_export.ROUTES)) as client:
        yield client


@pytest.mark.parametrize("format", [format for format in exports.VIEW if format != "svg"])  # svg is tested below
def test_every_format_of_the_shown_view(client, format):
    response = client.get(f"/api/field/export.{format}?{VIEW}")
    assert response.status_code == 200
    assert response.headers["content-type"] == exports.TYPES[format]
    assert response.headers["content-disposition"] == f'attachment; filename="dml-ranking-m0.3.{format}"'
    scene = Scene.from_query(dict(pair.split("=") for pair in VIEW.split("&")))
    points = scene.anchor, scene.positive, scene.negative
    if format in ("npz", "json"):
        expected = fields.field_arrays(scene.module(), *points, probe="positive", view=scene.view)
    if format == "npz":
        with np.load(io.BytesIO(response.content)) as kept:
            np.testing.assert_array_equal(kept["raw"], expected["raw"])
    elif format == "json":
        found = response.json()
        assert found["forces"] == expected["forces"].tolist()
        assert (found["loss"], found["hyper"], found["probe"]) == ("ranking", {"m": 0.3, "m2": None}, "positive")
    elif format == "py":
        assert "losses.create('ranking', m=0.3, m2=None)" in response.text
    else:
        assert response.content.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[format])


def test_the_switches_of_the_page_reach_the_figure():
    query = {
        "lines": "raw",
        "flow": "streams",
        "edges": "1",
        "forces": "0",
        "region": "0",
        "mining": "1",
        "shade": "force",
    }
    found = plane_export.drawing(Scene.from_query(query), dark=True)
    assert found == {
        "shade": "force",
        "contours": "raw",
        "region": False,
        "arrows": False,
        "streams": True,
        "forces": False,
        "decomposed": True,
        "mining": True,
        "dark": True,
    }
    assert plane_export.drawing(Scene()) == {}


def test_the_figure_is_that_of_the_view_and_dark_ones_differ(client):
    light, dark = (client.get(f"/api/field/export.svg?{VIEW}{more}").content for more in ("", "&dark=1"))
    assert (
        light == plane_export.export(Scene.from_query(dict(pair.split("=") for pair in VIEW.split("&"))), "svg") != dark
    )


BAD = ("nan", "1e999", "../x", "%00", "x" * 200, "1,2,3,4", "inf")


@pytest.mark.parametrize(("bad", "format"), [*((bad, "py") for bad in BAD), ("nan", "svg"), ("1e999", "json")])
def test_a_senseless_query_gets_a_valid_file(client, bad, format):
    keys = ("loss", "a", "p", "n", "view", "r", "rho", "m1", "m2", "shade", "lines", "dark", "mu", "margin")
    response = client.get(f"/api/field/export.{format}?" + "&".join(f"{k}={bad}" for k in keys))
    assert response.status_code == 200
    assert '"' not in response.headers["content-disposition"].split('filename="')[1][:-1]
    if format == "json":
        json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    if format == "py":
        compile(response.text, "snippet.py", "exec")


@pytest.mark.parametrize(
    ("name", "value"), [("distance_sensitive", "-1e9"), ("distance_sensitive", "inf"), ("moving", "1e9")]
)
def test_extreme_parameters_are_drawn(client, name, value):
    hyper = "&".join(f"{k}={value}" for k in losses.formula(name).parameters)
    response = client.get(f"/api/field/export.svg?loss={name}&{hyper}&p=0,0&n=0,100&lines=raw&edges=1&flow=streams")
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["export.exe", "export.", "export.svg/../x", "export.svg?" + "x" * 9000])
def test_anything_else_is_not_found(client, path):
    assert client.get(f"/api/field/{path}").status_code == 404
