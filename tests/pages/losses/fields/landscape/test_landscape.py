"""The landscape of a page: answers of its socket, lazy loading of plotly.js, and the exported file."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from pages.losses.fields.compare.state import ComparisonView
from pages.losses.fields.landscape import export, service
from pages.shared.plane.state import Scene
from pages.shared.server.wire import unpack
from tests.members import in_one_case
from tests.started import run_python


@pytest.fixture(scope="module")
def client():
    with TestClient(Starlette(routes=[*service.ROUTES, *export.ROUTES])) as client:
        yield client


def test_a_scene_and_a_pair_are_answered_and_the_link_keeps_both():
    scene = Scene.from_query({"landscape": "1", "mass": "0.5", "loss": "ranking"})
    assert scene.to_query() == {"landscape": "1", "mass": "0.5", "loss": "ranking"}
    one = unpack(service.answer({"id": 3, "scene": scene.to_json(), "roll": True}))
    assert one["id"] == 3
    assert len(one["verdicts"]) == len(one["figure"]["marbles"]) == 1
    pair = ComparisonView.from_query({"l3": "facenet", "pair": "3,1", "landscape": "1"})
    two = unpack(service.answer({"id": 4, "comparison": pair.to_json(), "roll": True, "stacked": True}))
    assert [text.split(":")[0] for text in two["verdicts"]] == [
        f"{k}  {losses.formula(name).title}" for k, name in ((3, "facenet"), (1, "ranking"))
    ]
    assert {trace["scene"] for trace in two["figure"]["data"]} == {"scene", "scene2"}


def test_while_the_hand_moves_nothing_rolls():
    moving = unpack(service.answer({"id": 1, "scene": {}}))
    assert (moving["verdicts"], moving["figure"]["marbles"]) == ([], [])


ROLLED = [("anchor", 2.0), ("positive", 0.0), ("negative", 2.0)]


@in_one_case(name=losses.names())
def test_every_marble_has_its_verdict(name):
    # cycle through the probes, which gives all six verdicts
    probe, mass = ROLLED[losses.names().index(name) % len(ROLLED)]
    (text,) = service.verdicts(service.landscape(Scene.of({"loss": name, "probe": probe, "mass": mass}), n=5))
    assert probe in text
    assert text.endswith(".")


def test_hostile_requests_get_the_default():
    for request in ({"scene": "x"}, {"scene": {"view": [1e9, "nan", -3], "mass": 1e9}}, {"comparison": [1]}):
        assert unpack(service.answer(request | {"roll": True}))["verdicts"]


def test_plotly_js_is_served_by_its_version_and_plotly_itself_is_not_imported(client):
    code = (
        "import sys; from pages.losses.fields.landscape import export, service; service.answer({'roll': True});"
        "sys.exit('plotly' in sys.modules)"
    )
    assert run_python("-c", code).returncode == 0
    version = unpack(service.answer({}))["plotly"]
    found = client.get(f"/api/landscape/plotly-{version}.js")
    assert found.headers["content-type"].startswith("text/javascript")
    assert "immutable" in found.headers["cache-control"]
    assert b"plotly.js" in found.content[:100]
    assert client.get("/api/landscape/plotly-0.0.js").status_code == 404


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.outside += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith("#")]


@pytest.mark.parametrize(
    ("what", "query", "names"),
    [
        ("field", "loss=facenet&m=0.3&landscape=1&dark=1", ["facenet"]),
        ("compare", "l1=ranking,m:0.4&l2=facenet&mass=1", ["ranking", "facenet"]),
    ],
)
def test_the_file_holds_surface_formula_parameters_and_source_and_needs_no_net(client, what, query, names):
    response = client.get(f"/api/landscape/{what}/export.html?{query}")
    assert response.status_code == 200
    assert response.headers["content-disposition"].startswith('attachment; filename="dml-landscape-')
    text = response.text
    assert _Tags(text).outside == []
    assert "Plotly.newPlot(" in text
    assert text.count('<div class="formula"><svg') == len(names)
    assert '"frames"' in text or "addFrames" in text
    for name in names:
        assert losses.formula(name).source.split(" ")[0] in text
    assert "m = 0." in text
    assert "?" in text.split("<code>")[1]


def test_no_other_file_and_nothing_from_the_link_is_run(client):
    assert client.get("/api/landscape/field/export.py").status_code == 404
    text = client.get("/api/landscape/field/export.html?loss=<script>alert(1)</script>&m=<b>").text
    assert "alert(1)" not in text
