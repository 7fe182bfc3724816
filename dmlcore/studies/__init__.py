"""Studies: several runs that answer one question, as a TOML file; never imports torch."""

from dmlcore.studies import ledger
from dmlcore.studies.baselines import add as add_baselines
from dmlcore.studies.conductor import Conduct, Request, StudyState, cancel, conduct, conduct_of, launch
from dmlcore.studies.judgement import MEASURES, baseline_rows, judge, levels, pair, top
from dmlcore.studies.making import find
from dmlcore.studies.results import (
    Measured,
    Results,
    as_text,
    best_folds,
    by_class,
    load,
    measured,
    results_path,
    table,
    write,
)
from dmlcore.studies.spec import PRETRAINING, Entry, Study, Variant, expand, names, read

__all__ = [
    "MEASURES",
    "PRETRAINING",
    "Conduct",
    "Entry",
    "Measured",
    "Request",
    "Results",
    "Study",
    "StudyState",
    "Variant",
    "add_baselines",
    "as_text",
    "baseline_rows",
    "best_folds",
    "by_class",
    "cancel",
    "conduct",
    "conduct_of",
    "expand",
    "find",
    "judge",
    "launch",
    "ledger",
    "levels",
    "load",
    "measured",
    "names",
    "pair",
    "read",
    "results_path",
    "table",
    "top",
    "write",
]
