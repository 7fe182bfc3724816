"""Points in the plane that move under the forces of a triplet loss: all points (charges) or a single one (marble)."""

from dmlcore.simulation.charges import STRIDE, ChargesFrame, Simulation
from dmlcore.simulation.measures import FIXED_COLUMNS, DistanceHistogram, clamp_lines, depends_on, phase_portrait
from dmlcore.simulation.placements import STARTS, Placement, start_points
from dmlcore.simulation.spec import (
    MOST_CHANGES,
    MOST_POINTS,
    MOST_STEPS,
    NORMALISATIONS,
    OPTIMISERS,
    REACH,
    SIDES,
    Change,
    Dynamics,
    Spec,
)

__all__ = [
    "FIXED_COLUMNS",
    "MOST_CHANGES",
    "MOST_POINTS",
    "MOST_STEPS",
    "NORMALISATIONS",
    "OPTIMISERS",
    "REACH",
    "SIDES",
    "STARTS",
    "STRIDE",
    "Change",
    "ChargesFrame",
    "DistanceHistogram",
    "Dynamics",
    "Placement",
    "Simulation",
    "Spec",
    "clamp_lines",
    "depends_on",
    "phase_portrait",
    "start_points",
]
