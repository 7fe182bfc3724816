"""Distances, force fields and margins of triplet losses."""

from dmlcore.geometry.distances import Triplet, distance, power_potential
from dmlcore.geometry.field import Field, Probe, forces, scan
from dmlcore.geometry.margins import margin_enclosing, margin_for_ellipse

__all__ = [
    "Field",
    "Probe",
    "Triplet",
    "distance",
    "forces",
    "margin_enclosing",
    "margin_for_ellipse",
    "power_potential",
    "scan",
]
