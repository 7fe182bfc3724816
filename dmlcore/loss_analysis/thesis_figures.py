"""Settings that reproduce figures of Karaman 2021: points, loss and hyper-parameters of each panel.

The thesis does not state the points of figures 2.5, 3.1 and 3.3, so typical points are used. Nor does it state the
margin of figures 3.1 to 3.4, 3.6, 3.7 and the upper panel of B.1; it is chosen such that the triplet of every panel is
active. Forces do not depend on the margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from dmlcore.geometry import Probe

Point = tuple[float, float]
BALANCED = 12 / 7  # rho that balances pull and push in a batch of 32 samples from 4 classes, Eq. 3.19


@dataclass(frozen=True)
class FigurePanel:
    """Panel of a figure. `view` is the displayed part of the plane as (centre x, centre y, half width)."""

    figure: str
    panel: str
    caption: str
    loss: str
    hyper: dict[str, float] = field(default_factory=dict)
    anchor: Point = (0.0, 0.0)
    positive: Point = (1.0, 0.0)
    negative: Point = (0.0, 1.0)
    view: tuple[float, float, float] = (0.25, 0.0, 1.6)
    discs: bool = False  # True to draw the discs around anchor and positive in which the ranking loss is active
    edges: bool = False  # True to draw the forces along the edges
    probe: Probe = "negative"  # point whose force field is drawn over the plane
    mining: bool = False  # True to draw the regions in which the probe is easy, semi-hard or hard


def _charges(**hyper: float) -> dict[str, float]:
    return {"rho": BALANCED, "m2": math.inf} | hyper


_PANELS: tuple[FigurePanel, ...] = (
    FigurePanel(
        "2.5",
        "(a) negative",
        "Mining regions of the negative: easy beyond d + m, semi-hard down to d, hard inside.",
        "ranking",
        {"m": 0.4},
        (0.0, 0.0),
        (1.0, 0.0),
        (-0.45, 1.1),
        (0.0, 0.0, 1.9),
        mining=True,
    ),
    FigurePanel(
        "2.5",
        "(b) positive",
        "Mining regions of the positive, negative fixed: easy within d(a,n) - m, semi-hard up to d(a,n), hard beyond.",
        "ranking",
        {"m": 0.4},
        (0.0, 0.0),
        (0.4, 0.9),
        (1.2, 0.0),
        (0.0, 0.0, 1.9),
        probe="positive",
        mining=True,
    ),
    FigurePanel(
        "3.1",
        "charges",
        "Negative permittivity, a sketch: the two like charges A and P attract each other, and both repel N.",
        "distance_sensitive",
        {"s": 1, "r": 2, "rho": 1, "m1": 0, "m2": math.inf},
        (-0.5, 0.0),
        (0.5, 0.0),
        (0.0, 0.9),
        (0.0, 0.4, 1.9),
    ),
    FigurePanel(
        "3.2",
        "entangled",
        "A unit equilateral triangle: the negative repels both ends of the pair as strongly as they attract.",
        "entangle",
        {"m": 1.5},
        (0.0, 0.0),
        (1.0, 0.0),
        (0.5, math.sqrt(3) / 2),
        (0.5, 0.4, 1.9),
    ),
    *(
        FigurePanel("3.3", panel, caption, loss, hyper, (0.0, 0.0), (1.0, 0.0), (0.2, 0.6), (0.5, 0.2, 1.6))
        for panel, caption, loss, hyper in (
            (
                "modified",
                "Unequal sides, equal forces along them: the modified loss pulls and pushes with constant strength.",
                "modified_entangle",
                {"rho": 1, "m": 1.3},
            ),
            (
                "distance-sensitive",
                "Unequal sides, unequal forces: the shorter the edge to the negative, the stronger its push.",
                "distance_sensitive",
                {"s": 1, "r": 2, "rho": 1, "m1": -2.325, "m2": 5},
            ),
        )
    ),
    *(
        FigurePanel(
            "3.4",
            f"ρ = {name}",
            "An equilateral triangle of side 2: only the ratio of push to pull changes the forces.",
            "distance_sensitive",
            _charges(s=0, r=0, rho=rho, m1=8),
            (-1.0, 0.0),
            (1.0, 0.0),
            (0.0, math.sqrt(3)),
            (0.0, 0.7, 2.4),
        )
        for name, rho in (("0.5", 0.5), ("1", 1.0), ("12/7", BALANCED), ("2", 2.0))
    ),
    *(
        FigurePanel(
            "3.5",
            f"r = {r}",
            "The in-loss-miner region: circles for r = -1, ellipses for r = 0, lobes or one piece for r > 1.",
            "distance_sensitive",
            {"s": 0, "r": r, "rho": BALANCED, "m1": m1, "m2": m2},
            (0.0, 0.0),
            (0.5, 0.0),
            (0.25, 0.9 if r < 0 else 0.6),
        )
        for r, m1, m2 in ((-1, 2.5, 2.0), (0, 2.5, 2.0), (2, -3.5, 20.0), (3, -3.5, 20.0))
    ),
    *(
        FigurePanel(
            "3.6",
            f"r = {r}",
            "A nearby negative: raising r strengthens the push along edges shorter than 1 and weakens the others.",
            "distance_sensitive",
            _charges(s=0, r=r, m1=3),
            (0.0, 0.0),
            (1.0, 0.0),
            (0.0, 0.5),
            (0.5, 0.2, 1.6),
        )
        for r in (-1, 0, 2, 3)
    ),
    *(
        FigurePanel(
            "3.7",
            f"s = {s}, r = {r}",
            "Pull dˢ against push ρ/dʳ: s acts on the pair, r on both edges of the negative.",
            "distance_sensitive",
            _charges(s=s, r=r, m1=5),
            (0.0, 0.0),
            (0.5, 0.0),
            (0.0, 1.0),
            (0.25, 0.4, 1.6),
        )
        for s in (0, 1)
        for r in (-1, 0, 2)
    ),
    *(
        FigurePanel("B.1", panel, caption, loss, hyper, a, p, (0.4, 0.9), (0.5, 0.0, 2.0), discs)
        for panel, caption, loss, hyper, a, p, discs in (
            ("A", "Ranking: the disc about the anchor.", "ranking", {"m": 0.1}, (0.0, 0.0), (1.0, 0.0), False),
            ("B", "Ranking with anchor and positive exchanged.", "ranking", {"m": 0.1}, (1.0, 0.0), (0.0, 0.0), False),
            (
                "C",
                "The ellipse of r = 0 whose margin m1 = 4.6381 encloses both discs.",
                "distance_sensitive",
                _charges(s=0, r=0, m1=4.6381),
                (0.0, 0.0),
                (1.0, 0.0),
                False,
            ),
            (
                "D",
                "The ellipse with both ranking discs drawn in.",
                "distance_sensitive",
                _charges(s=0, r=0, m1=4.6381),
                (0.0, 0.0),
                (1.0, 0.0),
                True,
            ),
        )
    ),
)

# In the figures that discuss forces along the edges, draw these forces.
PRESETS: tuple[FigurePanel, ...] = tuple(
    replace(p, edges=p.figure in ("3.2", "3.3", "3.4", "3.6", "3.7")) for p in _PANELS
)
