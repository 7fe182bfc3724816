"""The scene survives every link and message a browser may send."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore import losses
from dmlcore.loss_analysis.thesis_figures import PRESETS
from pages.shared.plane.state import Scene
from pages.shared.server.schema import schema
from pages.shared.state.untrusted import MARGINS, REACH

NASTY = ["nan", "1e999", "-inf", "\0", "../../etc/passwd", "x" * 100_000, "", "1,2", "<script>", "１", "0x10", "true"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = list(Scene().to_json())


def assert_valid(scene: Scene) -> None:
    loss = scene.module()
    assert set(scene.hyper) == set(loss.formula.parameters)
    for point in (scene.anchor, scene.positive, scene.negative):
        assert all(math.isfinite(v) and abs(v) <= REACH for v in point)
    assert 0.05 <= scene.view[2] <= 50
    assert Scene.of(json.loads(json.dumps(scene.to_json(), allow_nan=False))) == scene


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*FIELDS, "other"], anything)))
def test_any_message_gives_a_valid_scene(message):
    assert_valid(Scene.of(message))


@pytest.mark.parametrize("text", NASTY)
def test_any_link_gives_a_valid_scene(text):
    for key in ("loss", "s", "r", "rho", "m1", "m2", "a", "p", "n", "probe", "shade", "view", "region"):
        assert_valid(Scene.from_query({key: text}))


@pytest.mark.parametrize("name", losses.names())
def test_a_link_reopens_the_same_view(name):
    hyper = {k: v.low for k, v in losses.formula(name).parameters.items() if hasattr(v, "low")}
    scene = Scene.of(
        {"loss": name, "hyper": hyper, "negative": [0.123, -0.5], "probe": "anchor", "discs": True, "view": [0, 1, 2]}
    )
    assert Scene.from_query(scene.to_query()) == scene


def test_the_default_scene_needs_no_link():
    assert Scene().to_query() == {}
    assert Scene.from_query({}) == Scene()


def test_an_open_clamp_survives_the_link_and_json():
    scene = Scene.of({"hyper": {"m2": None}})
    assert scene.hyper["m2"] == math.inf
    assert Scene.from_query(scene.to_query()) == scene
    assert scene.to_json()["hyper"]["m2"] is None


def test_margins_may_leave_the_slider_and_exponents_may_not():
    scene = Scene.from_query({"m1": "40", "r": "77"})
    assert scene.hyper["m1"] == 40
    assert scene.hyper["r"] == 4
    assert Scene.from_query({"m1": "1e9"}).hyper["m1"] == MARGINS


def test_the_schema_offers_every_loss_and_every_preset():
    offered = json.loads(schema())
    assert list(offered["losses"]) == losses.names()
    assert len(offered["presets"]) == len(PRESETS)
    for preset, stored in zip(offered["presets"], PRESETS, strict=True):
        scene = Scene.of(preset)
        assert scene.loss == stored.loss
        assert {k: scene.hyper[k] for k in stored.hyper} == stored.hyper
