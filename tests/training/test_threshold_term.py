"""Runs with the threshold-consistent margin as a term: recorded values, resumed runs, forks and specs without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore, series
from dmlcore.training.forks import fork_spec
from tests.training.resumed import same_to_the_bit, trained

SPEC = RunSpec().with_overrides(
    [
        *("data.name=toy", "model.hidden=[16]", "model.embedding_dim=4", "loss.name=contrastive", "loss.tcm=0.5"),
        *("batch.classes=4", "batch.samples=4", "schedule.steps=30", "schedule.validate_every=15"),
        *("schedule.checkpoint_every=5", "schedule.keep_every=10"),
    ]
)


def terms(run: Run) -> tuple[list[int], list[float]]:
    return series(run.metrics()[0], "step", "tcm")


def test_a_run_records_the_value_of_the_term(tmp_path: Path) -> None:
    runs = {weight: trained(RunStore(tmp_path), SPEC.with_overrides([f"loss.tcm={weight}"])) for weight in (0, 0.5)}
    steps, values = terms(runs[0.5])
    assert steps == list(range(1, 31))
    assert min(values) > 0
    assert terms(runs[0]) == ([], [])
    bare, both = (series(run.metrics()[0], "step", "loss")[1][0] for run in runs.values())
    assert both == pytest.approx(bare + 0.5 * values[0], rel=1e-6)  # the first step has the same weights and batch


def test_with_a_loss_without_force_the_term_trains_like_the_loss_alone(tmp_path: Path) -> None:
    margins = ("loss.m_pos=0.8", "loss.m_neg=0.3")
    alone = SPEC.with_overrides(["loss.name=threshold_consistent_margin", *margins, "loss.tcm=0"])
    idle = ("loss.m_pos=2", "loss.m_neg=0.01")  # no distance on the sphere exceeds 2
    term = SPEC.with_overrides([*idle, "loss.tcm=1", "loss.tcm_m_pos=0.8", "loss.tcm_m_neg=0.3"])
    one, two = (trained(RunStore(tmp_path), spec) for spec in (alone, term))
    expected = series(one.metrics()[0], "step", "loss")
    assert series(two.metrics()[0], "step", "loss") == terms(two) == expected
    assert len(set(expected[1])) == 30


@pytest.mark.parametrize("stops", [(1,), (7, 22)])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, stops: tuple[int, ...]) -> None:
    whole, stopped = (RunStore(tmp_path / name) for name in ("whole", "stopped"))
    run = trained(whole, SPEC)
    same_to_the_bit(run, trained(stopped, SPEC, stops=stops))
    assert len(terms(run)[0]) == 30


def test_a_fork_can_add_the_term(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, SPEC.with_overrides(["loss.tcm=0"]))
    fork = trained(store, fork_spec.create(parent, 10, ["loss.tcm=0.5", "loss.tcm_m_neg=0.2"]))
    assert terms(fork)[0] == list(range(11, 31))


def test_specs_without_the_term_keep_their_digest() -> None:
    """The digest is that of a release without the keys of the term."""
    stored = '{"loss":{"name":"contrastive","parameters":{"m_neg":1.0}},"seed":1}'
    spec = RunSpec.from_json(stored)
    assert spec.digest() == "917276b4907c70f54191d460a82d6b91c555c7461d18558c385e9d58a867ac39"
    assert {spec.with_overrides([change]).digest() for change in ("loss.tcm=0", "loss.tcm_m_pos=0.9")} == {
        spec.digest()
    }
    changes = ("loss.tcm=0.1", "loss.tcm_m_pos=0.8", "loss.tcm_m_neg=0.4")
    assert len({spec.with_overrides([change]).digest() for change in changes} | {spec.digest()}) == 4
