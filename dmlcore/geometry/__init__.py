"""Distances, force fields and margins of triplet losses."""

from dmlcore.geometry.covers import average_covering_radius, covering_curve, covering_radius, k_center
from dmlcore.geometry.forces import Decomposition, Field, Probe, decompose, forces, probe_field, scan
from dmlcore.geometry.margins import (
    balanced_rho,
    margin_enclosing,
    margin_for_ellipse,
    margin_from_normalised,
    normalised_margin,
    triplet_count,
)
from dmlcore.geometry.plane_field import PlaneSnapshot, snapshot
from dmlcore.geometry.triplet import Triplet, distance, power_potential
from dmlcore.geometry.worked import (
    Worked,
    explain_balanced_rho,
    explain_margin_enclosing,
    explain_margin_for_ellipse,
)

__all__ = [
    "Decomposition",
    "Field",
    "PlaneSnapshot",
    "Probe",
    "Triplet",
    "Worked",
    "average_covering_radius",
    "balanced_rho",
    "covering_curve",
    "covering_radius",
    "decompose",
    "distance",
    "explain_balanced_rho",
    "explain_margin_enclosing",
    "explain_margin_for_ellipse",
    "forces",
    "k_center",
    "margin_enclosing",
    "margin_for_ellipse",
    "margin_from_normalised",
    "normalised_margin",
    "power_potential",
    "probe_field",
    "scan",
    "snapshot",
    "triplet_count",
]
