"""Presets of the Compare page: pairs of losses that are equal, and pairs that only look alike."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from pages.losses.fields.compare.state import ComparisonView
from pages.shared.state.panel import Panel, panel

RHO = 0.6  # radians; default of the angular loss


def _charges(s: float, r: float, rho: float, m1: float) -> Panel:
    return panel("distance_sensitive", s=s, r=r, rho=rho, m1=m1, m2=math.inf)


def _on_circle(*degrees: float) -> dict[str, tuple[float, float]]:
    angles = zip(("anchor", "positive", "negative"), degrees, strict=True)
    return {k: (round(math.cos(math.radians(d)), 4), round(math.sin(math.radians(d)), 4)) for k, d in angles}


@dataclass(frozen=True)
class LossPair:
    """Two losses to compare; `kind` is "same" or "different", and `shown` sets further fields of `ComparisonView`."""

    kind: str
    title: str
    caption: str
    first: Panel
    second: Panel
    shown: dict[str, Any] = field(default_factory=dict)

    def comparison(self) -> ComparisonView:
        """Return the comparison that the preset opens."""
        return replace(ComparisonView(panels=(self.first, self.second)), **self.shown)


_WIDE: dict[str, Any] = {"positive": (1.0, 0.0), "negative": (0.35, 0.5), "view": (0.5, 0.1, 1.5)}
_SUMMED: dict[str, Any] = {"orders": True, "clamp": False, "fit": True}
_SPHERE: dict[str, Any] = {"space": "sphere", "clamp": False, "fit": True, "view": (0.0, 0.0, 1.7)} | _on_circle(
    20, 75, 140
)

PAIRS: tuple[LossPair, ...] = (
    LossPair(
        "same",
        "Angular = c · (1, −1)",
        "The angular loss is 2/cos²ρ times the distance-sensitive loss with s = 1, r = −1, ratio 2 sin²ρ; here ρ = "
        "0.6.",
        panel("angular", rho=RHO),
        _charges(1, -1, 2 * math.sin(RHO) ** 2, 0),
        _WIDE | {"fit": True},
    ),
    LossPair(
        "same",
        "Angular 45° = 4 · entangled",
        "At 45 degrees the angular loss is four times the entangled loss, including the margin: 0.4 against 0.1.",
        panel("angular", rho=math.pi / 4, m=0.4),
        panel("entangle", m=0.1),
        _WIDE | {"fit": True},
    ),
    LossPair(
        "same",
        "Entangled = (1, −1)",
        "The entangled loss is the distance-sensitive loss with s = 1, r = −1 and ratio 1, with the same margin.",
        panel("entangle", m=0.3),
        _charges(1, -1, 1, 0.3),
        _WIDE,
    ),
    LossPair(
        "same",
        "Modified = (0, 0)",
        "With s = 0 and r = 0 the distance-sensitive loss has constant forces, for every ratio.",
        panel("modified_entangle", rho=0.7, m=1.3),
        _charges(0, 0, 0.7, 1.3),
    ),
    LossPair(
        "same",
        "Σ ranking = modified ½",
        "A batch holds (a, p, n) and (p, a, n). Summed over both orders, before any clamp, the ranking loss equals the "
        "modified entangled loss with ρ = ½.",
        panel("ranking", m=0.3),
        panel("modified_entangle", rho=0.5, m=0.3),
        _SUMMED,
    ),
    LossPair(
        "same",
        "Σ FaceNet = 2 · (1, −1)",
        "Summed over both orders, before the clamp, FaceNet is twice the distance-sensitive loss (1, −1) with ρ = ½.",
        panel("facenet", m=0.2),
        _charges(1, -1, 0.5, 0.1),
        _SUMMED,
    ),
    LossPair(
        "same",
        "Location-aware = entangled, on the sphere",
        "On the unit sphere (dotted) the pull to the origin has no tangential part; only the margin is larger, by 5/2.",
        panel("location_aware", variant="printed", m=0.1),
        panel("entangle", m=0.1),
        _SPHERE,
    ),
    LossPair(
        "different",
        "Ranking / METU",
        "Ranking pushes with constant force and ignores the edge p–n; METU pushes harder the nearer the negative is.",
        panel("ranking", m=0.3),
        panel("distance_sensitive"),
    ),
    LossPair(
        "different",
        "Pull d / pull 1/d²",
        "The pushes are equal, but one pull grows with distance, as in FaceNet, and the other decays, as in potential "
        "fields.",
        _charges(1, 0, 1, 3),
        _charges(-2, 0, 1, 4.5),
        {"shade": "force", "probe": "positive"},
    ),
    LossPair(
        "different",
        "Ranking / FaceNet",
        "Distances against squared distances: with margin 0 the same triplets are active, but the forces differ.",
        panel("ranking", m=0.0),
        panel("facenet", m=0.0),
        {"fit": True, "shade": "force"},
    ),
    LossPair(
        "different",
        "Ranking / modified ½, one order",
        "These losses are equal when summed over both orders, but not for a single triplet.",
        panel("ranking", m=0.3),
        panel("modified_entangle", rho=0.5, m=0.3),
        {"clamp": False, "fit": True},
    ),
    LossPair(
        "different",
        "N-pairs / FaceNet, on the sphere",
        "On the sphere both forces have the same direction, but N-pairs weights a triplet by a sigmoid: no factor "
        "fits.",
        panel("npairs"),
        panel("facenet", m=0.0),
        _SPHERE | {"shade": "force"},
    ),
    LossPair(
        "different",
        "Location-aware / entangled, not normalised",
        "In the plane the pull to the origin is an additional force, so the same two losses differ.",
        panel("location_aware", variant="printed", m=0.1),
        panel("entangle", m=0.1),
        {"clamp": False, "fit": True, "view": (0.0, 0.0, 1.7)} | _on_circle(20, 75, 140),
    ),
)


@cache
def presets() -> list[dict[str, Any]]:
    """Return the presets for the component, each with kind, title, caption and comparison."""
    return [
        {"kind": p.kind, "title": p.title, "caption": p.caption, "comparison": p.comparison().to_json()} for p in PAIRS
    ]
