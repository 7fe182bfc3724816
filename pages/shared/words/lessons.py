"""What the fields page offers a first visitor: a row of situations, and a tour of six steps. Plain data."""

from __future__ import annotations

import math
from typing import Any

from dmlcore.loss_analysis.thesis_figures import BALANCED

PLAIN: dict[str, Any] = {
    "probe": "negative",
    "shade": "energy",
    "lines": "none",
    "flow": "arrows",
    "margin": "raw",
    "mu": None,
    "snap": "free",
    "region": True,
    "forces": True,
    "edges": False,
    "discs": False,
    "mining": False,
    "cut": False,
    "anchor": (0.0, 0.0),
    "positive": (0.5, 0.0),
    "negative": (0.35, 0.75),
    "view": (0.25, 0.1, 1.5),
}


def _scene(loss: str = "distance_sensitive", **changes: Any) -> dict[str, Any]:
    margin = "normalised" if loss == "distance_sensitive" and "hyper" not in changes else "raw"
    return PLAIN | {"loss": loss, "margin": margin} | changes


SITUATIONS: list[dict[str, Any]] = [
    {
        "name": "Too easy",
        "sentence": ("The negative is far enough: the loss is 0 and nobody moves. Such triplets teach nothing."),
        "scene": _scene(negative=(0.5, 1.35), mining=True),
    },
    {
        "name": "Semi-hard",
        "sentence": (
            "Farther than the positive, yet still within reach of the loss: the negative is pushed out gently."
        ),
        "scene": _scene(negative=(0.0, 0.75), mining=True),
    },
    {
        "name": "Hard",
        "sentence": ("Nearer than the positive: with r = 2 the push grows like 1/d² as the negative comes closer."),
        "scene": _scene(negative=(-0.1, 0.3), mining=True),
    },
    {
        "name": "Too hard",
        "sentence": ("Beyond the upper clamp m₂: perhaps a wrong label. The window drops it, and the forces with it."),
        "scene": _scene(negative=(0.05, 0.12), mining=True),
    },
    {
        "name": "Collapse",
        "sentence": (
            "Three points almost in one place under FaceNet: forces fade with distance, so training stalls here."
        ),
        "scene": _scene(
            "facenet",
            hyper={"m": 0.1},
            anchor=(0.0, 0.0),
            positive=(0.06, 0.0),
            negative=(0.03, 0.05),
            view=(0.03, 0.02, 0.5),
        ),
    },
    {
        "name": "On the circle",
        "sentence": ("Normalised embeddings live on the unit circle: drag a point, it stays there."),
        "scene": _scene(
            snap="circle",
            anchor=(1.0, 0.0),
            positive=(0.866, 0.5),
            negative=(0.5, 0.866),
            view=(0.0, 0.0, 1.6),
        ),
    },
]

TOUR: list[dict[str, Any]] = [
    {
        "title": "Three charges",
        "text": (
            "An anchor A and a positive P share a class and attract; a negative N, of another class, repels "
            "them. Green arrows are the forces on each point. Drag N around and watch them turn."
        ),
        "look": "negative at 0.35, 0.75",
        "scene": _scene(flow="none", region=False),
    },
    {
        "title": "The loss is a landscape",
        "text": (
            "Colour and lines show the loss N would have at each place. Force is its downhill slope: at right "
            "angles to the lines, and stronger where they crowd. Move the pointer over the plane to read it "
            "out."
        ),
        "look": "equipotentials",
        "scene": _scene(lines="clamped"),
    },
    {
        "title": "Pull and push",
        "text": (
            "Every force is a pull along A–P and pushes along the edges of N. Their sizes follow two laws, "
            "drawn as curves: the pull grows as dˢ, the push falls as ρ/dʳ. Move s and r."
        ),
        "look": "r",
        "scene": _scene(edges=True, flow="none", region=False),
    },
    {
        "title": "The clamp decides who is trained",
        "text": (
            "Only triplets with an energy between 0 and m₂ feel a force; hatched places do not. The margin m₁ "
            "moves the outer edge, m₂ the inner hole: together they are a miner inside the loss."
        ),
        "look": "m1",
        "scene": _scene(negative=(-0.3, 0.6), mining=True, margin="raw"),
    },
    {
        "title": "The law shapes the region",
        "text": (
            "With r = 0 the active region is an ellipse with foci A and P, with r = -1 a circle, with r = 1 a Cassini "
            "oval; larger r narrow it at the waist. Move r slowly through 1: the normalised margin μ keeps it steady."
        ),
        "look": "r",
        "scene": _scene(
            hyper={"s": 0.0, "r": 0.0, "rho": BALANCED, "m1": 2.5, "m2": 2.0},
            margin="normalised",
            mu=2.5 + 1 - 2 * BALANCED,
            negative=(0.25, 0.6),
        ),
    },
    {
        "title": "Against the classic",
        "text": (
            "In both orders, the ranking loss acts inside two discs about A and P. The ellipse around both "
            "(Appendix B) tells which margin lets the new loss see every triplet that ranking sees. The Compare page "
            "sets two losses side by side."
        ),
        "look": "ranking discs, ellipse",
        "scene": _scene(
            hyper={"s": 0.0, "r": 0.0, "rho": BALANCED, "m1": 4.6381, "m2": None},
            positive=(1.0, 0.0),
            negative=(0.5, math.sqrt(3) / 2),
            view=(0.5, 0.0, 2.2),
            discs=True,
        ),
    },
]
