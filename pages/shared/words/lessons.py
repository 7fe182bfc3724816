"""Example situations and the guided tour of the Fields page for first-time visitors, as plain data."""

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
        "sentence": (
            "The negative is far enough: the loss is 0 and no point moves. Such triplets do not train the network."
        ),
        "scene": _scene(negative=(0.5, 1.35), mining=True),
    },
    {
        "name": "Semi-hard",
        "sentence": (
            "The negative is farther than the positive but still within the margin, so it is pushed out gently."
        ),
        "scene": _scene(negative=(0.0, 0.75), mining=True),
    },
    {
        "name": "Hard",
        "sentence": (
            "The negative is nearer than the positive. With r = 2 the push grows like 1/d² as it comes closer."
        ),
        "scene": _scene(negative=(-0.1, 0.3), mining=True),
    },
    {
        "name": "Too hard",
        "sentence": (
            "The energy exceeds the upper clamp m₂, perhaps because of a wrong label. The forces are then zero."
        ),
        "scene": _scene(negative=(0.05, 0.12), mining=True),
    },
    {
        "name": "Collapse",
        "sentence": (
            "Three points almost in one place under FaceNet: its forces shrink with distance, so training stalls."
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
        "sentence": ("Normalised embeddings lie on the unit circle. Drag a point: it stays on the circle."),
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
            "An anchor A and a positive P share a class and attract each other; a negative N, of another class, "
            "repels both. Green arrows show the force on each point. Drag N and watch the arrows turn."
        ),
        "look": "negative at 0.35, 0.75",
        "scene": _scene(flow="none", region=False),
    },
    {
        "title": "The loss is a landscape",
        "text": (
            "Colour and lines show the loss for each position of N. The force points downhill, at right angles to "
            "the lines, and is stronger where the lines are close together. Move the pointer over the plane to "
            "read the values."
        ),
        "look": "equipotentials",
        "scene": _scene(lines="clamped"),
    },
    {
        "title": "Pull and push",
        "text": (
            "Every force is the sum of a pull along A–P and pushes along the edges of N. Two laws, drawn as curves, "
            "give their sizes: the pull is dˢ, the push ρ/dʳ. Move s and r: with s = 1 the pull grows, as in FaceNet; "
            "with s = 0 it is constant, as in the ranking loss; below 0 it decays, as in potential fields."
        ),
        "look": "r",
        "scene": _scene(edges=True, flow="none", region=False),
    },
    {
        "title": "The clamp selects the triplets",
        "text": (
            "Only triplets with an energy between 0 and m₂ feel a force; hatched regions have none. The margin m₁ "
            "moves the outer edge, m₂ the inner hole: together they act as a miner inside the loss."
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
            "The ranking loss, applied in both orders, acts inside two discs around A and P. The ellipse around both "
            "discs (Appendix B) gives the margin with which the new loss acts on every triplet that ranking acts on. "
            "The Compare page shows two losses side by side."
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
