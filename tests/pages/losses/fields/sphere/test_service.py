"""The sphere socket returns the library's numbers; invalid messages and links get a valid scene."""

from __future__ import annotations

import math
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import distance
from dmlcore.geometry.sphere import central_angle, on_circle, on_sphere, sphere_forces
from pages.losses.fields.sphere import service as sphere_service
from pages.losses.fields.sphere.service import COARSE, FINE, MAP, RING, WHIRL, unit
from pages.losses.fields.sphere.state import STATES, SURFACES, SphereScene
from pages.shared.plane.state import POINTS
from pages.shared.server.wire import unpack
from tests.members import in_one_case

PROBES = list(POINTS)


def decoded(request: dict) -> dict:
    answer = unpack(sphere_service.answer(request))
    return answer | answer["arrays"]


def triplet(scene: SphereScene, **replaced: torch.Tensor) -> list[torch.Tensor]:
    return [replaced.get(name, unit(scene, name)) for name in POINTS]


def bits(packed: np.ndarray, *shape: int) -> np.ndarray:
    return np.unpackbits(packed, count=math.prod(shape)).reshape(shape).astype(bool)


@in_one_case(fine=[False, True], probe=PROBES)
def test_every_node_of_the_sphere_is_the_loss_there(probe, fine):
    scene = SphereScene.of({"probe": probe, "negative": [10.0, 60.0]})
    found = decoded({"scene": scene.to_json(), "fine": fine})
    rows, columns = found["rows"], found["columns"]
    assert (rows, columns) == ((FINE, 2 * FINE - 1) if fine else (COARSE, 2 * COARSE - 1))
    assert found["shade"].shape == (rows, columns)
    active, loss = bits(found["active"], rows, columns), scene.module()
    assert active.any()
    assert not active.all()
    for row, col in ((0, 5), (rows // 2, columns // 2), (rows // 3, 40), (rows - 1, 3), (60, columns - 1)):
        latitude, longitude = math.pi * (row / (rows - 1) - 0.5), 2 * math.pi * (col / (columns - 1) - 0.5)
        node = on_sphere(*torch.tensor([longitude, latitude], dtype=torch.float64))
        at = triplet(scene, **{probe: node})
        expected = 255 * min(float(loss.clamped(*at)) / found["scale"], 1)
        assert found["shade"][row, col] == pytest.approx(expected, abs=0.51)
        assert active[row, col] == (0 < float(loss.raw(*at)) < loss.m2)


def test_arrows_of_the_sphere_are_tangential_forces():
    scene, seen = SphereScene(), 0
    found = decoded({"scene": scene.to_json()})
    loss, lengths = scene.module(), []
    for node, arrow in zip(found["nodes"] / 32767, found["arrows"].astype(float), strict=True):
        at = torch.tensor(node / np.linalg.norm(node))
        force = sphere_forces(loss, *triplet(scene, negative=at)).tangential[2].numpy()
        size = np.linalg.norm(force)
        if size > 1e-6 and np.linalg.norm(arrow) > 20:
            cosine = arrow @ force / (np.linalg.norm(arrow) * size)
            assert cosine > 0.999
            lengths.append((size, np.linalg.norm(arrow)))
            seen += 1
        elif size < 1e-9:
            assert np.abs(arrow).max() <= 1
    assert seen > 60
    lengths.sort()
    assert np.all(np.diff([arrow for _, arrow in lengths]) > -2), "stronger forces have longer arrows"


@in_one_case(on=SURFACES)
def test_boundaries_lie_where_the_loss_meets_its_clamps(on):
    scene = SphereScene.of({"on": on})
    found, loss = decoded({"scene": scene.to_json(), "fine": True, "map": True}), scene.module()
    if on == "sphere":
        directions = torch.tensor(found["corners"] / 32767)
        raw = loss.raw(*triplet(scene, negative=directions / directions.norm(dim=-1, keepdim=True)))
        outer, total = sum(found["outer"]), len(directions)
        assert len(found["inner"]) == 2
    else:
        angle = torch.tensor((found["map_lines"] / 65535 - 0.5) * 2 * math.pi)
        raw = loss.raw(on_circle(torch.zeros(len(angle)).double()), on_circle(angle[:, 0]), on_circle(angle[:, 1]))
        outer, total = sum(found["map"]["outer"]), sum(sum(found["map"][k]) for k in ("outer", "inner", "bands"))
        assert len(found["map_lines"]) == total
    inner = sum((found if on == "sphere" else found["map"])["inner"])
    assert outer > 50 < inner
    assert raw[:outer].abs().max() < 0.01
    assert (raw[outer : outer + inner] - loss.m2).abs().max() < 0.15


@in_one_case(probe=PROBES)
def test_the_ring_and_its_whirl(probe):
    scene = SphereScene.of({"on": "circle", "probe": probe, "loss": "facenet", "hyper": {"m": 1.0}})
    found, loss = decoded({"scene": scene.to_json()}), scene.module()
    assert "map" not in found
    active, forward_seen = bits(found["active"], RING), 0
    for i in range(0, RING, RING // WHIRL):
        angle = torch.tensor(2 * math.pi * i / RING, dtype=torch.float64)
        at = triplet(scene, **{probe: on_circle(angle)})
        expected = 255 * min(float(loss.clamped(*at)) / found["scale"], 1)
        assert found["ring"][i] == pytest.approx(expected, abs=0.51)
        assert active[i] == (0 < float(loss.raw(*at)) < loss.m2)
        forward = (sphere_forces(loss, *at).tangential[PROBES.index(probe)] * on_circle(angle + math.pi / 2)).sum()
        whirl = int(found["whirl"][i * WHIRL // RING])
        assert abs(whirl) <= 1 if abs(float(forward)) < 1e-3 else np.sign(whirl) == np.sign(float(forward))
        forward_seen += abs(whirl) > 1
    assert forward_seen > 10


def test_the_map_of_angles_is_the_loss():
    scene = SphereScene.of({"on": "circle", "loss": "lifted"})
    found, loss = decoded({"scene": scene.to_json(), "map": True}), scene.module()
    active = bits(found["map_active"], MAP, MAP)
    zero = on_circle(torch.tensor(0.0, dtype=torch.float64))
    for row, col in ((0, 0), (72, 72), (30, 100), (144, 10), (100, 30)):
        n, p = (2 * math.pi * (torch.tensor(k, dtype=torch.float64) / (MAP - 1) - 0.5) for k in (row, col))
        at = zero, on_circle(p), on_circle(n)
        assert found["map_shade"][row, col] == pytest.approx(
            255 * min(float(loss.clamped(*at)) / found["scale"], 1), abs=0.51
        )
        assert active[row, col] == (0 < float(loss.raw(*at)) < loss.m2)


@in_one_case(on=SURFACES, name=losses.names())
def test_every_number_shown_is_the_library_s(name, on):
    scene = SphereScene.of({"on": on, "loss": name, "anchor": [5, 10], "positive": [70, -30], "negative": [40, 50]})
    found, loss, at = decoded({"scene": scene.to_json()}), scene.module(), triplet(scene)
    forces = sphere_forces(loss, *at)
    assert found["raw"] == pytest.approx(float(loss.raw(*at)), rel=1e-12)
    assert found["energy"] == pytest.approx(float(loss.clamped(*at)), rel=1e-12)
    assert found["hit"] == (0 < float(loss.raw(*at)) < loss.m2)
    for k in range(3):
        assert found["tangential"][k] == pytest.approx(forces.tangential[k].tolist(), abs=1e-12)
        assert found["radial"][k] == pytest.approx(float(forces.radial[k]), abs=1e-12)
    for pair, (x, y) in {"ap": (0, 1), "an": (0, 2), "pn": (1, 2)}.items():
        assert found["edges"][pair] == pytest.approx(float(distance(at[x], at[y])))
        assert found["angles"][pair] == pytest.approx(math.degrees(float(central_angle(at[x], at[y]))))
    assert SphereScene.from_query(dict(parse_qsl(found["link"]))).to_query() == scene.to_query()


def test_colours_keep_their_meaning_while_points_move():
    scale = decoded({"scene": {"negative": [1, 1]}})["scale"]
    assert decoded({"scene": {"negative": [150, -60], "anchor": [9, 9]}})["scale"] == scale
    assert decoded({"scene": {"hyper": {"m1": 0.0}}})["scale"] != scale


EXTREMES = [-1e9, 0.0, 1e9, None]


@in_one_case(name=losses.names(), value=EXTREMES)
def test_extreme_hyper_parameters_and_coincident_points(name, value):
    # each loss and each extreme occurs on both surfaces
    on = list(SURFACES)[(losses.names().index(name) + EXTREMES.index(value)) % len(SURFACES)]
    hyper = dict.fromkeys(losses.formula(name).parameters, value)
    for points in ({}, dict.fromkeys(POINTS, (0, 90)), {"anchor": [0, 0], "positive": [180, 0], "negative": [0, 0]}):
        found = decoded({"scene": {"loss": name, "hyper": hyper, "on": on} | points, "map": True})
        assert math.isfinite(found["scale"])
        assert found["scale"] > 0
        assert np.isfinite(found["tangential"]).all()
        assert np.isfinite(found["radial"]).all()


@in_one_case(name=losses.names())
def test_a_link_of_the_circle_keeps_the_angles_alone(name):
    flat = SphereScene.of({"on": "circle", "loss": name, "negative": [123.25, -50.5], "eye": [-60, 5.5]})
    again = SphereScene.from_query(flat.to_query())
    assert again.to_query() == flat.to_query()
    for point in POINTS:
        torch.testing.assert_close(unit(again, point), unit(flat, point))


def angle_between(state: tuple, i: int, j: int) -> float:
    x, y = (on_sphere(*torch.deg2rad(torch.tensor(state[k], dtype=torch.float64))) for k in (i, j))
    return math.degrees(float(central_angle(x, y)))


def test_the_states_are_what_their_names_say():
    states = {s.name: s.sphere for s in STATES}

    def sides(name: str) -> list[float]:
        return [angle_between(states[name], i, j) for i, j in ((0, 1), (0, 2), (1, 2))]

    assert sides("collapsed pair")[0] == 0
    ap, an, _ = sides("hard negative")
    assert an < ap
    assert sides("orthogonal classes")[1:] == pytest.approx([90, 90])
    assert sides("random directions") == pytest.approx([90, 90, 90])
    assert sides("antipodal negative")[1] == pytest.approx(180)
    assert sides("regular simplex") == pytest.approx([math.degrees(math.acos(-1 / 3))] * 3, abs=1e-3)
    sides_of_metu = [2 * math.sin(math.radians(x) / 2) for x in sides("METU triangle")]
    assert sides_of_metu == pytest.approx([2 ** (1 / 3)] * 3, abs=1e-5)
    core = losses.formula("distance_sensitive")
    a, p, n = (on_sphere(*torch.deg2rad(torch.tensor(x, dtype=torch.float64))) for x in states["METU triangle"])
    assert float(core(a, p, n, s=1.0, r=2.0, rho=1.0)) == pytest.approx(2.38110, abs=1e-5)  # section 6
