"""Sentences about the final position of a marble."""

from __future__ import annotations

from dmlcore.geometry import Probe
from dmlcore.simulation.marble import Roll


def verdict(way: Roll, probe: Probe) -> str:
    """Return a sentence about the final position of the marble and its meaning for the loss."""
    loss = f"{way.energy[-1]:.3g}".replace("-", "−")
    if not way.moved:
        return {
            "floor": f"Flat ground: the loss is 0 here and nothing moves the {probe}.",
            "ceiling": f"Flat ground: above the upper clamp nothing moves the {probe}, though its loss is {loss}.",
            "onto": f"The {probe} lies on the {way.other}: no force has a direction there.",
        }.get(way.ending, f"The forces on the {probe} balance here, at loss {loss}.")
    return {
        "floor": f"The {probe} stops where the loss is 0: the triplet is satisfied and left alone.",
        "ceiling": f"The {probe} is left at the upper clamp, at loss {loss}: too hard a triplet, nothing moves it.",
        "onto": f"The {probe} falls onto the {way.other}: the two embeddings become one, at loss {loss}.",
        "hollow": f"The {probe} rests in a hollow at loss {loss}: the forces balance and the rest of it stays.",
        "out": f"The {probe} rolls out of the picture, at loss {loss}. Zoom out to follow it.",
        "rolling": f"The {probe} was followed as far as loss {loss}; it is still on its way.",
    }[way.ending]
