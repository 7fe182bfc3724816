"""The charges socket returns the library's numbers, answers invalid messages, and bounds its cache."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.simulation import (
    FIXED_COLUMNS,
    MOST_CHANGES,
    Change,
    Dynamics,
    Simulation,
    phase_portrait,
)
from pages.losses.charges import service as charges_service
from pages.losses.charges import state as charges_state
from pages.losses.charges.state import ChargesState
from pages.shared.server.websocket import MOST_BYTES
from pages.shared.server.wire import unpack
from pages.shared.timeline import service as timeline_service
from pages.shared.timeline.history_cache import HistoryCache

SMALL = ChargesState(classes=2, per_class=5, law=Dynamics(loss="ranking", hyper={"m": 0.4}))
CHANGED = replace(
    SMALL,
    start="rings",
    seed=9,
    changes=(
        Change(2, Dynamics(loss="ranking", hyper={"m": 0.7}, optimiser="adam", step_size=0.02)),
        Change(4, None, ((1, 0.25, -0.5), (3, 0.0, 1.0))),
        Change(6, Dynamics(hyper={"m2": float("inf"), "s": 0.5}, miner="semi_hard", side="pull", normalise="project")),
    ),
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    kept = HistoryCache(Simulation)
    monkeypatch.setattr(charges_service.TIMELINE, "kept", kept)
    return kept


@pytest.fixture
def client():
    with TestClient(Starlette(routes=charges_service.ROUTES)) as client:
        yield client


def ask(spec: ChargesState, **more) -> dict:
    answer = unpack(charges_service.TIMELINE.answer({"state": spec.to_json(), **more}))
    return answer | answer.pop("arrays")


def all_of(spec: ChargesState, want: int) -> list[dict]:
    """Return answers up to step `want`; each computes for a limited time only."""
    answers = [ask(spec, have=-1, want=want)]
    while answers[-1]["ready"] < want or sum(len(a["positions"]) for a in answers) <= want:
        have = answers[-1]["first"] + len(answers[-1]["positions"]) - 1
        answers.append(ask(spec, have=have, want=want))
    return answers


def test_the_socket_hands_over_the_very_frames_of_the_library():
    simulation = Simulation(CHANGED)
    answers = all_of(CHANGED, 8)
    positions = np.concatenate([a["positions"] for a in answers])
    measures = np.concatenate([a["measures"] for a in answers])
    for k in range(9):
        frame = simulation.frame(k)
        assert np.array_equal(positions[k], frame.positions)
        assert measures[k] == pytest.approx([getattr(frame, c) for c in FIXED_COLUMNS], rel=1e-6)


def test_the_portrait_is_of_the_step_looked_at():
    all_of(SMALL, 5)
    answer = ask(SMALL, have=5, want=5, show=3)
    frame = Simulation(SMALL).frame(3)
    expected = phase_portrait(frame.positions.astype(float), np.repeat([0, 1], 5))
    assert answer["shown"] == 3
    assert answer["valid"] == expected.counts.sum() == 2 * 5 * 4 * 5
    assert np.array_equal(answer["density"] > 0, expected.counts > 0)
    assert answer["violated"] == expected.violated


def test_a_frame_takes_no_more_than_is_counted():
    full = Simulation(ChargesState(classes=3, per_class=100))
    arrays = sum(v.nbytes for v in vars(full.frame(0)).values() if isinstance(v, np.ndarray))
    assert arrays <= full.nbytes


def test_a_link_reopens_every_change_within_bounds():
    query = CHANGED.to_query()
    assert query["then"].startswith("2:")
    assert ChargesState.from_query(query) == CHANGED
    assert ChargesState().to_query() == {"start": "random"}
    far = ChargesState.from_query({"then": "3:move=150@0.5@-1,move=299@99@0,move=300@0@0"})
    assert far.changes == (Change(3, None, ((150, 0.5, -1.0), (299, 10 - 1e-6, 0.0))),)


def test_two_moons_come_apart_and_never_become_heaps():
    moons = Simulation(charges_state.PRESETS[0].state(ChargesState))
    first, last = moons.frame(0), moons.frame(50)
    assert (first.map_at_r < 0.6, last.map_at_r > 0.98, last.active) == (True, True, 0)
    rms = [np.linalg.norm(f.positions[:100] - f.positions[:100].mean(0), axis=1).mean() for f in (first, last)]
    assert rms[1] > 0.5 * rms[0]


def test_a_request_with_all_changes_fits_into_a_message():
    laws = [
        Dynamics(hyper={"m1": -2.3251 + i / 1000, "s": 1.2345, "r": 2.3456, "rho": 1.23456})
        for i in range(MOST_CHANGES)
    ]
    spec = replace(ChargesState(), changes=tuple(Change(900 + i, law) for i, law in enumerate(laws)))
    request = {"id": 10**6, "state": spec.to_json(), "have": 999, "want": 1000, "show": 1000}
    request |= {"stride": 1, "draft": True, "rest": True}
    assert len(json.dumps(request, separators=(",", ":"))) < MOST_BYTES


def test_the_history_can_be_taken_along(client):
    query = CHANGED.to_query() | {"step": "7"}
    answer = client.get("/api/charges/history.npz", params=query)
    assert "attachment" in answer.headers["content-disposition"]
    arrays = np.load(io.BytesIO(answer.content))
    frame = Simulation(CHANGED).frame(7)
    assert np.array_equal(arrays["positions"][7], frame.positions)
    assert arrays["loss"].shape == (8,)
    body = client.get("/api/charges/history.json", params=query).json()
    assert ChargesState.of(body["spec"]) == CHANGED
    assert np.float32(body["positions"][7]).tolist() == frame.positions.tolist()
    assert client.get("/api/charges/history.exe", params=query).status_code == 404


def test_the_snippet_and_link_come_on_rest():
    answer = ask(CHANGED, have=-1, want=0, rest=True)
    assert answer["query"] == CHANGED.to_query()
    assert "Simulation(spec)" in answer["python"]
    assert "query" not in ask(CHANGED, have=-1, want=0)


def test_what_takes_too_long_is_refused(client, monkeypatch):
    monkeypatch.setattr(timeline_service, "EXPORT_PATIENCE", 0.0)
    refused = client.get("/api/charges/history.npz?step=300")
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "30"
