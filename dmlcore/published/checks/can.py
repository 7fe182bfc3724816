"""Checks of the errata of Can 2018, which concern distances, tuplet losses, scores and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch

from dmlcore.losses.tuplets import Tuplet, centre_losses
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.printed_tables import cell, printed


def _double_sum() -> Iterable[Outcome]:
    count = 10
    shares = torch.softmax(torch.zeros(count, dtype=torch.float64), 0)
    twice = sum(float(shares[k]) for k in range(count) for _ in range(count))
    yield Decision(f"total of {count} shares", twice, float(shares.sum()), 1.0, "a distribution")


def of_centre(positives: tuple[float, ...], negatives: tuple[float, ...], form: str) -> float:
    """Return the tuplet loss of one anchor from its unnormalised similarities to positives and negatives.

    `form` selects the form of the loss, "pairs" or "ratio".
    """
    D = torch.tensor([[*positives, *negatives]], dtype=torch.float64)
    positive = torch.arange(D.shape[1])[None] < len(positives)
    return float(centre_losses(D, positive, ~positive, form))


def _identity() -> Iterable[Outcome]:
    for positives, negatives, stated in (
        ((1.0, 1.0), (0.0,), ("0.3133", "0.8620")),
        ((2.0, -2.0), (0.0,), ("1.5607", "0.8179")),
        ((1.0,), (0.0, 0.5), ("0.6803", "0.6803")),
    ):
        for form, side, text in zip(("pairs", "ratio"), ("left", "right"), stated, strict=True):
            what = f"{side} side, positives {positives}, negatives {negatives}"
            yield Number(what, text, of_centre(positives, negatives, form))


def _without_positives() -> Iterable[Outcome]:
    """Compare the printed and the true batch mean of the tuplet loss if one of three samples is alone in its class."""
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


def _positives_of_n_pair() -> Iterable[Outcome]:
    """Find the numbers of positives for which the tuplet loss equals the N-pair loss of each positive alone."""
    positives, negatives = (1.0, 0.4, -0.3), (0.2, -0.1)
    fits = []
    for count in (1, 2, 3):
        tuplet = of_centre(positives[:count], negatives, "pairs")
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


def _recurrent_retrieval() -> Iterable[Outcome]:
    method = {3: "Proposed Method", 4: "Proposed Method", 5: "Proposed Loss + Sampling"}
    changes = {
        (n, column): cell(f"C-4.{n}", "Proposed Method + RNN", column) - cell(f"C-4.{n}", method[n], column)
        for n in method
        for column in printed(f"C-4.{n}").columns
    }
    falling = sum(change < 0 for change in changes.values())
    yield Decision(f"scores, of {len(changes)}, that the recurrent network lowers", 0, 5, falling, "Tables 4.3 to 4.5")
    for n, title, stated in (
        (3, "CUB", {"R@4": "-0.3", "R@8": "-0.8"}),
        (4, "Cars196", {"R@2": "-0.1", "R@4": "-1.0", "R@8": "-0.9"}),
    ):
        for column, text in stated.items():
            yield Number(f"change of {column} on {title}", text, changes[n, column])


def _more_positives() -> Iterable[Outcome]:
    columns = printed("C-3.2").columns
    few, many = ([cell("C-3.2", name, c) for c in columns] for name in ("N-pair", "Proposed Loss + P = 4"))
    falling = sum(b < a for a, b in zip(few, many, strict=True))
    yield Decision(f"scores, of {len(columns)}, that fall from P = 2 to P = 4", len(columns), 4, falling, "Table 3.2")
    yield Number("R@100 at P = 2", "92.1", few[-1])
    yield Number("R@100 at P = 4", "92.2", many[-1])


CHECKS: Mapping[int, Check] = {
    75: _double_sum,
    78: _identity,
    79: _without_positives,
    82: _positives_of_n_pair,
    83: _margin_over_daml,
    84: _recurrent_gain,
    113: _recurrent_retrieval,
    114: _more_positives,
}
