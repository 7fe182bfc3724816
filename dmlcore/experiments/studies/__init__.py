"""Studies: TOML files that describe several runs to answer one question.

Reading a study imports torch only if its variants have different losses, whose tuned defaults must be known.
"""

from dmlcore.experiments.studies import candidates, comparisons, promises, selection
from dmlcore.experiments.studies.baselines import add as add_baselines
from dmlcore.experiments.studies.by_seed import CONVERGENCE, MEASURES, levels, points, score_of
from dmlcore.experiments.studies.conductor import Conduct, StudyRequest, StudyState, cancel, conduct, conduct_of, launch
from dmlcore.experiments.studies.expansion import StudyRun, expand
from dmlcore.experiments.studies.judgement import baseline_rows, judge, pair, top
from dmlcore.experiments.studies.results import (
    Measured,
    StudyResults,
    as_text,
    best_folds,
    by_class,
    load,
    measured,
    results_path,
    table,
    write,
)
from dmlcore.experiments.studies.run_batch import find
from dmlcore.experiments.studies.spec import PRETRAINING, Study, StudyVariant, names, read

__all__ = [
    "CONVERGENCE",
    "MEASURES",
    "PRETRAINING",
    "Conduct",
    "Measured",
    "Study",
    "StudyRequest",
    "StudyResults",
    "StudyRun",
    "StudyState",
    "StudyVariant",
    "add_baselines",
    "as_text",
    "baseline_rows",
    "best_folds",
    "by_class",
    "cancel",
    "candidates",
    "comparisons",
    "conduct",
    "conduct_of",
    "expand",
    "find",
    "judge",
    "launch",
    "levels",
    "load",
    "measured",
    "names",
    "pair",
    "points",
    "promises",
    "read",
    "results_path",
    "score_of",
    "selection",
    "table",
    "top",
    "write",
]
