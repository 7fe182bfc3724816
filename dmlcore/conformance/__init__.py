"""Comparison of dmlcore and other metric-learning libraries with the formulas as printed in their sources."""

from dmlcore.conformance import known, losses, miners, proxy_losses, reducers, scores
from dmlcore.conformance.adapters import open_metric_learning, pml_known
from dmlcore.conformance.case import Case, Library, LibraryMissing, Outcome, Row, compare, run

__all__ = ["CASES", "LIBRARIES", "Case", "Library", "LibraryMissing", "Outcome", "Row", "compare", "run"]

CASES: tuple[Case, ...] = (
    *(*losses.PAIRS, *proxy_losses.PROXIES),
    *(*miners.MINERS, *scores.SCORES, *reducers.REDUCERS, *reducers.SAMPLERS, *known.CASES),
)
LIBRARIES: dict[str, Library] = {library.name: library for library in (pml_known.LIBRARY, open_metric_learning.LIBRARY)}
