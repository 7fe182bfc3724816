"""The numbers of the errata, recomputed: each stated number beside the value computed here and now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry import forces, margin_enclosing, margin_for_ellipse
from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges, margin_from_normalised
from dmlcore.loss_analysis.active_region import active_region
from dmlcore.published import errata, karaman, printed_formulas
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, compare, points

BALANCED = 12 / 7
CLASSIC = "CUB-200-2011"


@dataclass(frozen=True)
class Number:
    """A number of an erratum: what it is, as stated (decimal text, to its digits), and the value computed."""

    what: str
    stated: str
    value: float

    @property
    def agrees(self) -> bool:
        """Whether the value rounds to what is stated, half a unit of its last digit either way."""
        mantissa, _, power = self.stated.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(power or 0) - digits)
        return abs(self.value - float(self.stated)) <= unit * (0.5 + 1e-6)


Check = Callable[[], Iterable[Number]]


@cache
def numbers(erratum: int) -> tuple[Number, ...]:
    """The numbers of an erratum, recomputed once and kept; none for a matter of words."""
    check = _CHECKS.get(erratum)
    return tuple(check()) if check else ()


@dataclass(frozen=True)
class Coordinates:
    """A gradient of a counter-example: which one, and its coordinates."""

    what: str
    numbers: tuple[Number, ...]


@cache
def coordinates(erratum: int) -> tuple[Coordinates, ...]:
    """The gradients that the text of an erratum states, both sides evaluated on its triplet."""
    example = COUNTEREXAMPLES.get(erratum)
    if example is None:
        return ()
    compared = compare(example, *points(example), losses.formula(example.loss).resolve(example.hyper or {}))
    return tuple(
        Coordinates(
            f"gradient on the {shown.point}, {side}",
            tuple(Number("", text, float(x)) for text, x in zip(stated, gradients[at], strict=True)),
        )
        for shown in errata.erratum(erratum).shown
        for at in [printed_formulas.POINTS.index(shown.point)]
        for side, stated, gradients in (
            ("printed", shown.printed, compared.printed),
            ("true", shown.true, compared.true),
        )
    )


def checked() -> frozenset[int]:
    """The errata that have numbers."""
    return frozenset(_CHECKS)


# ---- energies and forces


def _energies() -> Iterable[Number]:
    example = COUNTEREXAMPLES[21]
    comparison = compare(example, *points(example), {})
    assert comparison.printed_energy is not None
    yield Number("energy on S, printed", "4", float(comparison.printed_energy))
    yield Number("energy on S, true", "-4", float(comparison.true_energy))


def _lifted() -> Iterable[Number]:
    # J is the margin plus something: choose the margin that makes it 3
    a, p, n = points(COUNTEREXAMPLES[7])
    m = 3 - float(printed_formulas.lifted_energy(a, p, n, m=0.0))
    yield Number("Eq. 2.17 at J = 3", "3", float(printed_formulas.lifted_energy(a, p, n, m=m)))
    yield Number("Eq. 2.16 at J = 3", "4.5", float(printed_formulas.lifted_pair(a, p, n, m=m)))


def _npairs() -> Iterable[Number]:
    example = COUNTEREXAMPLES[8]
    comparison = compare(example, *points(example), {})
    assert comparison.printed_energy is not None
    yield Number("line 1", "1.3133", float(comparison.printed_energy))
    yield Number("line 2 and truth", "0.3133", float(comparison.true_energy))


def _ranking_radius() -> Iterable[Number]:
    loss = losses.create("ranking", m=0.1)
    yield Number("ranking loss at d_ap = 0.05, d_an = 0.2", "0", float(loss.clamped(*_plane((0.05, 0), (0, 0.2)))))
    yield Number("class radius d_ap", "0.05", 0.05)


def _angular_edge() -> Iterable[Number]:
    yield Number("push along p-n", "4.19", _laws("angular", 1, 2, math.sqrt(5), rho=0.6)[2])


def _squared_alpha() -> Iterable[Number]:
    yield Number("penalty max(0, α - d²)", "0.09", max(0.0, 0.25 - 0.4**2))


def _exponents() -> Iterable[Number]:
    for r, stated in ((-1, "2"), (0, "1"), (2, "0.25")):
        near, far = (_laws("distance_sensitive", 1, d, d, s=1, r=r)[1] for d in (1, 2))
        yield Number(f"g_push(2)/g_push(1) at r = {r}", stated, far / near)


def _above_the_window() -> Iterable[Number]:
    side = brentq(lambda d: d**2 / 2 + 2 / d - 10, 1.26, 10)  # an equilateral triplet whose core is 10
    triplet = _plane((side, 0), (side / 2, side * math.sqrt(3) / 2))
    loss = losses.create("distance_sensitive", s=1, r=2, rho=1, m1=-2, m2=5)
    yield Number("core", "10", float(loss.core(*triplet)))
    yield Number("value", "5", float(loss.clamped(*triplet)))
    yield Number("largest force", "0", max(float(f.norm()) for f in forces(loss, *triplet)))


def _equilateral() -> Iterable[Number]:
    for side, s, r, stated in ((1, 1, 2, "1"), (2, 0, 0, "1"), (2, 1, 2, "0.125")):
        pull, push, _ = _laws("distance_sensitive", side, side, side, s=s, r=r, rho=1)
        yield Number(f"push/pull at side {side}, (s, r) = ({s}, {r}), in units of ρ", stated, push / pull)


def _rotations() -> Iterable[Number]:
    for r, stated in ((-1, "1.917"), (0, "1.714"), (2, "1.371"), (3, "1.227")):
        law = _laws("distance_sensitive", 1, 0.5, math.hypot(1, 0.5), s=0, r=r, rho=BALANCED)
        yield Number(f"push along p-n, r = {r}", stated, law[2])


def _laws(name: str, ap: float, an: float, pn: float, **hyper: float) -> tuple[float, float, float]:
    """pull_ap, push_an, push_pn of the energy before the clamp on edges of these lengths."""
    lengths = [torch.tensor(float(x), dtype=torch.float64) for x in (ap, an, pn, 0, 0, 0)]
    _, by = edge_gradient(losses.create(name, **hyper, m2=math.inf), Edges(*lengths))
    return float(by.ap), -float(by.an), -float(by.pn)


def _plane(p: tuple[float, float], n: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
    a, p_, n_ = (torch.tensor(x, dtype=torch.float64) for x in ((0.0, 0.0), p, n))
    return a, p_, n_


# ---- areas


def _panels() -> Iterable[Number]:
    panels = ((-1, 2.5, 2, "3.665"), (0, 2.5, 2, "2.167"), (2, -3.5, 20, "4.146"), (3, -3.5, 20, "1.660"))
    for r, m1, m2, stated in panels:
        yield Number(f"area of the panel r = {r}", stated, _area(0.5, s=0, r=r, rho=BALANCED, m1=m1, m2=m2))
    for r, stated in zip((-1, 0, 1, 2, 3), ("2.317", "2.445", "2.568", "2.684", "2.790"), strict=True):
        m1 = margin_from_normalised(0.175, s=1, r=r, rho=1)
        yield Number(f"area at μ = 0.175, r = {r}", stated, _area(0.5, s=1, r=r, rho=1, m1=m1, m2=math.inf))


def _hole() -> Iterable[Number]:
    for m1 in (2.5, 4, 8):
        area = _area(0.5, s=0, r=-1, rho=BALANCED, m1=m1, m2=2)
        yield Number(f"area at m1 = {m1:g}", "3.6652", area)
    yield Number("π m2/ρ", "3.6652", math.pi * 2 / BALANCED)


def _area(d_ap: float, **hyper: float) -> float:
    loss = losses.create("distance_sensitive", **hyper)
    return active_region(loss, (0.0, 0.0), (d_ap, 0.0)).area


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
    """AP@R of the first R relevances: the sum of P@i rel_i over i = 1..R, divided by R."""
    rel = np.asarray(relevant, dtype=float)
    rank = np.arange(1, len(rel) + 1)
    return float((rel.cumsum() / rank * rel).sum() / len(rel))


def printed_precision(relevant: tuple[int, ...]) -> float:
    """Eq. 2.35: P@R rel_R, the last term alone."""
    return sum(relevant) / len(relevant) * relevant[-1]


def _triplets_of_a_batch() -> Iterable[Number]:
    for classes, stated in ((4, "5376"), (2, "7680")):
        yield Number(
            f"valid triplets of 32 samples, {classes} classes", stated, len(list(_valid([32 // classes] * classes)))
        )
    every = max(32 * (size - 1) * (32 - size) for size in (2, 4, 8, 16))
    yield Number("most for equal classes", "7680", every)
    yield Number("ordered triplets at all", "29760", 32 * 31 * 30)


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
    yield Number("images of a class", "5.30", 120_000 / 22_634)


# ---- margins


def _enclosure() -> Iterable[Number]:
    for m_ranking, stated in ((0.1, "-2.7008"), (0.01, "-3.0759")):
        yield Number(f"least m1 for m_ranking = {m_ranking}", stated, margin_enclosing(0.5, m_ranking, s=1, r=2, rho=1))


def _stationary() -> Iterable[Number]:
    d, R = 1.0, 1.1

    def a_of(b: float) -> float:
        return b * (1 + d**2 / (4 * (b - R**2)))

    def least(energy: Callable[[float], float]) -> float:
        bounds = (R**2 + 1e-9, 5.0)
        return float(minimize_scalar(energy, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)

    yield Number("b of the least a", "1.76", least(a_of))
    yield Number("R² + Rd/2", "1.76", R**2 + R * d / 2)
    yield Number("b of the least a b", "1.5414", least(lambda b: b * a_of(b)))


def _squared_axes() -> Iterable[Number]:
    true = margin_for_ellipse(1, 0.1, 0, BALANCED)
    # r_major enters as 2 rho r_major - d; the printed quarter under the root halves it
    yield Number("margin, with the quarter", "1.8190", (true + 1) / 2 - 1)
    yield Number("margin, without", "4.6381", true)


def _smallest_ellipse() -> Iterable[Number]:
    free, confocal = margin_for_ellipse(1, 0.1, 0, BALANCED), margin_enclosing(1, 0.1, 0, 0, BALANCED)
    for name, margin, axis, stated in (("thesis", free, "1.6444", "4.6381"), ("smallest", confocal, "1.6", "4.4857")):
        yield Number(f"r_major, {name}", axis, (margin + 1) / (2 * BALANCED))
        yield Number(f"m1, {name}", stated, margin)


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


def _equal_gradients() -> Iterable[Number]:
    ranking, facenet = (_summed(name) for name in ("ranking", "facenet"))
    for what, one, other, ratio in (
        ("ranking and modified entangle, ρ = 1/2", ranking, _summed("modified_entangle", rho=0.5), "1.0000"),
        ("facenet and (1, -1, 1/2)", facenet, _summed("distance_sensitive", s=1, r=-1, rho=0.5), "2.0000"),
    ):
        yield Number(f"cosine of {what}", "1.0000", _cosine(one, other))
        yield Number(f"size ratio of {what}", ratio, float(one.norm() / other.norm()))
    printed_pair = _summed("distance_sensitive", s=1, r=-1, rho=1)
    yield Number("cosine of the printed pair, ranking and (1, -1, 1)", "0.72", _cosine(ranking, printed_pair))


# Twelve points of the plane in classes of 5, 4 and 3: the batch of the test vectors.
TWELVE = (
    ((0.12, 0.31), (-0.25, 0.44), (0.38, 0.07), (0.05, -0.29), (0.61, 0.52)),
    ((1.02, -0.18), (0.83, 0.36), (1.27, 0.11), (0.92, -0.55)),
    ((-0.47, -0.36), (-0.71, 0.15), (0.19, -0.83)),
)


def _summed(name: str, **hyper: float) -> Tensor:
    """Gradient of the mean over all valid triplets, unhinged, on the twelve points: (24,)."""
    embeddings = torch.tensor([x for group in TWELVE for x in group], dtype=torch.float64, requires_grad=True)
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
    yield Number("ranking R@1 with it (Table 4.14)", "52.80", _find("ranking", "4.14").scores["R@1"])


def _selection() -> Iterable[Number]:
    ours, moving = karaman.of_loss("distance_sensitive", CLASSIC), karaman.of_loss("moving", CLASSIC)
    quoted = _find("distance_sensitive", "4.14")
    yield Number("m1 of the quoted row", "-2.375", quoted.hyper["m1"])
    yield Number("m2 of the quoted row", "10", quoted.hyper["m2"])
    yield Number("best R@1 of Distance", "51.86", karaman.best(ours, "R@1").scores["R@1"])
    top = karaman.best(ours, "MAP@R")
    yield Number("best MAP@R of Distance", "16.75", top.scores["MAP@R"])
    yield Number("its m1", "-2.325", top.hyper["m1"])
    yield Number("its m2", "5", top.hyper["m2"])
    yield Number("best MAP@R of Moving", "16.32", karaman.best(moving, "MAP@R").scores["MAP@R"])
    yield Number("MAP@R of the quoted Moving row", "16.32", _find("moving", "4.14").scores["MAP@R"])


def _lead() -> Iterable[Number]:
    ranking, ours = _find("ranking", "4.14"), _find("distance_sensitive", "4.14")
    yield Number("lead of ranking over Distance, R@1", "0.94", ranking.scores["R@1"] - ours.scores["R@1"])


_CHECKS: Mapping[int, Check] = {
    7: _lifted,
    8: _npairs,
    11: _densities,
    12: _precision,
    14: _ranking_radius,
    15: _angular_edge,
    17: _squared_alpha,
    18: _triplets_of_a_batch,
    19: _triplets_of_cub,
    21: _energies,
    24: _exponents,
    26: _above_the_window,
    27: _equilateral,
    28: _panels,
    29: _hole,
    30: _rotations,
    31: _unit_vectors,
    32: _enclosure,
    34: _stationary,
    35: _squared_axes,
    36: _smallest_ellipse,
    37: _toy,
    39: _equal_gradients,
    40: _without_mining,
    41: _mining,
    42: _selection,
    43: _lead,
    45: _class_size,
}
