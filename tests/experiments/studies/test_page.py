"""Verdicts in docs/studies.md equal the computed ones."""

from pathlib import Path

import pytest

from dmlcore.experiments import studies
from dmlcore.significance import verdicts

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "studies.md").read_text().split())
WRITTEN = [name for name in studies.names() if studies.load(name)]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_verdict_of_each_study_stands_on_the_page(name):
    assert f"**{studies.judge(studies.read(name), studies.load(name).runs).headline}**" in PAGE


@pytest.mark.parametrize("name", WRITTEN)
def test_every_written_run_has_its_baselines_of_the_split_that_it_is_judged_on(name):
    judged = studies.read(name).judged
    for run in studies.load(name).runs:
        if run.variant != studies.PRETRAINING:
            assert judged in run.baselines["inputs"]
            assert judged in (run.baselines.get("untrained") or run.baselines["pretrained"])
            assert set(run.baselines) <= set(verdicts.NAMES)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_written_results_are_those_of_the_study_as_it_is(name):
    study, results = studies.read(name), studies.load(name)
    assert {run.digest for run in results.runs} <= {entry.digest() for entry in studies.expand(study)}
    assert {run.seed for run in results.runs} == set(study.seeds), "the number of seeds must equal that of the file"
