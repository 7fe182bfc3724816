"""Ejection of a run: one readable Python file that needs no dmlcore and retrains the run to the same bytes."""

from dmlcore.experiments.eject.assemble import source, write
from dmlcore.experiments.eject.support import EjectError

__all__ = ["EjectError", "source", "write"]
