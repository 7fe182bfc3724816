"""The bytes of the socket say what the library computes, and a stranger's message gets no further than an error."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from dmlcore import losses
from dmlcore.geometry import forces
from pages._ui import assets, field_service
from pages._ui.scene import POINTS, Scene
from pages._ui.wire import unpack


def decode(answer: bytes) -> dict:
    header = unpack(answer)
    field, n = header | header["arrays"], header["n"]
    return field | {"active": np.unpackbits(field["active"], count=n * n).reshape(n, n)}


@pytest.fixture
def client():
    with TestClient(Starlette(routes=[*field_service.ROUTES, *assets.ROUTES])) as client:
        yield client


def at_node(scene: Scene, n: int, row: int, col: int) -> torch.Tensor:
    x, y, half = scene.view
    return torch.tensor([x - half + (col + 0.5) * 2 * half / n, y - half + (row + 0.5) * 2 * half / n])


@pytest.mark.parametrize("shade", ["energy", "force"])
@pytest.mark.parametrize("probe", POINTS)
def test_every_node_is_the_loss_at_that_point(shade, probe):
    scene = Scene.of({"probe": probe, "shade": shade, "negative": [0.4, 0.6]})
    field = decode(field_service.answer({"id": 7, "scene": scene.to_json(), "n": 41}))
    assert (field["id"], field["n"]) == (7, 41)
    loss = scene.module()
    for row, col in ((0, 0), (20, 20), (25, 8), (40, 3), (18, 30)):
        points = {k: torch.tensor(getattr(scene, k), dtype=torch.float64) for k in POINTS}
        points[probe] = at_node(scene, 41, row, col).double()
        energy = loss.clamped(*points.values()).item()
        force = dict(zip(POINTS, forces(loss, *points.values()), strict=True))[probe]
        value = energy if shade == "energy" else force.norm().item()
        assert field["shade"][row, col] == pytest.approx(255 * min(value / field["scale"], 1), abs=0.51)
        assert field["active"][row, col] == (0 < loss.raw(*points.values()) < loss.m2)


def test_arrows_keep_the_direction_of_the_force():
    scene = Scene()
    field = decode(field_service.answer({"scene": scene.to_json(), "n": 100}))
    seen = 0
    for row, col in np.ndindex(20, 20):
        node = at_node(scene, 100, 5 * row + 2, 5 * col + 2).double()
        a, p = (torch.tensor(x, dtype=torch.float64) for x in (scene.anchor, scene.positive))
        force = forces(scene.module(), a, p, node)[2].numpy()
        length = np.linalg.norm(force)
        expected = 127 * force / (length + field["reference"])
        assert np.abs(field["arrows"][row, col] - expected).max() <= 0.51
        seen += length > 0
    assert seen > 50


def test_boundary_points_lie_where_the_loss_vanishes():
    scene = Scene()
    field = decode(field_service.answer({"scene": scene.to_json(), "n": 201}))
    x, y, half = scene.view
    corners = np.array([x - half, y - half]) + field["corners"] / 65535 * 2 * half
    outer = torch.tensor(corners[: sum(field["outer"])])
    a, p = (torch.tensor(v, dtype=torch.float64) for v in (scene.anchor, scene.positive))
    assert sum(field["outer"]) + sum(field["inner"]) == len(corners)
    assert scene.module().raw(a, p, outer).abs().max() < 0.01


def test_a_locked_scale_stays_until_the_hand_rests_and_it_misleads():
    scene = Scene().to_json()
    fitting = decode(field_service.answer({"scene": scene}))["scale"]
    locked = decode(field_service.answer({"scene": scene, "scale": 9 * fitting}))["scale"]
    near = decode(field_service.answer({"scene": scene, "scale": 1.1 * fitting, "settle": True}))["scale"]
    far = decode(field_service.answer({"scene": scene, "scale": 9 * fitting, "settle": True}))["scale"]
    assert locked == 9 * fitting
    assert near == pytest.approx(1.1 * fitting)
    assert far == fitting


def test_an_answer_is_small():
    assert len(field_service.answer({"scene": Scene().to_json(), "n": 101})) < 16_000


@pytest.mark.parametrize("n", [None, 1, 10**9, -5, "many", float("nan"), True])
def test_grid_sizes_are_bounded(n):
    assert 2 * field_service.ARROWS <= decode(field_service.answer({"n": n}))["n"] <= field_service.FINEST


@pytest.mark.parametrize("bad", [None, [], "x", 5, 10**400, -(10**400), {"n": 1}, True, 1e300])
@pytest.mark.parametrize("key", ["id", "scene", "n", "scale", "reference", "settle"])
def test_any_value_of_any_key_gets_an_answer(client, key, bad):
    with client.websocket_connect("/api/field") as socket:
        socket.send_text(json.dumps({key: bad}))
        assert decode(socket.receive_bytes())["n"] >= 40


@pytest.mark.parametrize("name", losses.names())
@pytest.mark.parametrize("value", [-1e9, 0.0, 1e9, None])
def test_extreme_hyper_parameters_get_a_field(name, value):
    hyper = dict.fromkeys(losses.formula(name).parameters, value)
    for shade in ("energy", "force"):
        scene = {"loss": name, "hyper": hyper, "positive": [0, 0], "negative": [0, 100], "shade": shade}
        assert decode(field_service.answer({"scene": scene, "n": 40}))["scale"] > 0


def test_the_socket_answers_and_survives_bad_messages(client):
    with client.websocket_connect("/api/field", headers={"origin": "http://testserver"}) as socket:
        for bad in ('{"scene": {"view": [NaN, 0, 1]}}', "[]", "no json", '{"id": 1' + " " * 9000 + "}", "[" * 3000):
            socket.send_text(bad)
            assert "error" in json.loads(socket.receive_text())
        socket.send_text(json.dumps({"id": 3, "n": 150, "scene": {"loss": "../x", "anchor": [1e308, "y"]}}))
        assert decode(socket.receive_bytes())["id"] == 3


def test_a_foreign_page_gets_no_socket(client):
    with (
        pytest.raises(WebSocketDisconnect) as refusal,
        client.websocket_connect("/api/field", headers={"origin": "http://evil.test"}),
    ):
        pass
    assert refusal.value.code == 1008


def test_component_files_have_an_address_that_changes_with_them(client):
    base = f"/api/assets/{assets.version()}"
    for name, (content, _) in assets.files().items():
        response = client.get(f"{base}/{name}")
        assert response.content == content
        assert "immutable" in response.headers["cache-control"]
    assert {"field_canvas/field_canvas.js", "shared/schema.json"} <= set(assets.files())
    for bad in (f"{base}/../app.py", f"{base}/none.js", "/api/assets/0/shared/dom.js", f"{base}/%2e%2e%2fapp.py"):
        assert client.get(bad).status_code == 404
