"""Steps to 95 % of the own best validation score."""

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies.by_seed import convergence
from dmlcore.experiments.studies.results import ValidationCurve
from dmlcore.experiments.studies.spec import Study
from tests.experiments.studies.test_judgement import METHODS, of_methods


def test_the_curve_is_linear_between_validations():
    assert convergence([0, 50, 100], [0.0, 0.9, 1.0]) == pytest.approx(0.75)  # 0.95 is halfway from 0.9 to 1.0
    assert convergence([0, 50, 100], [0.0, 1.0, 0.5]) == pytest.approx(0.475), "a later fall does not matter"
    assert convergence([0, 10, 40], [0.96, 1.0, 0.97]) == 0, "the initial weights already reach it"


@pytest.mark.parametrize("curve", [([], []), ([0, 10], [0.0, 0.0]), ([0], [0.5])])
def test_without_scores_or_steps_there_is_none(curve):
    assert convergence(*curve) is None


ASIDE = """
[[contrasts]]
where = "Weak converges faster than strong"
score = "convergence"
title = "steps"
lower = true
aside = true
of = "weak"
against = "strong"
"""


def test_a_question_aside_is_answered_after_the_verdict():
    middle = {"weak": 0.95, "strong": 0.1}
    results = [
        run.model_copy(
            update={
                "validation": ValidationCurve(
                    step=(0, 1, 2), map_at_r=(0.0, middle.get(run.variant, 0.5) + 0.001 * run.seed, 1.0)
                )
            }
        )
        for run in of_methods()
    ]
    verdict = studies.judge(Study.from_toml(METHODS + ASIDE), results)
    before = studies.judge(Study.from_toml(METHODS), results)
    assert verdict.headline == before.headline
    assert verdict.more[:-1] == before.more
    assert verdict.more[-1].startswith("Weak converges faster than strong: yes. Steps: ")
