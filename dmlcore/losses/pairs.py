"""Losses of pairs of samples, as dense tables of rows and columns."""

from __future__ import annotations

from torch import Tensor

from dmlcore.losses.batch import BatchFormula, PairLoss, Pairs, mean
from dmlcore.losses.distances import DISTANCES
from dmlcore.params import Choice, Slider

DIVISORS = ("nonzero", "pairs", "anchors", "one")

DISTANCE = Choice(
    DISTANCES, "d", "Distance: Euclidean, its square, 1 - cosine, or Euclidean in the unit ball (long vectors cut)"
)
DIVISOR = Choice(
    DIVISORS, "N", "What each sum is divided by: its terms above 0, all its pairs, the anchors, or nothing (one)"
)


class Contrastive(PairLoss):
    """[d - m_pos]+ over pairs of one class plus [m_neg - d]+ over pairs of two.

    divisor: each sum is divided by its own terms above 0 ("nonzero"), its pairs, the anchors, or by nothing ("one");
    pairs count in both orders. Source: Hadsell, Chopra & LeCun 2006; with a positive margin ("C2"), and with cosine
    distance and m_pos = 1e-5, m_neg = 0.5 over the anchors ("C1"), Gurbuz 2022, Sec. 3.3. Squared distances: Karaman
    2021, Eq. 2.2. Cosine distance with margin m_neg is Psomas 2020, Eq. 2.15 with lambda = 1 - m_neg, up to a constant.
    """

    def __init__(self, m_pos: float, m_neg: float, distance: str = "euclidean", divisor: str = "nonzero") -> None:
        super().__init__()
        self.m_pos, self.m_neg, self.distance, self.divisor = m_pos, m_neg, distance, divisor
        self.unbounded = distance == "cosine"

    def of(self, pairs: Pairs) -> Tensor:
        """The loss of these pairs."""
        d = pairs.distances(self.distance)
        pull = ((d - self.m_pos).relu()).masked_fill(~pairs.positive, 0.0)
        push = ((self.m_neg - d).relu()).masked_fill(~pairs.negative, 0.0)
        self.note(pull.detach() + push.detach(), pairs.positive | pairs.negative)
        return reduced(pull, pairs.positive, self.divisor) + reduced(push, pairs.negative, self.divisor)


def reduced(terms: Tensor, valid: Tensor, divisor: str) -> Tensor:
    """Sum of the terms (B, R), 0 where not valid, over what `divisor` names."""
    total = terms.sum()
    if divisor == "nonzero":
        return mean(total, (terms > 0).sum())
    if divisor == "pairs":
        return mean(total, valid.sum())
    return total / max(len(terms), 1) if divisor == "anchors" else total


ENTRIES = (
    BatchFormula(
        "contrastive",
        "Contrastive",
        r"\operatorname{mean}_{+}\,[d_{ij} - m_+]_+ \;+\; \operatorname{mean}_{-}\,[m_- - d_{ij}]_+",
        "Hadsell, Chopra & LeCun 2006; with a positive margin Gürbüz 2022, Sec. 3.3 (C2)",
        "Pairs of one class are pulled until they are closer than the positive margin, pairs of two classes "
        "pushed until they are farther apart than the negative one.",
        {
            "m_pos": Slider(0, 2, "m_+", "Distance under which pairs of one class are left alone", above=-1e-9),
            "m_neg": Slider(0.01, 2, "m_-", "Distance beyond which pairs of two classes are left alone", above=0),
            "distance": DISTANCE,
            "divisor": DIVISOR,
        },
        {"m_pos": 0.0, "m_neg": 0.3841, "distance": "euclidean", "divisor": "nonzero"},
        False,
        Contrastive,
    ),
)
