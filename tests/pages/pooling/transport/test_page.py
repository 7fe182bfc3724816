"""The transport page: bytes are the library's numbers, the link is the state, and an invalid link opens the default."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.pooling import pooling_weights, prototype_costs, selection, sweeps, transport
from dmlcore.pooling.analysis.red_blue import MAPS, STEPS
from pages.pooling.transport import export as transport_export
from pages.pooling.transport import service as transport_service
from pages.pooling.transport.state import (
    BLUE,
    PIXELS,
    PRESETS,
    RED,
    TransportState,
    code,
    decode_runs,
    encode_runs,
    map_codes,
)
from pages.shared.server import exports
from pages.shared.server.websocket import MOST_BYTES
from pages.shared.server.wire import unpack
from tests.members import in_one_case

SOME = TransportState(map_codes("cross"), (RED, BLUE, code(40, 30)), 0.35, 12.0, 60)


def get_answer(state: TransportState, **request) -> dict:
    answer = unpack(transport_service.answer({"state": state.to_json(), **request}))
    return answer | answer["arrays"]


@pytest.mark.parametrize(
    "state", [TransportState(), SOME, *(p.state(TransportState) for p in PRESETS)], ids=lambda s: s.link() or "-"
)
def test_every_number_is_the_librarys(state):
    cost = prototype_costs(torch.from_numpy(state.features()), torch.from_numpy(state.centres()))
    rho, pi = transport(cost, state.mu, state.epsilon)
    weights = np.stack([selection(cost, state.mu), pooling_weights(rho, state.mu), np.full(PIXELS, 1 / PIXELS)])
    found = get_answer(state)
    np.testing.assert_allclose(found["weights"], weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found["plan"], PIXELS * pi, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found["left"], PIXELS * rho, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found["marginals"], pi.sum(-1) / state.mu, rtol=1e-6)
    informative = state.features()[:, 1] < 0.5
    assert found["informative"] == informative.sum()
    np.testing.assert_allclose(found["shares"], weights[:, informative].sum(-1), atol=1e-9)
    np.testing.assert_allclose(found["mixtures"], weights @ state.features(), atol=1e-9)
    rho_k, pi_k = sweeps(cost, state.mu, state.epsilon, state.sweeps)
    off = max(float((rho_k - rho).abs().max()), float((pi_k - pi).abs().max())) * PIXELS
    assert found["error"] == pytest.approx(off, rel=1e-6, abs=1e-13)
    assert found["swept_sum"] == pytest.approx(float(pooling_weights(rho_k, state.mu).sum()))
    assert found["sweep_errors"].shape == (state.sweeps,)
    assert sum(found["cells"]) == len(found["corners"])
    assert np.isfinite(found["field"]).all()


def test_the_plane_keeps_distances():
    features = SOME.features()
    flat = transport_service.plane(features)
    apart = np.linalg.norm(features[:, None] - features, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(flat[:, None] - flat, axis=-1), apart / math.sqrt(2), atol=1e-12)


def test_the_field_is_the_gate_at_its_place():
    found = get_answer(SOME)
    rows, columns = found["field"].shape
    assert (rows, columns) == transport_service.FIELD
    gate = transport_service.solve(SOME)
    corners = torch.eye(3, dtype=torch.float64)[[0, 2]]  # red and blue, the ends of the lowest row
    np.testing.assert_allclose(found["field"][0, [0, -1]] / 255, gate.open_at(corners), atol=0.5 / 255)


def test_captions_of_the_presets_are_true():
    by_title = {p.title: get_answer(p.state(TransportState), rest=True) for p in PRESETS}
    figure = by_title["The figure"]
    assert ((figure["weights"][0] > 0).sum(), figure["informative"]) == (20, 50)
    painted = (TransportState().features()[:, 1] < 0.5).nonzero()
    assert figure["weights"][1][painted].min() > 0.0095
    flat = by_title["ε → 0 gives average pooling"]
    np.testing.assert_allclose(flat["weights"][1], 0.01, rtol=0.04)
    assert flat["r"] == pytest.approx(0.2, abs=1e-3)
    hard = by_title["ε → ∞ gives the linear programme"]
    np.testing.assert_allclose(hard["weights"][1], hard["weights"][0], atol=0.002)
    assert hard["needed"] > 1000
    assert hard["swept_sum"] < 0.9
    everything = by_title["μ = 1 keeps everything"]
    assert (everything["weights"] == np.float32(0.01)).all()
    assert (everything["needed"], everything["bias"], everything["r"]) == (None, None, 1)
    small = by_title["A small object"]
    assert small["informative"] == 9
    assert small["shares"][1] > 0.99 > 0.1 > small["shares"][2]
    assert by_title["Slow sweeps"]["swept_sum"] < 0.5
    red_only = by_title["No prototype for the blue block"]
    gates = red_only["gates"].reshape(10, 10)
    assert gates[:5, :5].mean() > 0.7
    assert gates[5:, 5:].max() < 1e-6
    equal = by_title["All pixels equal"]
    np.testing.assert_allclose(equal["weights"][1], 0.01, rtol=1e-6)
    assert (equal["weights"][0][:20] > 0).all()


def test_a_hand_at_rest_gets_a_link_that_reopens_the_state():
    painted = TransportState(tuple(code(k, STEPS - k) for k in range(PIXELS)), mu=0.123, epsilon=77.7, sweeps=3)
    for state in (SOME, painted):
        assert TransportState.from_query(state.to_query()) == state
        assert get_answer(state, rest=True)["query"] == state.link()
        assert len(state.link()) < exports.LONGEST_QUERY
    assert all(TransportState(map_codes(name)).link() in ("", f"map={name}") for name in MAPS)


def test_runs_fold_and_unfold():
    codes = [0] * 17 + [RED] * 8 + [BLUE, RED] + [code(3, 5)] * 73
    assert decode_runs(encode_runs(tuple(codes))) == codes
    for bad in ("A", "AA!", "é12", "AAA" * 200):
        assert decode_runs(bad) is None


@pytest.fixture(scope="module")
def client():
    with TestClient(Starlette(routes=transport_export.ROUTES)) as client:
        yield client


@in_one_case(pixels=[[-1] * PIXELS, [RED + 1] * PIXELS, [0.5] * PIXELS])
def test_pixels_without_such_a_colour_get_an_answer(pixels):
    answer = unpack(transport_service.answer({"state": {"pixels": pixels}}))
    assert np.isfinite(answer["arrays"]["weights"]).all()


@in_one_case(mu=[0.01, 0.5, 0.99, 1.0], epsilon=[0.1, 450.0])
def test_the_ends_of_the_sliders_get_finite_numbers(mu, epsilon):
    for pixels in map(map_codes, MAPS):
        found = get_answer(TransportState(pixels, (RED,) * 8, mu, epsilon, 400))
        assert all(np.isfinite(x).all() for x in found["arrays"].values())


def test_a_full_request_fits_the_socket_and_its_answer_is_small():
    state = TransportState((RED,) * PIXELS, (RED,) * 8, 0.123456789, 449.123456, 400)
    assert len(json.dumps({"id": 10**9, "state": state.to_json(), "rest": True})) < MOST_BYTES
    assert len(transport_service.answer({"state": state.to_json()})) < 24_000


@pytest.mark.parametrize("format", ["json", "npz", "py", "svg"])
def test_exports_are_of_the_link(client, format):
    response = client.get(f"/api/transport/export.{format}?{SOME.link()}")
    assert response.status_code == 200
    if format == "svg":
        assert response.content.startswith(b"<?xml")
    else:
        assert response.content == transport_export.export(SOME, format)
    assert f'dml-transport-mu0.35-epsilon12.{format}"' in response.headers["content-disposition"]
    if format == "json":
        np.testing.assert_allclose(response.json()["weights"], get_answer(SOME)["weights"], atol=1e-7)
