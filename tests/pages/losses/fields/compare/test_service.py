"""One answer for all planes: each shows values of dmlcore on a shared scale, and the others are the differences."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.geometry.sphere import tangent
from dmlcore.loss_analysis.equivalence import same_loss
from pages.losses.fields.compare import export as compare_export
from pages.losses.fields.compare import sameness
from pages.losses.fields.compare import service as compare_service
from pages.losses.fields.compare.presets import PAIRS
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.state import POINTS
from pages.shared.server.websocket import MOST_BYTES
from pages.shared.server.wire import unpack
from tests.members import in_one_case

FOUR = [{"loss": k} for k in ("ranking", "distance_sensitive", "angular", "moving")]
NODES = ((0, 0), (20, 20), (25, 8), (40, 3), (18, 30))
N = 60


def get_answer(comparison: ComparisonView, **request) -> dict:
    answer = unpack(compare_service.answer({"comparison": comparison.to_json(), "n": N, **request}))
    return answer | answer["arrays"]


def points_of(comparison: ComparisonView) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(getattr(comparison, name), dtype=torch.float64) for name in POINTS}


def moved(comparison: ComparisonView, row: int, col: int, n: int = N) -> dict[str, torch.Tensor]:
    """Return the points with the probe at a node of the grid."""
    x, y, half = comparison.view
    place = [x - half + (col + 0.5) * 2 * half / n, y - half + (row + 0.5) * 2 * half / n]
    return points_of(comparison) | {comparison.probe: torch.tensor(place, dtype=torch.float64)}


def value_at(loss, points, comparison: ComparisonView) -> tuple[float, torch.Tensor]:
    """Return the compared energy and the force on the probe, computed directly from the loss."""
    if comparison.clamp:
        energy = loss.clamped(*points.values())
        force = dict(zip(POINTS, forces(loss, *points.values()), strict=True))[comparison.probe]
        return energy.item(), force
    leaves = {k: v.clone().requires_grad_() for k, v in points.items()}
    energy = loss.raw(*leaves.values())
    (gradient,) = torch.autograd.grad(energy, leaves[comparison.probe], allow_unused=True, materialize_grads=True)
    return energy.item(), -gradient


@in_one_case(clamp=[True, False], shade=["energy", "force"], probe=POINTS)
def test_every_plane_is_its_own_loss_under_one_scale(probe, shade, clamp):
    comparison = ComparisonView.of({"panels": FOUR, "probe": probe, "shade": shade, "clamp": clamp})
    answer = get_answer(comparison, id=7)
    assert (answer["id"], answer["n"], len(answer["panels"])) == (7, N, 4)
    assert answer["signed"] == (shade == "energy" and not clamp)
    for k, panel in enumerate(comparison.panels):
        loss = panel.module()
        active = np.unpackbits(answer[f"active{k}"], count=N * N).reshape(N, N)
        for row, col in NODES:
            points = moved(comparison, row, col)
            energy, force = value_at(loss, points, comparison)
            share = (energy if shade == "energy" else force.norm().item()) / answer["scale"]
            expected = 128 + 127 * min(max(share, -1), 1) if answer["signed"] else 255 * min(max(share, 0), 1)
            assert answer[f"shade{k}"][row, col] == pytest.approx(expected, abs=0.51)
            assert active[row, col] == (not clamp or 0 < loss.raw(*points.values()) < loss.m2)


def test_arrows_of_all_planes_have_one_reference():
    comparison = ComparisonView.of({"panels": FOUR})
    answer = get_answer(comparison)
    for k, panel in enumerate(comparison.panels):
        for row, col in ((3, 4), (9, 9), (12, 8)):
            force = value_at(panel.module(), moved(comparison, 3 * row + 1, 3 * col + 1), comparison)[1].numpy()
            expected = 127 * force / (np.linalg.norm(force) + answer["reference"])
            assert np.abs(answer[f"arrows{k}"][row, col] - expected).max() <= 0.51


@in_one_case(fit=[True, False], pair=[[0, 1], [2, 0], [1, 3]])
def test_the_difference_is_the_first_minus_factor_times_the_second(pair, fit):
    comparison = ComparisonView.of({"panels": FOUR, "pair": pair, "fit": fit})
    answer = get_answer(comparison)
    first, second = (comparison.panels[k].module() for k in pair)
    factor = same_loss(first, second).factor if fit else 1.0
    assert answer["panels"][pair[1]]["factor"] == pytest.approx(factor if factor > 0 else 1.0)
    seen = 0
    for row, col in np.ndindex(6, 6):
        points = moved(comparison, 10 * row + 4, 10 * col + 4)
        left = first.clamped(*points.values()) - answer["panels"][pair[1]]["factor"] * second.clamped(*points.values())
        share = min(max(left.item() / answer["span"], -1), 1)
        assert answer["difference"][10 * row + 4, 10 * col + 4] == pytest.approx(128 + 127 * share, abs=0.51)
        seen += abs(share) > 0.01
    assert seen > 3


def test_the_difference_of_forces_is_that_of_vectors():
    comparison = ComparisonView.of({"panels": FOUR, "shade": "force"})
    answer = get_answer(comparison)
    for row, col in NODES:
        points = moved(comparison, row, col)
        one, other = (value_at(comparison.panels[k].module(), points, comparison)[1] for k in (0, 1))
        share = min((one - other).norm().item() / answer["span"], 1)
        assert answer["difference"][row, col] == pytest.approx(128 + 127 * share, abs=0.51)


def test_the_same_loss_leaves_nothing_on_a_scale_that_hides_rounding():
    answer = get_answer(ComparisonView.of({"panels": [FOUR[1], FOUR[1]]}))
    assert (answer["difference"] == 128).all()
    assert answer["largest"] == 0
    assert answer["span"] >= answer["scale"] / 1001


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.title)
def test_each_preset_is_what_it_claims(pair):
    comparison = pair.comparison()
    answer = get_answer(comparison)
    assert answer["same"]["same"] == (pair.kind == "same")
    assert answer["same"]["sentence"]
    if pair.kind == "same":
        assert answer["same"]["largest"] < 1e-12
        if comparison.space == "plane":
            assert answer["largest"] < 1e-9 * answer["scale"]
    else:
        assert answer["same"]["largest"] > 0.1
        assert answer["largest"] > 0.05 * answer["scale"]


def test_on_the_sphere_only_the_part_along_it_is_shown():
    comparison = next(p for p in PAIRS if p.title.startswith("Location-aware =")).comparison()
    answer = get_answer(comparison)
    points = points_of(comparison)
    force = value_at(comparison.panels[1].module(), points, comparison)[1]
    expected = tangent(force, points["negative"] / points["negative"].norm())
    assert expected.norm() > 0.1
    for panel in answer["panels"]:
        assert panel["forces"][2] == pytest.approx(expected.tolist(), abs=1e-12)
    shaded = get_answer(ComparisonView.of(comparison.to_json() | {"shade": "force"}))
    assert shaded["largest"] < 1e-12


def test_numbers_at_the_pointer_are_those_of_the_loss_there():
    comparison = ComparisonView.of({"panels": FOUR, "probe": "positive", "pair": [1, 2]})
    answer = unpack(compare_service.answer({"comparison": comparison.to_json(), "at": [0.2, -0.3], "fields": False}))
    assert answer["arrays"] == {}
    points = points_of(comparison)
    points["positive"] = torch.tensor([0.2, -0.3], dtype=torch.float64)
    energies = []
    for panel, there in zip(comparison.panels, answer["there"], strict=True):
        energy, force = value_at(panel.module(), points, comparison)
        energies.append(energy)
        assert there["energy"] == pytest.approx(energy)
        assert there["force"] == pytest.approx(force.tolist())
    assert answer["left"]["energy"] == pytest.approx(energies[1] - energies[2])


def test_scales_hold_while_the_hand_moves_and_give_way_when_it_rests_unless_locked():
    comparison = ComparisonView()
    fitting = get_answer(comparison)["scale"]
    assert get_answer(comparison, scale=9 * fitting)["scale"] == 9 * fitting
    assert get_answer(comparison, scale=9 * fitting, settle=True)["scale"] == fitting
    assert get_answer(comparison, scale=9 * fitting, settle=True, lock=True)["scale"] == 9 * fitting
    assert get_answer(comparison, scale=1.1 * fitting, settle=True)["scale"] == pytest.approx(1.1 * fitting)


@pytest.fixture
def client():
    with TestClient(Starlette(routes=compare_export.ROUTES)) as client:
        yield client


# Combine each extreme with both shades, clamped for one and unclamped for the other, and vice versa for each shade.
@in_one_case(case=[(-1e9, True), (0.0, False), (1e9, True), (None, False)], shade=["energy", "force"])
def test_extreme_parameters_and_coincident_points_get_fields(case, shade):
    value, clamp = case[0], case[1] == (shade == "energy")
    for start in range(0, len(losses.names()), 4):
        names = losses.names()[start : start + 4]
        panels = [{"loss": k, "hyper": dict.fromkeys(losses.formula(k).parameters, value)} for k in names]
        comparison = ComparisonView.of(
            {"panels": panels, "anchor": [0, 0], "positive": [0, 0], "negative": [0, 100], "shade": shade}
            | {"clamp": clamp, "fit": True, "orders": True, "space": "sphere"}
        )
        answer = get_answer(comparison, n=40, at=[0, 0], settle=True)
        assert min(answer["scale"], answer["span"], answer["reference"]) > 0


def test_a_request_with_four_full_panels_fits_the_socket():
    hyper = dict.fromkeys(("s", "r", "rho", "m1", "m2"), 1 / 3)
    comparison = ComparisonView.of({"panels": [{"loss": "distance_sensitive", "hyper": hyper}] * 4})
    assert len(json.dumps({"comparison": comparison.to_json(), "settle": True})) < MOST_BYTES / 2


def test_the_arrays_are_those_of_the_library(client):
    response = client.get("/api/compare.npz?l3=angular&pair=1,3&probe=anchor")
    file = np.load(io.BytesIO(response.content))
    comparison = ComparisonView.of(json.loads(str(file["comparison"])))
    assert comparison == ComparisonView.from_query({"l3": "angular", "pair": "1,3", "probe": "anchor"})
    _, p, n = points_of(comparison).values()
    for k, panel in enumerate(comparison.panels, start=1):
        place = torch.tensor([file["x"][30], file["y"][77]])
        loss = panel.module()
        assert file[f"energy{k}"][77, 30] == pytest.approx(loss.clamped(place, p, n).item())
        assert file[f"force{k}"][77, 30] == pytest.approx(forces(loss, place, p, n)[0].numpy())
    assert (file["energy_difference"] == file["energy1"] - file["energy3"]).all()


def test_a_senseless_link_gives_the_arrays_of_the_default_and_a_senseless_format_nothing(client):
    assert client.get("/api/compare.npz?l1=nan&view=x,y,z&shade=force&space=sphere").status_code == 200
    assert client.get("/api/compare.exe").status_code == 404


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[4], PAIRS[6], PAIRS[7]], ids=lambda p: p.title)
def test_the_script_runs_and_says_what_the_page_says(pair):
    comparison = pair.comparison()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scope: dict = {}
        exec(sameness.snippet(comparison), scope)
    assert scope["sameness"].factor == sameness.judge(comparison)["factor"]
    assert len(scope["fields"]) == 2
    if pair.kind == "same" and comparison.space == "plane":
        assert scope["difference"].abs().max() < 1e-12
    for force, shown in zip(
        forces(scope["variants"][1], *scope["points"]),
        forces(compare_service.read_as(comparison)[1], *scope["points"]),
        strict=True,
    ):
        assert torch.equal(force, shown)
