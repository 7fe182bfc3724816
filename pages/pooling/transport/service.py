"""WebSocket service of the Transport page: weights, transport plan, gate and convergence for a painted map.

A request is {"id", "state", "rest"}. If "rest" is true (the user has stopped moving), the response also holds the URL
query string and the number of sweeps needed. n is the number of pixels, m the number of prototypes. Arrays of the
response, float32:

- weights (3, n): pixel weights of the linear programme, the smoothed problem and average pooling
- plan (m, n), left (n,): transported and remaining mass, in units of one pixel's mass
- marginals (m,): share of the transported mass that each prototype receives
- soft_min, gates, distance (n,): values for each pixel
- over (2, E): epsilon, and the weight on informative pixels for this epsilon
- gate_curve (2, G): soft minimum l and gate; mean_curve (2, G): bias and mean gate
- newton, swept (2, .): biases visited by Newton's method and by the sweeps, and their mean gates
- sweep_errors (K,), newton_errors: error after each sweep or Newton step
- corners (., 2): corners of the Voronoi cells, in the coordinates of `plane`

The uint8 array field (R, C) holds the gate value in 0..255 over that plane, first row at the bottom.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from starlette.routing import BaseRoute
from torch import Tensor

from dmlcore.data.synthetic.tokens import FEW
from dmlcore.geometry.cells import voronoi_cells
from dmlcore.pooling.analysis.gate import MOST_SWEEPS, Gate
from dmlcore.pooling.analysis.red_blue import informative
from dmlcore.typing import Array, Floats
from pages.pooling.gap_vs_gsp.state import PoolingStudy
from pages.pooling.transport.state import PIXELS, TransportState
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import identity, pack

TABLE = (0.5, 5.0, 20.0, 100.0)  # values of epsilon in the table of Fig. 5.2
POINTS = 121  # samples per curve
EPSILONS = 41
SWEPT = 40  # maximum number of sweeps drawn on the curve of the mean gate as a function of the bias
FIELD = (48, 55)  # rows and columns of the grid on which the gate function of generalized sum pooling is evaluated
HEIGHT = math.sqrt(3) / 2
TIE = 1e-9  # distances or weights that differ by less count as equal
# Limits in `verdict`: the gate differs noticeably from average pooling if the weight on informative pixels differs by
# more than APART; it leaves out the background if this weight is at least CLEAR.
APART, CLEAR = 0.1, 0.9
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, HEIGHT]])


def solve(state: TransportState) -> Gate:
    """Return the gate for the map, prototypes, mu and epsilon in `state`."""
    return Gate.of(torch.from_numpy(state.features()), torch.from_numpy(state.centres()), state.mu, state.epsilon)


def plane(features: Floats) -> Floats:
    """Map features (..., 3) to a triangle, scaled by 1/sqrt(2): red (0, 0), blue (1, 0), green (1/2, sqrt(3)/2)."""
    return np.stack([features[..., 2] + features[..., 1] / 2, HEIGHT * features[..., 1]], -1)


def answer(request: dict[str, Any]) -> bytes:
    """Return the response to a request: weights, plan, gate and convergence for request["state"]."""
    header, arrays = _about(TransportState.of(request.get("state")), request.get("rest") is True)
    return pack({"id": identity(request)} | header, arrays)


@lru_cache(maxsize=16)
def _about(state: TransportState, rest: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and arrays of a response.

    The result is cached, because every first visit requests the default state.
    """
    gate = solve(state)
    weights, solution = gate.weights, torch.from_numpy(informative(state.features()))
    k, r = gate.contraction()
    swept = gate.sweep_biases(state.sweeps)
    errors = gate.sweep_errors(swept)
    low, high = TransportState.limits()["epsilon"]
    epsilons = torch.logspace(math.log10(low), math.log10(high), EPSILONS, dtype=torch.float64)
    over = gate.weights_over(torch.cat([epsilons, torch.tensor(TABLE, dtype=torch.float64)]))[:, solution].sum(-1)
    cells = voronoi_cells(plane(state.centres()), TRIANGLE)
    header: dict[str, Any] = {
        "state": state.to_json(),
        "informative": int(solution.sum()),
        "shares": weights[:, solution].sum(-1).tolist(),
        "most": 1 / (PIXELS * state.mu),
        "pooled": plane((weights @ gate.features).numpy()).tolist(),
        "mixtures": (weights @ gate.features).tolist(),
        "bias": gate.bias,
        "k": k,
        "r": r,
        "needed": gate.sweeps_needed() if rest else None,
        "most_sweeps": MOST_SWEEPS,
        "newton_steps": max(len(gate.newton_biases) - 1, 0),
        "error": float(errors[-1]),
        # sum of the weights after the sweeps; it is 1 if they have converged
        "swept_sum": float(gate.mean_gate(swept[-2:-1])) / state.mu,
        "threshold": gate.threshold / math.sqrt(2),
        "table": [[e, float(s)] for e, s in zip(TABLE, over[EPSILONS:], strict=True)],
        "cells": [len(cell) for cell in cells],
        "notes": notes(state, gate, weights, swept, r),
        "verdict": verdict(weights, solution),
        "next": onward(state),
    }
    if rest:
        header["query"] = state.link()
    bias = _bias_axis(gate)
    arrays = {
        "weights": weights,
        "plan": PIXELS * gate.pi,
        "left": PIXELS * gate.rho,
        "marginals": gate.marginals,
        "soft_min": gate.soft_min,
        "gates": 1 - PIXELS * gate.rho,
        "distance": gate.cost.amin(-2),
        "over": torch.stack([epsilons, over[:EPSILONS]]),
        "gate_curve": _gate_curve(gate),
        "mean_curve": torch.stack([bias, gate.mean_gate(bias)]),
        "newton": _with_mean(gate, gate.newton_biases),
        "swept": _with_mean(gate, swept[: SWEPT + 1]),
        "sweep_errors": errors,
        "newton_errors": gate.newton_errors(),
    }
    packed: dict[str, Array] = {name: x.numpy().astype(np.float32) for name, x in arrays.items()}
    packed["corners"] = np.concatenate(cells).astype(np.float32)
    packed["field"] = np.rint(255 * _field(gate)).astype(np.uint8)
    return header, packed


def notes(state: TransportState, gate: Gate, weights: Tensor, swept: Tensor, r: float) -> list[str]:
    """Return one sentence for each special case that the state is in, such as mu = 1 or tied pixels."""
    sentences = []
    nearest = gate.cost.amin(-2)
    apart = float((weights[1] - weights[2]).abs().max()) * PIXELS
    if state.mu == 1:
        left = float(torch.sigmoid(-swept[-2] - gate.soft_min).max())
        sentences.append(
            "μ = 1: everything is transported, so ρ = 0 and the weights equal those of average pooling. The sweeps "
            f"converge only as 1/K: after {state.sweeps} sweeps the largest nρ is still {left:.2g}."
        )
    elif float(nearest.max() - nearest.min()) < TIE:
        sentences.append("All pixels are equally far from their nearest prototype, so there is nothing to select.")
    elif apart < 0.1:
        sentences.append(f"Close to average pooling: no weight differs from 1/n by more than {100 * apart:.1f} %.")
    elif (near := float((weights[1] - weights[0]).abs().max()) / float(weights[0].max())) < 0.05:
        sentences.append(f"Close to the linear programme: no weight differs from it by more than {100 * near:.2g} %.")
    tied = (nearest - gate.threshold).abs() < TIE
    if float(weights[0][tied].max() - weights[0][tied].min()) > TIE:
        sentences.append(
            f"The linear programme has many solutions: {int(tied.sum())} pixels tie for its last places; the first of "
            "these pixels are taken. The smoothed problem gives equal weights to tied pixels."
        )
    if 0.9 < r < 1:
        cause = "μ is large, and r is at least μ" if state.mu > 0.85 else "The selection is hard: gates are near 0 or 1"
        sentences.append(
            f"{cause}, so one sweep removes only {100 * (1 - r):.2g} % of the error. Newton's method is not affected."
        )
    if len({tuple(c) for c in gate.prototypes.tolist()}) < len(gate.prototypes):
        sentences.append("Coinciding prototypes share their mass equally and act like one nearer prototype.")
    return sentences


def verdict(weights: Tensor, solution: Tensor) -> str:
    """Return a sentence on how much weight the gate puts on the informative pixels.

    Args:
        weights: Weights of the linear programme, the smoothed problem and the average, shape (3, n).
        solution: Boolean mask (n,) of the informative pixels.
    """
    count, total = int(solution.sum()), len(solution)
    if count in (0, total):
        return f"Every pixel is {'informative' if count else 'background'}, so there is nothing to leave out."
    gated, even = (float(weights[k, solution].sum()) for k in (1, 2))
    if gated < even - APART:
        first = "The gate prefers the background"
    elif gated <= even + APART:
        first = "The gate leaves out hardly anything"
    elif gated >= CLEAR:
        first = "The gate leaves the background out"
    else:
        first = "The gate reduces the background"
    return (
        f"{first}: it puts {100 * gated:.1f} % of its weight on the {count} informative pixels; the "
        f"average puts {100 * even:.1f} % there."
    )


def onward(state: TransportState) -> str:
    """Return the URL query string that opens GAP vs GSP with four classes and the current gate parameters."""
    limits = PoolingStudy.limits()
    gate = {name: min(max(getattr(state, name), limits[name][0]), limits[name][1]) for name in ("mu", "epsilon")}
    return f"{PoolingStudy(classes=FEW, **gate).link()}&play=1"


def _gate_curve(gate: Gate) -> Tensor:
    low, high = float(gate.soft_min.min()), float(gate.soft_min.max())
    if gate.bias is not None:
        low, high = min(low, -gate.bias), max(high, -gate.bias)
    low, high = _padded(low, high)
    axis = torch.linspace(low, high, POINTS, dtype=torch.float64)
    opened = torch.ones_like(axis) if gate.bias is None else torch.sigmoid(gate.bias + axis)
    return torch.stack([axis, opened])


def _bias_axis(gate: Gate) -> Tensor:
    """Return biases (G,) for the axis of the mean gate, in a range that contains the optimal bias.

    The range also contains 0, at which the sweeps start, unless 0 is far away.
    """
    low, high = float(-gate.soft_min.max()) - 4, float(-gate.soft_min.min()) + 4
    if gate.bias is not None:
        low, high = min(low, gate.bias), max(high, gate.bias)
    if -2 * (high - low) < low and high < 2 * (high - low):
        low, high = min(low, 0.0), max(high, 0.0)
    return torch.linspace(*_padded(low, high), POINTS, dtype=torch.float64)


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = max(0.06 * (high - low), 0.5)
    return low - pad, high + pad


def _with_mean(gate: Gate, biases: Tensor) -> Tensor:
    return torch.stack([biases, gate.mean_gate(biases)])


def _field(gate: Gate) -> Floats:
    """Return the gate value on a grid (R, C) of points around the triangle of colours.

    Points outside the triangle are mixtures of colours with negative shares.
    """
    x, y = np.meshgrid(np.linspace(0, 1, FIELD[1]), np.linspace(0, HEIGHT, FIELD[0]))
    green = y / HEIGHT
    blue = x - green / 2
    features = torch.from_numpy(np.stack([1 - green - blue, green, blue], -1))
    opened: Floats = gate.open_at(features).numpy()
    return opened


ROUTES: list[BaseRoute] = [socket_route("/api/transport", answer, heavy=lambda r: r.get("rest") is True)]
