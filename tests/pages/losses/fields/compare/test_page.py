"""The compare page without a browser: it opens from any link and passes the state of the link to the component."""

from __future__ import annotations

import json

from streamlit.testing.v1 import AppTest

from pages.losses.fields.compare.presets import PAIRS
from pages.shared.plane.state import Scene
from pages.shared.state import untrusted
from tests.pages.conftest import load_page


def open_page(**query: str) -> AppTest:
    return load_page("compare", **query)


def component_data(app: AppTest) -> dict:
    """Return the data that the component receives."""
    (component,) = (e.proto for e in app.main if "BidiComponent" in type(e.proto).__name__)
    return json.loads(component.json)


def test_the_default_page_offers_the_identities():
    app = open_page()
    assert not app.exception
    assert app.title[0].value == "Are these the same loss?"
    data = component_data(app)
    assert [p["title"] for p in data["presets"]] == [p.title for p in PAIRS]
    assert [p["loss"] for p in data["comparison"]["panels"]] == ["ranking", "distance_sensitive"]


def test_a_link_reaches_the_component():
    data = component_data(open_page(l1="angular,rho:0.3", l3="facenet", n="0.5,0.25", hide="points,rho"))
    assert data["comparison"]["panels"][0]["hyper"]["rho"] == 0.3
    assert len(data["comparison"]["panels"]) == 3
    assert data["comparison"]["negative"] == [0.5, 0.25]
    assert data["hide"] == ["points", "rho"]
    assert not data["idle"]


def test_from_the_plane_its_loss_and_points_stand_beside_another_loss():
    """The second loss is the default Ranking, or its successor if the plane already shows Ranking."""
    for loss, other in (("distance_sensitive", "ranking"), ("ranking", "distance_sensitive"), ("lifted", "ranking")):
        scene = Scene.of({"loss": loss, "hyper": {"m": 0.7, "s": 2.5}, "negative": [0.5, 0.25], "view": [0, 0, 1]})
        app = open_page(**{"from": "plane"}, **scene.to_query())
        assert not app.exception
        shown = component_data(app)["comparison"]
        assert [panel["loss"] for panel in shown["panels"]] == [loss, other]
        assert shown["panels"][0]["hyper"] == untrusted.jsonable(scene.hyper)
        assert (shown["negative"], shown["view"]) == ([0.5, 0.25], [0, 0, 1])
