"""Attribution: which of the settings that a source leaves open changes a contrast of a study, and by how much."""

from dmlcore.experiments.attribution.design import Point, contrast_of, expand, overrides, own_values
from dmlcore.experiments.attribution.effects import Effect, effects, rows, shares, summary
from dmlcore.experiments.attribution.results import AttributionResults, ScoredRun, conduct, load, measured, write

__all__ = [
    "AttributionResults",
    "Effect",
    "Point",
    "ScoredRun",
    "conduct",
    "contrast_of",
    "effects",
    "expand",
    "load",
    "measured",
    "overrides",
    "own_values",
    "rows",
    "shares",
    "summary",
    "write",
]
