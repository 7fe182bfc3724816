"""The bytes of the socket are the library's numbers, and an invalid message gets an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.path import Path
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.geometry import field_table, forces, margin_enclosing, margin_for_ellipse, normalised_margin
from pages.shared.plane import service as plane_service
from pages.shared.plane import state as plane_state
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import POINTS, Scene
from pages.shared.server import static_files
from pages.shared.server.wire import ARROWS, unpack
from pages.shared.state.page_state import Flag
from tests.members import in_one_case

FLAGS = {name: True for name, kind in Scene.kinds.items() if isinstance(kind, Flag)}
EVERYTHING = FLAGS | {"lines": "raw", "flow": "streams"}


def decode(answer: bytes) -> dict:
    header = unpack(answer)
    return header | header["arrays"]


def ask(scene: Scene | dict, **request) -> dict:
    scene = scene.to_json() if isinstance(scene, Scene) else scene
    return decode(plane_service.answer({"scene": scene} | request))


@pytest.fixture
def client():
    with TestClient(Starlette(routes=static_files.ROUTES)) as client:
        yield client


def at_node(scene: Scene, n: int, row: int, col: int) -> torch.Tensor:
    x, y, half = scene.view
    return torch.tensor([x - half + (col + 0.5) * 2 * half / n, y - half + (row + 0.5) * 2 * half / n]).double()


def with_probe(scene: Scene, place: torch.Tensor) -> list[torch.Tensor]:
    """Return the three points with the probe moved to each of `place` (..., 2)."""
    return [place if k == scene.probe else x.expand_as(place) for k, x in zip(POINTS, as_tensors(scene), strict=True)]


@in_one_case(shade=["energy", "raw", "force"], probe=POINTS)
def test_every_node_is_the_loss_at_that_point(shade, probe):
    scene = Scene.of({"probe": probe, "shade": shade, "negative": [0.4, 0.6]})
    field = ask(scene, id=7, n=41)
    assert (field["id"], field["n"]) == (7, 41)
    loss = scene.module()
    for row, col in ((0, 0), (20, 20), (25, 8), (40, 3), (18, 30)):
        points = with_probe(scene, at_node(scene, 41, row, col))
        raw, energy = loss.raw(*points).item(), loss.clamped(*points).item()
        force = dict(zip(POINTS, forces(loss, *points), strict=True))[probe]
        value = {"energy": energy, "raw": raw, "force": force.norm().item()}[shade]
        expected = np.clip(value / field["scale"], -1 if shade == "raw" else 0, 1)
        expected = 128 + 127 * expected if shade == "raw" else 255 * expected
        assert field["shade"][row, col] == pytest.approx(expected, abs=0.51)


def test_arrows_keep_the_direction_of_the_force():
    scene = Scene()
    field = ask(scene, n=100)
    seen = 0
    for row, col in np.ndindex(20, 20):
        force = forces(scene.module(), *with_probe(scene, at_node(scene, 100, 5 * row + 2, 5 * col + 2)))[2].numpy()
        length = np.linalg.norm(force)
        expected = 127 * force / (length + field["reference"])
        assert np.abs(field["arrows"][row, col] - expected).max() <= 0.51
        seen += length > 0
    assert seen > 50


def over_view(scene: Scene, fractions: np.ndarray) -> torch.Tensor:
    x, y, half = scene.view
    return torch.tensor(np.array([x - half, y - half]) + fractions / 65535 * 2 * half)


def test_boundary_points_lie_where_the_loss_vanishes():
    scene = Scene()
    field = ask(scene, n=201)
    outer = over_view(scene, field["corners"][: sum(field["outer"])])
    assert sum(field["outer"]) + sum(field["inner"]) == len(field["corners"])
    assert scene.module().raw(*with_probe(scene, outer)).abs().max() < 0.01


@pytest.mark.parametrize("m2", [5.0, None])
def test_the_rings_enclose_the_active_region(m2):
    scene = Scene.of({"hyper": {"m2": m2}, "view": [0.4, 0.1, 0.8]})
    field = ask(scene, n=201)
    rings = np.split(over_view(scene, field["patches"].astype(float)).numpy(), np.cumsum(field["rings"])[:-1])
    places = np.stack([at_node(scene, 40, row, col).numpy() for row, col in np.ndindex(40, 40)])
    inside = sum(Path(ring).contains_points(places).astype(int) for ring in rings) % 2 == 1
    raw = scene.module().raw(*with_probe(scene, torch.from_numpy(places))).numpy()
    active = (raw > 0) & (raw < scene.module().m2)
    assert active.any()
    assert not active.all()
    assert np.mean(inside != active) < 0.004  # nodes next to a boundary differ
    corners = np.concatenate(rings)
    assert corners[:, 0].min() == pytest.approx(-0.4, abs=1e-3)  # reaches the edge of the view


@pytest.mark.parametrize("lines", ["raw", "clamped"])
def test_equipotentials_lie_at_their_energy(lines):
    scene = Scene.of({"lines": lines, "loss": "ranking"})
    field = ask(scene, n=201)
    at = 0
    assert len(field["contours"]) >= 3
    for level, counts in field["contours"]:
        places = over_view(scene, field["contours_at"][at : at + sum(counts)])
        at += sum(counts)
        if len(places):
            assert (scene.module().raw(*with_probe(scene, places)) - level).abs().max() < 0.01
        assert lines == "raw" or level > 0
    assert at == len(field["contours_at"])


def test_streamlines_follow_the_force():
    scene = Scene.of({"flow": "streams", "loss": "ranking", "hyper": {"m": 2.5}, "negative": [0.2, 0.3]})
    field = ask(scene, n=101)
    middle = field["streams"].shape[1] // 2
    assert field["streams"].shape[0] > 100
    start, end = (over_view(scene, field["streams"][:, middle + i].astype(float)) for i in (0, 1))
    force = forces(scene.module(), *with_probe(scene, start))[2]
    step = end - start
    far = (start.norm(dim=-1) > 0.3) & (step.norm(dim=-1) > 1e-3)
    cosine = torch.nn.functional.cosine_similarity(step[far], force[far], dim=-1)
    assert far.sum() > 100
    assert cosine.min() > 0.99


@in_one_case(name=losses.names(), probe=POINTS)
def test_the_triplet_and_a_hovered_place_read_as_the_library_says(name, probe):
    scene = Scene.of({"loss": name, "probe": probe, "anchor": [0.1, 0.2], "negative": [0.45, 0.7]})
    loss, points = scene.module(), as_tensors(scene)
    field = ask(scene, n=41)
    split = field_table(loss, *points)
    assert field["raw"] == pytest.approx(loss.raw(*points).item(), abs=1e-12)
    assert field["energy"] == pytest.approx(loss.clamped(*points).item(), abs=1e-12)
    assert field["hit"] == (0 < field["raw"] < loss.m2)
    np.testing.assert_allclose(field["forces"], torch.stack(forces(loss, *points)), atol=1e-12)
    np.testing.assert_allclose(field["residuals"], torch.stack(split.residuals), atol=1e-12)
    assert field["strengths"] == pytest.approx(
        dict(zip(("ap", "an", "pn"), map(float, split.strengths), strict=True)), abs=1e-12
    )
    hover = unpack(plane_service.answer({"scene": scene.to_json(), "hover": [-0.3, 0.4]}))["hover"]
    there = with_probe(scene, torch.tensor([-0.3, 0.4], dtype=torch.float64))
    assert hover["energy"] == pytest.approx(loss.clamped(*there).item(), abs=1e-12)
    np.testing.assert_allclose(hover["force"], forces(loss, *there)[POINTS.index(probe)], atol=1e-12)
    assert hover["edges"]["an"] == pytest.approx((there[0] - there[2]).norm().item())


def test_laws_are_the_powers_and_the_cut_is_the_energy_along_it():
    scene = Scene.of({"hyper": {"s": 0.5, "r": 3, "rho": 2}, "cut": True, "line": [-1, 0.4, 1.5, 0.1]})
    field = ask(scene, n=41)
    d = np.linspace(field["reach"] / 96, field["reach"], 96)
    np.testing.assert_allclose(field["laws"], [d**0.5, 2 / d**3, 2 / d**3], rtol=1e-5)
    start, way = torch.tensor([[-1.0, 0.4], [2.5, -0.3]], dtype=torch.float64)
    points = with_probe(scene, start + torch.linspace(0, 1, 160, dtype=torch.float64)[:, None] * way)
    np.testing.assert_allclose(field["cut"][0], scene.module().raw(*points), rtol=1e-5)
    np.testing.assert_allclose(field["cut"][1], scene.module().clamped(*points), rtol=1e-5)


def test_a_hand_at_rest_gets_link_area_and_margins():
    scene = Scene.of({"positive": [0.5, 0], "hyper": {"s": 1, "r": 2, "rho": 1, "m1": -2.325, "m2": 5}})
    field = ask(scene, n=41, settle=True, batch={"B": 32, "C": 4})
    assert field["region"]["area"] == pytest.approx(2.4216380344, rel=1e-9)
    assert Scene.from_query(field["query"]) == scene
    ellipse, enclosing, balanced = field["margins"]
    assert ellipse["set"] == {"m1": pytest.approx(margin_for_ellipse(0.5, 0.1, 1, 1)), "r": 0}
    assert enclosing["set"] == {"m1": pytest.approx(margin_enclosing(0.5, 0.1, 1, 2, 1))}
    assert balanced["set"] == {"rho": pytest.approx(12 / 7)}
    assert all(r"=" in line for row in field["margins"] for line in row["latex"])
    odd = ask(scene, n=41, settle=True, batch={"B": 33, "C": 4})["margins"][2]
    assert "33" in odd["error"]
    assert "region" not in ask(scene, n=41)


def test_the_normalised_margin_holds_while_exponents_move():
    scene = Scene.of({"margin": "normalised", "mu": 0.3, "hyper": {"r": 1.05, "s": 0.5, "rho": 1.5}})
    field = ask(scene, n=41)
    assert field["mu"] == 0.3
    assert normalised_margin(field["m1"], 0.5, 1.05, 1.5) == pytest.approx(0.3)
    assert Scene.from_query(scene.to_query()) == scene
    near, at = (ask(Scene.of({"margin": "normalised", "mu": 0.3, "hyper": {"r": r}})) for r in (1 + 1e-6, 1.0))
    assert near["raw"] == pytest.approx(at["raw"], abs=1e-5)


def test_discs_and_mining_circles():
    scene = Scene.of({"loss": "ranking", "hyper": {"m": 0.4}, "positive": [1, 0], "discs": True, "mining": True})
    field = ask(scene, n=41)
    assert field["discs"]["radius"] == pytest.approx(1.1)
    assert field["discs"]["axes"] == pytest.approx([1.6444445, 1.5666], abs=1e-4)  # Fig. B.1 C
    assert (field["mining"]["centre"], field["mining"]["radius"]) == ("anchor", pytest.approx(1.0))
    assert [text for text, _ in field["mining"]["labels"]] == ["hard", "semi-hard", "easy"]
    for text, place in field["mining"]["labels"]:
        d = np.linalg.norm(place)
        assert text == ("hard" if d < 1 else "semi-hard" if d < 1.4 else "easy")


def test_a_locked_scale_stays_until_the_hand_rests_and_it_misleads():
    fitting = ask(Scene())["scale"]
    assert ask(Scene(), scale=9 * fitting)["scale"] == 9 * fitting
    assert ask(Scene(), scale=1.1 * fitting, settle=True)["scale"] == pytest.approx(1.1 * fitting)
    assert ask(Scene(), scale=9 * fitting, settle=True)["scale"] == fitting


def test_an_answer_is_small():
    assert len(plane_service.answer({"scene": Scene().to_json(), "n": 101})) < 16_500
    assert len(plane_service.answer({"scene": Scene().to_json() | EVERYTHING, "n": 41})) < 40_000


@in_one_case(n=[None, 1, 10**9, -5, "many", float("nan"), True])
def test_grid_sizes_are_bounded(n):
    assert 2 * ARROWS <= decode(plane_service.answer({"n": n}))["n"] <= plane_service.FINEST


EXTREMES = [-1e9, 0.0, 1e9, None]


@in_one_case(value=EXTREMES, name=losses.names())
def test_extreme_hyper_parameters_get_a_field(name, value):
    hyper = dict.fromkeys(losses.formula(name).parameters, value)
    # Two shades in turn, so that each loss and each extreme occurs with all shades.
    shades = [*Scene.kinds["shade"].options]
    turn = losses.names().index(name) + EXTREMES.index(value)
    for shade in (shades[turn % len(shades)], shades[(turn + 1) % len(shades)]):
        scene = EVERYTHING | {"loss": name, "hyper": hyper, "positive": [0, 0], "negative": [0, 100], "shade": shade}
        assert ask(scene, n=40, settle=True)["scale"] > 0
    assert ask(scene | {"margin": "normalised", "mu": value, "lines": "clamped"}, n=40)["scale"] > 0


def test_component_files_have_an_address_that_changes_with_them(client):
    base = f"/api/assets/{static_files.version()}"
    for name, (content, _) in static_files.files().items():
        response = client.get(f"{base}/{name}")
        assert response.content == content
        assert "immutable" in response.headers["cache-control"]
    assert {"kit/plane/plane.js", "kit/schema.json"} <= set(static_files.files())
    for bad in (f"{base}/../app.py", f"{base}/none.js", "/api/assets/0/kit/dom.js", f"{base}/%2e%2e%2fapp.py"):
        assert client.get(bad).status_code == 404


@in_one_case(probe=POINTS)
def test_an_idle_triplet_is_told_where_its_probe_would_feel_a_force(probe):
    scene = Scene.of({"loss": "ranking", "probe": probe, "negative": [0.35, 0.75]})
    field = ask(scene, n=101, settle=True)
    assert not field["hit"]
    brought = Scene.of(scene.to_json() | {probe: field["bring"]})
    assert ask(brought, n=101, settle=True)["hit"]
    assert ask(brought, n=101, settle=True)["bring"] is None


@in_one_case(name=losses.names(), probe=POINTS)
def test_reset_leads_to_a_field_with_forces_or_a_margin_that_does(name, probe):
    field = ask({"loss": name, "probe": probe}, n=41)
    if field["quiet"]:  # then the page offers this margin (assets/src/kit/plane/way_out.ts)
        margin = losses.formula(name).margin.name
        raised = {margin: field["m1"] - field["raw"] + 0.3}
        assert not ask({"loss": name, "probe": probe, "hyper": raised}, n=41)["quiet"]


def test_with_the_normalised_margin_no_single_slider_leaves_the_field_without_force():
    first = plane_state.FIRST.state(Scene)
    sliders = losses.formula(first.loss).sliders
    ends = [(name, end) for name in ("s", "r", "rho") for end in (sliders[name].low, sliders[name].high)]
    quiet = [at for at in ends if ask(replace(first, hyper={**first.hyper, at[0]: at[1]}).settled(), n=41)["quiet"]]
    assert not quiet


def test_flat_and_positive_fields_are_told_from_the_others():
    assert {name for name in losses.names() if ask({"loss": name}, n=41)["positive"]} == {
        "hoffer",
        "npairs",
        "potential",
    }
    assert ask({"loss": "npairs"}, n=41)["flat"]
    assert not ask({"loss": "npairs", "anchor": [-0.5, 0.25]}, n=41)["flat"]
    assert not ask({}, n=41)["flat"]


def test_python_has_the_last_word_on_hyper_parameters():
    hyper = ask({"hyper": {"s": -99, "r": 99, "m2": None}}, n=41, settle=True)["hyper"]
    assert hyper == {"s": -3.0, "r": 4.0, "rho": 1.0, "m1": -2.325, "m2": None}
