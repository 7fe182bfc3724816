"""The compare page without a browser: opened from the plane, it takes the loss and the points along."""

from __future__ import annotations

import json

import pytest

from pages.shared.plane.state import Scene
from pages.shared.state import untrusted
from tests.pages.conftest import load_page


@pytest.mark.parametrize(
    ("loss", "other"), [("distance_sensitive", "ranking"), ("ranking", "distance_sensitive"), ("lifted", "ranking")]
)
def test_from_the_plane_its_loss_and_points_stand_beside_another_loss(loss, other):
    """The second loss is the default Ranking, or its successor if the plane already shows Ranking."""
    scene = Scene.of({"loss": loss, "hyper": {"m": 0.7, "s": 2.5}, "negative": [0.5, 0.25], "view": [0, 0, 1]})
    app = load_page("compare", **{"from": "plane"}, **scene.to_query())
    assert not app.exception
    shown = json.loads(app.get("bidi_component")[0].proto.json)["comparison"]
    assert [panel["loss"] for panel in shown["panels"]] == [loss, other]
    assert shown["panels"][0]["hyper"] == untrusted.jsonable(scene.hyper)
    assert (shown["negative"], shown["view"]) == ([0.5, 0.25], [0, 0, 1])
