"""A study does not compare a setting that was tuned elsewhere for one loss with losses that were not tuned."""

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies.fairness import tuned_defaults
from dmlcore.experiments.studies.spec import Study
from dmlcore.spec import RunSpec, SpecError
from tests.experiments.studies.tiny import DIGITS, HEAD
from tests.members import in_one_case

TOML = f"""{HEAD}
{DIGITS}
[[variants]]
name = "Ranking"
overrides = ["loss.name=ranking"]

[[variants]]
name = "METU"
overrides = ["loss.name=distance_sensitive"]
"""
UNTUNED = '["loss.name=distance_sensitive", "loss.m1=40", "loss.m2=1000"]'
METU = '["loss.name=distance_sensitive"]'


def test_a_default_that_was_tuned_on_other_data_is_refused_by_name():
    with pytest.raises(
        SpecError, match=r"^variants\.METU: the default of loss\.m1 of distance_sensitive was tuned on cub"
    ):
        Study.from_toml(TOML)
    with pytest.raises(SpecError, match=r"^variants\.METU: the default of loss\.m2"):
        Study.from_toml(TOML.replace(METU, '["loss.name=distance_sensitive", "loss.m1=-2"]'))


def test_a_baseline_of_its_own_is_a_comparison_too():
    named = TOML.replace('name = "METU"', 'name = "METU"\nagainst = ["Ranking"]')
    with pytest.raises(SpecError, match=r"^variants\.METU: the default of loss\.m1"):
        Study.from_toml(named)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (METU, UNTUNED),  # set in the study
        ('name = "digits"', 'name = "cub"'),  # the data on which it was tuned
        ("loss.name=ranking", "loss.name=distance_sensitive"),  # the same setting for all
        ("claim =", 'ceiling = "METU"\nclaim ='),  # an upper bound is not compared
    ],
)
def test_settings_that_no_loss_has_an_advantage_from_are_accepted(old, new):
    text = TOML.replace(old, new)
    assert text != TOML
    Study.from_toml(text)


def test_as_many_candidates_for_each_are_accepted():
    chosen = TOML.replace('"loss.name=ranking"]', '"loss.name=ranking"]\nchoose = ["loss.m=0.1", "loss.m=0.2"]')
    with pytest.raises(SpecError, match=r"^variants\.METU\.choose: has 0 candidates, but 'Ranking'.* has 2"):
        Study.from_toml(chosen)
    study = Study.from_toml(chosen.replace(METU, f'{METU}\nchoose = ["loss.m1=-2", "loss.m1=-1"]'))
    assert [variant.choose for variant in study.variants] == [
        (("loss.m=0.1",), ("loss.m=0.2",)),
        (("loss.m1=-2",), ("loss.m1=-1",)),
    ]


def test_tuned_defaults_are_those_that_a_spec_keeps():
    spec = RunSpec().with_overrides(["data.name=omniglot", "model.name=conv4", "loss.name=distance_sensitive"])
    assert tuned_defaults(spec) == {"distance_sensitive.m1": "cub", "distance_sensitive.m2": "cub"}
    assert tuned_defaults(spec.with_overrides(["loss.m1=-2", "loss.m2=5"])) == {}
    assert tuned_defaults(spec.with_overrides(["loss.name=contrastive"])) == {"contrastive.m_neg": "cub"}
    assert tuned_defaults(spec.with_overrides(["loss.name=ranking"])) == {}


@in_one_case(name=studies.names())
def test_no_verdict_of_the_lab_rests_on_a_default_that_was_tuned_for_some_losses(name):
    """A second look at the rule, by the specs of the runs instead of the study's text."""
    study = studies.read(name)
    entries = [
        e for e in studies.expand(study, seeds=study.seeds[:1]) if e.variant not in ("pretraining", study.ceiling)
    ]
    numbers = {entry.variant: len({e.candidate for e in entries if e.variant == entry.variant}) for entry in entries}
    assert len(set(numbers.values())) == 1, numbers
    if not entries[0].candidate:
        kept = {entry.variant: tuple(tuned_defaults(entry.spec)) for entry in entries}
        assert len(set(kept.values())) == 1, kept
