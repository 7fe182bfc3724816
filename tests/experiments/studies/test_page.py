"""Verdicts in docs/studies.md equal the computed ones, and its generated part is up to date."""

import pytest

from dmlcore.experiments import studies
from dmlcore.significance import verdicts
from docs import make_studies
from tests.members import in_one_case

TEXT = make_studies.PAGE.read_text()
BEFORE, _, REST = TEXT.partition(make_studies.BEGIN)
PAGE = " ".join((BEFORE + REST.partition(make_studies.END)[2]).split())  # without the generated part
GENERATED = " ".join(make_studies.sections().split())
WRITTEN = [name for name in studies.names() if studies.load(name)]


@in_one_case(name=WRITTEN)
def test_the_verdict_of_each_study_stands_on_the_page(name):
    verdict = f"**{studies.judge(studies.read(name), studies.load(name).runs).headline}**"
    assert verdict in GENERATED
    if f"study {name}`" in PAGE:  # a section describes the study
        assert verdict in PAGE


def test_the_generated_part_is_up_to_date_and_names_the_command_of_each_study():
    assert make_studies.page(TEXT) == TEXT, "run python -m docs.make_studies"
    for name in studies.names():
        assert f"`python -m dmlcore study {name} --write`" in TEXT


def test_rejected_candidates_count_as_training_time():
    results = studies.load("forces-birds")
    known = sum(run.seconds for run in results.runs) / 3600
    assert make_studies.training_hours("forces-birds") > known
    assert make_studies.training_hours("gsp-birds") == sum(run.seconds for run in studies.load("gsp-birds").runs) / 3600


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="lacks the markers"):
        make_studies.page("# Studies")


@in_one_case(name=WRITTEN)
def test_every_written_run_has_its_baselines_of_the_split_that_it_is_judged_on(name):
    judged = studies.read(name).judged
    for run in studies.load(name).runs:
        if run.variant != studies.PRETRAINING:
            assert judged in run.baselines["inputs"]
            assert judged in (run.baselines.get("untrained") or run.baselines["pretrained"])
            assert set(run.baselines) <= set(verdicts.NAMES)


@in_one_case(name=WRITTEN)
def test_the_written_results_are_those_of_the_study_as_it_is(name):
    study, results = studies.read(name), studies.load(name)
    assert {run.digest for run in results.runs} <= {entry.digest() for entry in studies.expand(study)}
    assert {run.seed for run in results.runs} == set(study.seeds), "the number of seeds must equal that of the file"
