"""Checks of the errata of Karaman 2021 about counts, scores, sampling and the tables of the thesis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from torch import Tensor

from dmlcore import losses, metrics
from dmlcore.published import karaman
from dmlcore.published.checks.number import Check, Decision, Number, Outcome

CLASSIC = "CUB-200-2011"


# ---- counts, scores, sampling


def _densities() -> Iterable[Number]:
    def true(d: float) -> float:
        return d**4 * math.sqrt(1 - d**2 / 4) ** 3  # 1 / weight at D = 6

    def as_printed(d: float) -> float:
        return d**4 * (1 - d**2 / 4)

    for name, density, stated in (("true", true, "0.0543"), ("printed", as_printed, "0.0914")):
        share = quad(density, 1.8, 1.9)[0] / quad(density, 0, 2)[0]
        yield Number(f"share of d in (1.8, 1.9) at D = 6, {name} density", stated, share)
    yield Number("second factor at D = 128, d = 1, true", "6.44e7", 0.75 ** ((3 - 128) / 2))
    yield Number("second factor at D = 128, d = 1, printed", "1.333", 0.75**-1)


def _precision() -> Iterable[Number]:
    orders: tuple[tuple[tuple[int, ...], str, str], ...]
    orders = (((0, 1, 1), "0.3889", "0.6667"), ((1, 1, 0), "0.6667", "0"))
    for relevant, true, as_printed in orders:
        text = ",".join(map(str, relevant))
        yield Number(f"{text}: true", true, average_precision(relevant))
        yield Number(f"{text}: printed", as_printed, printed_precision(relevant))
    for four in ((1, 1, 0, 1), (0, 1, 1, 1)):
        yield Number(f"{','.join(map(str, four))}: printed", "0.75", printed_precision(four))


def average_precision(relevant: tuple[int, ...]) -> float:
    """Return AP@R from the relevances of the first R items: the sum of P@i rel_i over i = 1..R, divided by R."""
    rel = np.asarray(relevant, dtype=float)
    rank = np.arange(1, len(rel) + 1)
    return float((rel.cumsum() / rank * rel).sum() / len(rel))


def printed_precision(relevant: tuple[int, ...]) -> float:
    """Return AP@R according to Karaman 2021, Eq. 2.35, as printed: only the last term, P@R rel_R."""
    return sum(relevant) / len(relevant) * relevant[-1]


def _triplets_of_a_batch() -> Iterable[Number]:
    for classes, stated in ((4, "5376"), (2, "7680")):
        yield Number(
            f"valid triplets of 32 samples, {classes} classes", stated, len(list(_valid([32 // classes] * classes)))
        )
    every = max(32 * (size - 1) * (32 - size) for size in (2, 4, 8, 16))
    yield Number("maximum for equal classes", "7680", every)
    yield Number("all ordered triplets", "29760", 32 * 31 * 30)


def _valid(sizes: list[int]) -> Iterable[tuple[int, int, int]]:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    same = labels[:, None] == labels[None, :]
    for a, p in zip(*np.nonzero(same & ~np.eye(len(labels), dtype=bool)), strict=True):
        for n in np.flatnonzero(~same[a]):
            yield int(a), int(p), int(n)


def _triplets_of_cub() -> Iterable[Number]:
    images, classes = 11788, 200
    size = images / classes
    yield Number("valid triplets", "8.0e9", images * (size - 1) * (images - size))


def _unit_vectors() -> Iterable[Number]:
    e = np.eye(2)
    yield Number("opposite unit vectors", "2", float(np.linalg.norm(e[0] + e[0])))
    yield Number("orthogonal unit vectors", "1.414", float(np.linalg.norm(e[0] - e[1])))


def _class_size() -> Iterable[Number]:
    yield Number("images per class", "5.30", 120_000 / 22_634)


# ---- the thesis' own tables


def _find(name: str, table: str, **hyper: float) -> karaman.LossRow:
    (row,) = (
        r
        for r in karaman.rows()
        if r.loss == name and r.table == table and all(r.hyper.get(k) == v for k, v in hyper.items())
    )
    return row


def _leads(one: karaman.LossRow, other: karaman.LossRow) -> list[str]:
    return [c for c in karaman.COLUMNS if one.scores[c] > other.scores[c]]


def _toy() -> Iterable[Number]:
    ranking = _find("ranking", "4.1", m=0.1)
    ours = [r for r in karaman.rows() if r.table == "4.1" and r.loss == "distance_sensitive"]
    best = {c: max(r.scores[c] for r in ours) for c in karaman.COLUMNS}
    yield Number("MAP@R of ranking, m = 0.1", "40.75", ranking.scores["MAP@R"])
    yield Number("best MAP@R of (1, 2)", "38.90", best["MAP@R"])
    yield Number("columns that ranking leads", "5", sum(ranking.scores[c] > best[c] for c in karaman.COLUMNS))


def _input_space() -> Iterable[Outcome]:
    """Predict the MAP@R of raw inputs at the printed P@R with five simulated data sets of 12 classes of 200 points."""
    scores = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        means = generator.uniform(size=(12, 3)).repeat(200, axis=0)
        points, labels = means + generator.normal(0, math.sqrt(0.02), means.shape), np.arange(12).repeat(200)
        scored = metrics.retrieval(points, labels)
        scores.append((100 * (scored.r_precision or 0), 100 * (scored.map_at_r or 0)))
    x, y = np.array(scores).T
    row = _find("input_space", "4.1")
    simulated = float(np.polynomial.Polynomial.fit(x, y, 1)(row.scores["P@R"]))
    by = "five simulated sets"
    yield Decision("MAP@R of the inputs, within 0.8", row.scores["MAP@R"], 39.4, simulated, by, tolerance=0.02)


def _equal_gradients() -> Iterable[Number]:
    ranking, facenet = (_summed(name) for name in ("ranking", "facenet"))
    for what, one, other, ratio in (
        ("ranking and modified entangle, ρ = 1/2", ranking, _summed("modified_entangle", rho=0.5), "1.0000"),
        ("facenet and (1, -1, 1/2)", facenet, _summed("distance_sensitive", s=1, r=-1, rho=0.5), "2.0000"),
    ):
        yield Number(f"cosine of {what}", "1.0000", _cosine(one, other))
        yield Number(f"size ratio of {what}", ratio, float(one.norm() / other.norm()))
    for stretched, where, stated in ((1.0, "on the points", "0.716"), (3.0, "stretched threefold", "0.689")):
        one, other = _summed("ranking", stretched), _summed("distance_sensitive", stretched, s=1, r=-1, rho=1)
        yield Number(f"cosine of the printed pair, ranking and (1, -1, 1), {where}", stated, _cosine(one, other))


# Twelve points in the plane, in classes of 5, 4 and 3: the batch that is also used in the tests.
TWELVE = (
    ((0.12, 0.31), (-0.25, 0.44), (0.38, 0.07), (0.05, -0.29), (0.61, 0.52)),
    ((1.02, -0.18), (0.83, 0.36), (1.27, 0.11), (0.92, -0.55)),
    ((-0.47, -0.36), (-0.71, 0.15), (0.19, -0.83)),
)


def _summed(name: str, stretched: float = 1.0, **hyper: float) -> Tensor:
    """Return the gradient of the mean unclamped loss over all valid triplets of the points TWELVE, shape (24,).

    `stretched` multiplies the x coordinates of the points.
    """
    placed = [(stretched * x, y) for group in TWELVE for x, y in group]
    embeddings = torch.tensor(placed, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([label for label, group in enumerate(TWELVE) for _ in group])
    loss = losses.create(name, reduction="mean_raw", **hyper)(embeddings, labels)
    return torch.autograd.grad(loss, embeddings)[0].flatten()


def _cosine(x: Tensor, y: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(x, y, dim=0))


def _without_mining() -> Iterable[Number]:
    ratio, ours = _find("ratio", "4.13"), _find("distance_sensitive", "4.13")
    for column, high, low in (("R@1", "39.21", "38.34"), ("MAP@R", "10.52", "9.24")):
        yield Number(f"{column} of ratio", high, ratio.scores[column])
        yield Number(f"{column} of (1, 2)", low, ours.scores[column])
    yield Number("columns that ratio leads", "8", len(_leads(ratio, ours)))


def _mining() -> Iterable[Number]:
    yield Number("ranking R@1 without mining (Table 4.13)", "34.69", _find("ranking", "4.13").scores["R@1"])
    yield Number("ranking R@1 with mining (Table 4.14)", "52.80", _find("ranking", "4.14").scores["R@1"])


def _selection() -> Iterable[Number]:
    ours, moving = karaman.of_loss("distance_sensitive", CLASSIC), karaman.of_loss("moving", CLASSIC)
    quoted = _find("distance_sensitive", "4.14")
    yield Number("m1 of the quoted row", "-2.375", quoted.hyper["m1"])
    yield Number("m2 of the quoted row", "10", quoted.hyper["m2"])
    yield Number("best R@1 of Distance", "51.86", karaman.best(ours, "R@1").scores["R@1"])
    top = karaman.best(ours, "MAP@R")
    yield Number("best MAP@R of Distance", "16.75", top.scores["MAP@R"])
    yield Number("m1 of that row", "-2.325", top.hyper["m1"])
    yield Number("m2 of that row", "5", top.hyper["m2"])
    yield Number("best MAP@R of Moving", "16.32", karaman.best(moving, "MAP@R").scores["MAP@R"])
    yield Number("MAP@R of the quoted Moving row", "16.32", _find("moving", "4.14").scores["MAP@R"])


def _lead() -> Iterable[Number]:
    ranking, ours = _find("ranking", "4.14"), _find("distance_sensitive", "4.14")
    yield Number("lead of ranking over Distance, R@1", "0.94", ranking.scores["R@1"] - ours.scores["R@1"])


def _optimum() -> Iterable[Outcome]:
    """Compare the zeros of both derivatives of the score θ³ - 3θ with its maximum over -2 <= θ <= 1.5."""
    score = np.polynomial.Polynomial([0, -3, 0, 1])
    second = float(score.deriv(2).roots()[0])
    first = min(score.deriv().roots(), key=lambda root: float(score.deriv(2)(root)))
    highest = minimize_scalar(lambda at: -score(at), bounds=(-2, 1.5), method="bounded", options={"xatol": 1e-10}).x
    yield Decision("local maximum of θ³ - 3θ", second, float(first), float(highest), "bounded search", tolerance=1e-6)


CHECKS: Mapping[int, Check] = {
    11: _densities,
    12: _precision,
    18: _triplets_of_a_batch,
    19: _triplets_of_cub,
    31: _unit_vectors,
    37: _toy,
    38: _input_space,
    39: _equal_gradients,
    40: _without_mining,
    41: _mining,
    42: _selection,
    43: _lead,
    45: _class_size,
    111: _optimum,
}
