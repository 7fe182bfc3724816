"""Sockets of all pages: any value of any key gets an answer, and a message that is no request gets an error."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.library.errata import service as errata
from pages.library.errata.state import Example
from pages.losses.fields.compare import service as compare
from pages.losses.fields.compare.state import ComparisonView
from pages.losses.fields.pair_weights import service as pair_weights
from pages.losses.fields.pair_weights.state import PairWeightsView
from pages.losses.fields.sphere import service as sphere
from pages.losses.fields.sphere.state import SphereScene
from pages.pooling.prototypes import service as prototypes
from pages.pooling.prototypes.state import PrototypesView
from pages.pooling.transport import service as transport
from pages.pooling.transport.state import TransportState
from pages.shared.plane import service as plane
from pages.shared.plane.state import Scene
from pages.shared.server.wire import unpack
from tests.members import note_member

# routes, state and its key, and the other keys of the requests
SOCKETS = {
    "/api/field": (plane.ROUTES, Scene, "scene", "id n scale reference settle batch hover"),
    "/api/compare": (compare.ROUTES, ComparisonView, "comparison", "id n scale span settle lock at fields"),
    "/api/sphere": (sphere.ROUTES, SphereScene, "scene", "id fine map"),
    "/api/pair_weights": (pair_weights.ROUTES, PairWeightsView, "view", "id n top settle at maps"),
    "/api/transport": (transport.ROUTES, TransportState, "state", "id rest"),
    "/api/prototypes": (prototypes.ROUTES, PrototypesView, "view", "id have"),
    "/api/truth": (errata.ROUTES, Example, "scene", "id n scale"),
}
BAD = [None, [], "x", -1, True, 10**400, 1e300, {"n": 1}, ["nan"], [[1], {}]]
BAD.append([{"loss": 1}, {"loss": "ranking", "hyper": 3}])
NO_REQUESTS = ('{"scene": {"view": [NaN, 0, 1]}}', "[]", "no json", '{"id": 1' + " " * 9000 + "}", "[" * 3000)


@pytest.mark.parametrize("address", SOCKETS)
def test_any_value_of_any_key_gets_an_answer(address):
    routes, state, key, others = SOCKETS[address]
    fields = [*state.kinds]
    with TestClient(Starlette(routes=routes)) as client, client.websocket_connect(address) as socket:
        for bad in BAD:
            # of all fields of the state, a few at a time, as a request has at most MOST_BYTES
            states = [{key: dict.fromkeys(fields[i : i + 6], bad)} for i in range(0, len(fields), 6)]
            for request in (*states, *({name: bad} for name in (key, *others.split()))):
                with note_member(request):
                    socket.send_text(json.dumps({"n": 25} | request))
                    assert unpack(socket.receive_bytes())


def test_a_message_that_is_no_request_gets_an_error_and_the_socket_lives():
    with TestClient(Starlette(routes=sphere.ROUTES)) as client, client.websocket_connect("/api/sphere") as socket:
        for bad in NO_REQUESTS:
            socket.send_text(bad)
            assert "error" in json.loads(socket.receive_text())
        socket.send_text(json.dumps({"id": 4, "scene": {"on": "circle"}, "map": True}))
        assert unpack(socket.receive_bytes())["id"] == 4
