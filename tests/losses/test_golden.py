"""Every case of golden/triplet_losses.json: 2-D, 128-D, batch and degenerate, to 1e-9 in float64."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges
from tests.members import note_member

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "triplet_losses.json").read_text())
TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}
POINTS = ("a", "p", "n")


def triplet_128d(rule: dict[str, float]) -> dict[str, torch.Tensor]:
    w, cp, cn, ph = (rule[k] for k in ("w", "cp", "cn", "ph"))
    i = torch.arange(1, 129, dtype=torch.float64)
    v, u, z = torch.sin(w * i), torch.cos(0.5 * w * i + ph), torch.sin(1.7 * w * i + 2 * ph)
    return {k: x / x.norm() for k, x in (("a", v), ("p", v + cp * u), ("n", cn * v + z))}


TRIPLETS = {
    t["id"]: {k: torch.tensor(t[k], dtype=torch.float64) for k in POINTS}
    for t in GOLDEN["triplets_2d"] + GOLDEN["degenerate_triplets"]
} | {t["id"]: triplet_128d(t["rule"]) for t in GOLDEN["triplets_128d"]}


def label(case: dict) -> str:
    return "-".join([case["loss"], *(f"{k}={v}" for k, v in case["params"].items()), case.get("triplet", "batch")])


def by_loss(kind: str) -> pytest.MarkDecorator:
    """The cases of a kind, those of one loss in one test."""
    names = dict.fromkeys(case["loss"] for case in GOLDEN[kind])
    return pytest.mark.parametrize(
        "cases", [pytest.param([case for case in GOLDEN[kind] if case["loss"] == name], id=name) for name in names]
    )


@pytest.mark.parametrize("stored", GOLDEN["triplets_128d"], ids=lambda t: t["id"])
def test_the_128d_triplets_are_the_stored_ones(stored):
    points = TRIPLETS[stored["id"]]
    for name, value in stored["check"].items():
        if name.startswith("f_"):
            assert points[name[2]][int(name[4:-1])].item() == pytest.approx(value, rel=1e-11)


@by_loss("triplet_cases")
def test_triplet(cases):
    for case in cases:
        with note_member(label(case)):
            assert_triplet(case)


def assert_triplet(case):
    points = {k: x.clone().requires_grad_() for k, x in TRIPLETS[case["triplet"]].items()}
    loss = losses.create(case["loss"], **case["params"])
    raw = loss.raw(*points.values())
    np.testing.assert_allclose(loss.core(*points.values()).item(), case["core"], **TOLERANCE)
    np.testing.assert_allclose(raw.item(), case["raw"], **TOLERANCE)
    np.testing.assert_allclose(loss.clamped(*points.values()).item(), case["hinged"], **TOLERANCE)
    assert bool(0 < raw < loss.m2) == case["active"]
    gradient = dict(zip(POINTS, torch.autograd.grad(raw, list(points.values()), materialize_grads=True), strict=True))
    for k in POINTS:
        if "grad" in case:
            np.testing.assert_allclose(gradient[k].numpy(), case["grad"][k], **TOLERANCE)
        else:
            np.testing.assert_allclose(gradient[k].norm().item(), case["grad_norm"][k], **TOLERANCE)
            for other, value in case["grad_dot"][k].items():
                dot = gradient[k] @ points[other.removeprefix("f_")].detach()
                np.testing.assert_allclose(dot.item(), value, **TOLERANCE)
    for k, force in zip(POINTS, forces(loss, *points.values()), strict=True):
        expected = -gradient[k] if case["active"] else torch.zeros_like(force)
        torch.testing.assert_close(force, expected, rtol=0, atol=0)


@by_loss("triplet_cases")
def test_forces_along_the_edges(cases):
    for case in cases:
        with note_member(label(case)):
            assert_forces_along_the_edges(case)


def assert_forces_along_the_edges(case):
    points = TRIPLETS[case["triplet"]]
    _, by = edge_gradient(losses.create(case["loss"], **case["params"]), Edges.of(*points.values()))
    found = {"pull_ap": by.ap.item(), "push_an": -by.an.item(), "push_pn": -by.pn.item()}
    for edge, value in case["edges"].items():
        np.testing.assert_allclose(found[edge], value, **TOLERANCE)
    for k, value in case.get("residual", {}).items():
        np.testing.assert_allclose((2 * getattr(by, 2 * k) * points[k]).numpy(), value, **TOLERANCE)


@by_loss("batch_cases")
def test_batch(cases):
    for case in cases:
        with note_member(label(case)):
            assert_batch(case)


def assert_batch(case):
    labels = torch.tensor(GOLDEN["batch"]["labels"])
    for reduction in ("mean_raw", "mean_valid", "mean_nonzero"):
        points = torch.tensor(GOLDEN["batch"]["points"], dtype=torch.float64, requires_grad=True)
        loss = losses.create(case["loss"], reduction=reduction, **case["params"])
        value = loss(points, labels)
        np.testing.assert_allclose(value.item(), case[reduction], **TOLERANCE)
        counts = loss.counts
        assert (counts.valid, counts.nonzero, counts.active) == tuple(
            case[f"n_{k}"] for k in ("triplets", "nonzero", "active")
        )
        if f"grad_{reduction}" in case:
            (gradient,) = torch.autograd.grad(value, points)
            np.testing.assert_allclose(gradient.numpy(), case[f"grad_{reduction}"], **TOLERANCE)


@by_loss("degenerate_cases")
def test_coincident_points(cases):
    for case in cases:
        with note_member(label(case)):
            assert_coincident_points(case)


def assert_coincident_points(case):
    points = [x.clone() for x in TRIPLETS[case["triplet"]].values()]
    loss = losses.create(case["loss"], **case["params"])
    raw = loss.raw(*points).item()
    np.testing.assert_allclose(raw, math.inf if case["raw"] is None else case["raw"], **TOLERANCE)
    np.testing.assert_allclose(loss.clamped(*points).item(), case["hinged"], **TOLERANCE)
    for k, force in zip(POINTS, forces(loss, *points), strict=True):
        np.testing.assert_allclose(-force.numpy(), case["grad_hinged"][k], **TOLERANCE)
