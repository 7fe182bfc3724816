"""Errata of Can 2018: distances, losses of a centre, scores and its own tables, both sides evaluated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
import torch.nn.functional as F

from dmlcore.losses.pairs import Contrastive
from dmlcore.losses.tuplets import Tuplet, centre_losses
from dmlcore.metrics.clustering import nmi
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.printed_tables import cell


def _mahalanobis() -> Iterable[Outcome]:
    M, L, apart = 4.0, 2.0, 1.0  # M = LᵀL, in one dimension
    embedded = torch.tensor([[0.0], [L * apart]], dtype=torch.float64)
    squared = float(Contrastive(0.0, 9.0, divisor="one")(embedded, torch.zeros(2, dtype=torch.long)) / 2)
    yield Decision(
        "distance for M = 4, L = 2, points 1 apart",
        math.sqrt(apart / M * apart),
        math.sqrt(apart * M * apart),
        squared,
        "length of L(x - y)",
    )


def _double_sum() -> Iterable[Outcome]:
    count = 10
    shares = torch.softmax(torch.zeros(count, dtype=torch.float64), 0)
    printed = sum(float(shares[k]) for k in range(count) for _ in range(count))
    yield Decision(f"total of {count} shares", printed, float(shares.sum()), 1.0, "a distribution")


def _cross_entropy_sign() -> Iterable[Outcome]:
    p = np.full(4, 0.25)
    expectation = float((p * -np.log(p)).sum())
    logits = torch.zeros(1, 4, dtype=torch.float64)
    referee = float(F.cross_entropy(logits, torch.zeros(1, dtype=torch.long)))
    yield Decision("cross-entropy of four equal classes", -expectation, expectation, referee, "cross-entropy of torch")


def _index_of_the_label() -> Iterable[Outcome]:
    logits, own = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64), 0
    log_p, y = logits.log_softmax(0), F.one_hot(torch.tensor(own), 3).double()
    printed = float(-(y[own] * log_p).sum())  # y_j inside a sum over i
    referee = float(F.cross_entropy(logits[None], torch.tensor([own])))
    yield Decision(
        "logits 2, 0, -1, the first is right", printed, float(-(y * log_p).sum()), referee, "cross-entropy of torch"
    )


CENTRES = (((1.0, 1.0), (0.0,), ("0.3133", "0.8620")), ((2.0, -2.0), (0.0,), ("1.5607", "0.8179")))
ONE_POSITIVE = ((1.0,), (0.0, 0.5))


def _of_centre(positives: tuple[float, ...], negatives: tuple[float, ...], form: str) -> float:
    D = torch.tensor([[*positives, *negatives]], dtype=torch.float64)
    positive = torch.arange(D.shape[1])[None] < len(positives)
    return float(centre_losses(D, positive, ~positive, form))


def _shares(positives: tuple[float, ...], negatives: tuple[float, ...]) -> float:
    """- log of the mean share that a positive has in the soft-max over all: the right side of (3.2)."""
    exponentials = np.exp([*positives, *negatives])
    return float(-np.log((exponentials[: len(positives)] / exponentials.sum()).mean()))


def _identity() -> Iterable[Outcome]:
    for positives, negatives, (left, right) in CENTRES:
        what = f"right side of (3.2), positives {positives[0]:g} and {positives[1]:g}, negative 0"
        pairs, ratio = (_of_centre(positives, negatives, form) for form in ("pairs", "ratio"))
        yield Decision(what, pairs, ratio, _shares(positives, negatives), "shares of a soft-max")
        yield Number("left side", left, pairs)
        yield Number("right side", right, ratio)
    apart = _of_centre(*ONE_POSITIVE, "pairs") - _shares(*ONE_POSITIVE)
    yield Number("what the sides differ by with one positive", "0.0000", apart)


def _without_positives() -> Iterable[Outcome]:
    """Two samples of a class and one alone, raw inner products."""
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1])
    D = (x @ x.mT).numpy()
    others, same = ~np.eye(3, dtype=bool), (labels[:, None] == labels).numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        exponentials = np.exp(D)
        share = (exponentials * (same & others)).sum(1) / (same & others).sum(1) / (exponentials * others).sum(1)
        terms = -np.log(share)
    yield Decision(
        "mean over a batch with a sample that is alone in its class",
        float(terms.mean()),
        float(terms[:2].mean()),
        float(Tuplet("ratio")(x, labels)),
        "the batch loss",
    )


def _mutual_information() -> Iterable[Outcome]:
    classes = np.repeat(np.arange(4), 5)
    entropy = information = math.log(4)
    referee = nmi(classes, classes)
    yield Decision(
        "NMI of a perfect clustering, four equal classes",
        2 * information / (entropy * entropy),
        2 * information / (entropy + entropy),
        referee,
        "metrics.nmi",
    )


def _positives_of_n_pair() -> Iterable[Outcome]:
    """For how many positives the tuplet loss is the N-pair loss, which has one: the same for each of them."""
    positives, negatives = (1.0, 0.4, -0.3), (0.2, -0.1)
    fits = []
    for count in (1, 2, 3):
        tuplet = _of_centre(positives[:count], negatives, "pairs")
        n_pair = [math.log1p(sum(math.exp(n - p) for n in negatives)) for p in positives[:count]]
        if all(abs(tuplet - value) < 1e-12 for value in n_pair):
            fits.append(count)
    samples_of_a_class = 2
    yield Decision(
        "positives of a centre for which the loss is N-pair",
        samples_of_a_class,
        samples_of_a_class - 1,
        fits[0] if len(fits) == 1 else math.nan,
        "evaluation with 1, 2 and 3",
    )


def _margin_over_daml() -> Iterable[Outcome]:
    gains = {
        name: cell(f"C-3.{n}", "Proposed Method", "NMI") - cell(f"C-3.{n}", "DAML with N-pair loss", "NMI")
        for n, name in ((4, "CUB"), (5, "Cars196"), (6, "SOP"))
    }
    yield Decision("largest lead over DAML in NMI", 1.4, 2.0, max(gains.values()), "Tables 3.4 to 3.6", tolerance=1e-6)
    for name, stated in (("CUB", "2.0"), ("Cars196", "0.6"), ("SOP", "1.4")):
        yield Number(f"lead on {name}", stated, gains[name])


def _recurrent_gain() -> Iterable[Outcome]:
    method = {3: "Proposed Method", 4: "Proposed Method", 5: "Proposed Loss + Sampling"}
    gains = [cell(f"C-4.{n}", "Proposed Method + RNN", "NMI") - cell(f"C-4.{n}", method[n], "NMI") for n in method]
    yield Decision(
        "largest gain of the recurrent network in NMI", 0.8, 1.6, max(gains), "Tables 4.3 to 4.5", tolerance=1e-6
    )


CHECKS: Mapping[int, Check] = {
    74: _mahalanobis,
    75: _double_sum,
    76: _cross_entropy_sign,
    77: _index_of_the_label,
    78: _identity,
    79: _without_positives,
    80: _mutual_information,
    82: _positives_of_n_pair,
    83: _margin_over_daml,
    84: _recurrent_gain,
}
