"""Distances, force fields and margins of triplet losses."""

from dmlcore.geometry.covers import average_covering_radius, covering_curve, covering_radius, k_center
from dmlcore.geometry.distances import Triplet, distance, power_potential
from dmlcore.geometry.field import Decomposition, Field, Probe, decompose, forces, probe_field, scan
from dmlcore.geometry.margins import margin_enclosing, margin_for_ellipse

__all__ = [
    "Decomposition",
    "Field",
    "Probe",
    "Triplet",
    "average_covering_radius",
    "covering_curve",
    "covering_radius",
    "decompose",
    "distance",
    "forces",
    "k_center",
    "margin_enclosing",
    "margin_for_ellipse",
    "power_potential",
    "probe_field",
    "scan",
]
