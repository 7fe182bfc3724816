"""Sentences on the final position of a marble on a loss landscape."""

from __future__ import annotations

from dmlcore.geometry import Probe
from dmlcore.simulation.marble import Roll


def verdict(way: Roll, probe: Probe) -> str:
    """Return a sentence on where the marble comes to rest and what this means for the triplet."""
    loss = f"{way.energy[-1]:.3g}".replace("-", "−")
    if not way.moved:
        return {
            "floor": f"Flat: the loss is 0 here, so no force acts on the {probe}.",
            "ceiling": f"Flat: above the upper clamp no force acts on the {probe}, although its loss is {loss}.",
            "onto": f"The {probe} coincides with the {way.other}, where the force has no direction.",
        }.get(way.ending, f"The forces on the {probe} balance here, at loss {loss}.")
    return {
        "floor": f"The {probe} stops where the loss is 0: the triplet is satisfied.",
        "ceiling": f"The {probe} stops at the upper clamp, at loss {loss}: the triplet is too hard.",
        "onto": f"The {probe} falls onto the {way.other}: the two embeddings coincide, at loss {loss}.",
        "hollow": f"The {probe} stops in a minimum at loss {loss}: the forces balance.",
        "out": f"The {probe} rolls out of view, at loss {loss}. Zoom out to follow it.",
        "rolling": f"The {probe} is still moving, at loss {loss}, where the simulation ends.",
    }[way.ending]
