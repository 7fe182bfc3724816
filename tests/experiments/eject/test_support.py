"""Runs that cannot be ejected."""

import pytest

from dmlcore.cli.options import read_spec
from dmlcore.experiments import eject
from dmlcore.experiments.eject.support import LOSSES, unsupported
from dmlcore.losses import LOSSES as CATALOGUE
from dmlcore.storage.runs import RunStore
from tests.members import in_one_case


@in_one_case(spec=["digits", "digits-classes", "toy", "cub", "folder"])
def test_shipped_specs_are_supported(spec):
    assert unsupported(read_spec(spec)) == []


@pytest.mark.parametrize(
    ("spec", "override", "named"),
    [
        ("digits", "loss.name=facenet", "loss.name=facenet"),
        ("digits", "loss.m2=2", "loss.m2=2.0"),
        ("digits", "model.dropout=0.5", "model.dropout=0.5"),
        ("digits", "batch.sampler=random", "batch.sampler=random"),
        ("digits", "miner.name=semi_hard", "miner.name=semi_hard"),
        ("digits", "schedule.patience=3", "schedule.patience=3"),
        ("digits", "optimiser.clip_norm=1", "optimiser.clip_norm=1.0"),
        ("toy", "batch.samples=32", "393,216 triplets per batch"),
        ("toy", "loss.r=1", "loss.r=1.0"),
        ("glyphs", "seed=1", "data.name=glyphs"),
        ("cub", "model.embedding_start=pca", "model.embedding_start=pca"),
        ("toy", "loss.tcm=0.5", "loss.tcm=0.5"),
        ("cub", "loss.name=proxy_anchor", "loss.name=proxy_anchor"),
        ("cub", "loss.tcm=0.5", "loss.tcm=0.5"),
        ("folder", "data.views=2", "data.views=2"),
    ],
)
def test_unsupported_settings_are_named(spec, override, named):
    assert named in unsupported(read_spec(spec).with_overrides([override]))


def test_the_refusal_lists_what_is_supported(tmp_path):
    run = RunStore(tmp_path).create(read_spec("digits"))
    with pytest.raises(eject.EjectError, match=r"is not finished\. Supported are .*proxy_anchor"):
        eject.source(run)
    run = RunStore(tmp_path).create(read_spec("glyphs"))
    with pytest.raises(eject.EjectError, match=r"data\.name=glyphs.*does not fit into 200 lines.*\. Supported are"):
        eject.source(run)


def test_the_hyper_parameters_are_those_of_the_catalogue():
    for name, source in LOSSES.items():
        assert {*source.arguments, *source.fixed} == set(CATALOGUE[name].parameters)
