"""Distances, force fields and margins of triplet losses."""

from dmlcore.geometry.covering import average_covering_radius, covering_radius, k_center
from dmlcore.geometry.derivations import (
    Worked,
    explain_balanced_rho,
    explain_margin_enclosing,
    explain_margin_for_ellipse,
)
from dmlcore.geometry.field_table import FieldTable, field_table, scan, snapshot
from dmlcore.geometry.forces import Probe, forces
from dmlcore.geometry.margins import (
    balanced_rho,
    margin_enclosing,
    margin_for_ellipse,
    margin_from_data,
)
from dmlcore.geometry.plane_view import PlaneScene, PlaneView, view
from dmlcore.geometry.triplet import Triplet, distance, margin_from_normalised, normalised_margin, power_potential

__all__ = [
    "FieldTable",
    "PlaneScene",
    "PlaneView",
    "Probe",
    "Triplet",
    "Worked",
    "average_covering_radius",
    "balanced_rho",
    "covering_radius",
    "distance",
    "explain_balanced_rho",
    "explain_margin_enclosing",
    "explain_margin_for_ellipse",
    "field_table",
    "forces",
    "k_center",
    "margin_enclosing",
    "margin_for_ellipse",
    "margin_from_data",
    "margin_from_normalised",
    "normalised_margin",
    "power_potential",
    "scan",
    "snapshot",
    "view",
]
