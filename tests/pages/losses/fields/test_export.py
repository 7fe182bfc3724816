"""Exports of plane, sphere, circle and pair weights: an address gives its file, an invalid one that of the default."""

from __future__ import annotations

import io
import json
from urllib.parse import parse_qsl

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.figures import fields, pair_weights, spheres
from pages.losses.fields.pair_weights import export as pair_weights_export
from pages.losses.fields.pair_weights.state import PairWeightsView
from pages.losses.fields.plane import export as plane_export
from pages.losses.fields.sphere import export as sphere_export
from pages.losses.fields.sphere.state import SphereScene
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server import exports
from pages.shared.state.page_state import PageState

RANKING = losses.create("ranking", m=0.3)
# address, module and state, link, name of the file, an array of the file and a line of the snippet
VIEWS = {
    "plane": (
        *("/api/field/export", plane_export, Scene),
        "loss=ranking&m=0.3&n=0.3,0.8&probe=positive&view=0.2,0.1,1.2",
        *("dml-ranking-m0.3", "raw", "losses.create('ranking', m=0.3, m2=None)"),
    ),
    "sphere": (
        *("/api/sphere/export", sphere_export, SphereScene),
        "loss=ranking&m=0.3&n=60,-45&probe=positive&eye=40,-20&radial=0",
        *("dml-sphere-ranking-m0.3", "forces", "probe='positive', radial=False, eye=(40.0, -20.0))"),
    ),
    "circle": (
        *("/api/sphere/export", sphere_export, SphereScene),
        "on=circle&loss=ranking&m=0.3&n=120&probe=positive&arrows=0",
        *("dml-circle-ranking-m0.3", "forces", "losses.create('ranking', m=0.3, m2=None)"),
    ),
    "pair weights": (
        *("/api/pair_weights/export", pair_weights_export, PairWeightsView),
        "l1=ranking,m:0.3&l2=npairs&weight=ap&by=d&rival=fixed&pn=0.25&at=0.1,0.2",
        *("dml-pair-weights-ranking-npairs", "at_dL_dd1"),
        "rival='fixed', pn=0.25, at=(0.1, 0.2), n=161, weight='ap', by='d', signed=True, dark=False)",
    ),
}


def arrays_of(view: str, state: PageState) -> dict[str, np.ndarray]:
    """Return the arrays of a view, computed by the library."""
    if isinstance(state, PairWeightsView):
        return pair_weights.weight_arrays([RANKING, losses.create("npairs")], rival="fixed", pn=0.25, at=(0.1, 0.2))
    points = state.anchor, state.positive, state.negative
    if view == "plane":
        return fields.field_arrays(RANKING, *points, probe="positive", view=state.view)
    if view == "sphere":
        return spheres.sphere_arrays(RANKING, *points, probe="positive")
    return spheres.circle_arrays(RANKING, *(point[0] for point in points), probe="positive")


@pytest.fixture(scope="module")
def client():
    routes = [*plane_export.ROUTES, *sphere_export.ROUTES, *pair_weights_export.ROUTES]
    with TestClient(Starlette(routes=routes)) as client:
        yield client


@pytest.mark.parametrize("view", VIEWS)
def test_every_format_of_the_shown_view(client, view):
    address, module, kind, link, name, key, line = VIEWS[view]

    def export(format: str, more: str = ""):
        response = client.get(f"{address}.{format}?{link}{more}")
        assert response.status_code == 200
        assert response.headers["content-type"] == exports.TYPES[format]
        assert response.headers["content-disposition"] == f'attachment; filename="{name}.{format}"'
        return response

    state = kind.from_query(dict(parse_qsl(link)))
    expected = arrays_of(view, state)
    with np.load(io.BytesIO(export("npz").content)) as kept:
        for each, array in expected.items():
            np.testing.assert_array_equal(kept[each], array)
    assert export("json").json()[key] == expected[key].tolist()
    assert line in export("py").text
    light, dark = (export("py", more).content for more in ("", "&dark=1"))
    assert light == module.export(state, "py") != dark
    if module is sphere_export:
        assert export("svg").content == module.export(state, "svg") != export("svg", "&dark=1").content


@pytest.mark.parametrize(("format", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures_in_other_formats(client, format, start):
    assert client.get(f"/api/sphere/export.{format}").content.startswith(start)
    assert client.get(f"/api/field/export.{format}").status_code == 404  # the canvas of the page makes these


def test_the_switches_of_the_page_reach_the_figure():
    query = {"lines": "raw", "flow": "streams", "edges": "1", "forces": "0", "region": "0", "mining": "1"}
    shown = {"contours": "raw", "region": False, "arrows": False, "streams": True, "forces": False}
    shown |= {"decomposed": True, "mining": True, "dark": True}
    assert plane_export.drawing(Scene.from_query(query), dark=True) == shown
    assert plane_export.drawing(Scene()) == sphere_export.drawing(SphereScene()) == {}
    query = {"region": "0", "arrows": "0", "radial": "0", "eye": "10,20"}
    shown = {"region": False, "arrows": False, "radial": False, "dark": True, "eye": (10.0, 20.0)}
    assert sphere_export.drawing(SphereScene.from_query(query), dark=True) == shown
    assert "eye" not in sphere_export.drawing(SphereScene.from_query(query | {"on": "circle"}))


BAD = ("nan", "1e999", "../x", "%00", "x" * 200, "1,2,3,4", "inf")


@pytest.mark.parametrize(("bad", "format"), [*((bad, "py") for bad in BAD), ("1e999", "json")])
def test_a_senseless_query_gets_a_valid_file(client, bad, format):
    keys = ("loss", "a", "p", "n", "view", "r", "rho", "m1", "m2", "shade", "lines", "dark", "mu", "margin")
    response = client.get(f"/api/field/export.{format}?" + "&".join(f"{k}={bad}" for k in keys))
    assert response.status_code == 200
    assert '"' not in response.headers["content-disposition"].split('filename="')[1][:-1]
    if format == "json":
        json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    if format == "py":
        compile(response.text, "snippet.py", "exec")


@pytest.mark.parametrize(("name", "value"), [("distance_sensitive", "inf"), ("moving", "1e9")])
def test_extreme_parameters_are_drawn(client, name, value):
    hyper = "&".join(f"{k}={value}" for k in losses.formula(name).parameters)
    query = dict(parse_qsl(f"loss={name}&{hyper}&p=0,0&n=0,100&lines=raw&edges=1&flow=streams"))
    scene = Scene.from_query(query)
    points = {key: getattr(scene, key) for key in POINTS}
    figure = fields.draw_field(scene.module(), **points, **plane_export.drawing(scene))
    assert fields.save_figure(figure, format="svg").startswith(b"<?xml")


@pytest.mark.parametrize("path", ["export.exe", "export.", "export.svg/../x", "export.svg?" + "x" * 9000])
def test_anything_else_is_not_found(client, path):
    assert client.get(f"/api/field/{path}").status_code == 404
