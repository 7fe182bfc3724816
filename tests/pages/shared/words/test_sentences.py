"""Texts of the pages for terms of the library: labels, names of runs, one sentence per fault."""

from __future__ import annotations

import pytest

from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.storage.runs import Run
from pages.shared.words import sentences as words
from pages.shared.words.labels import LABELS
from tests.members import in_one_case
from tests.wording import says


def test_every_key_has_a_label_of_its_own() -> None:
    assert LABELS.keys() == keys().keys()
    assert len(set(LABELS.values())) == len(LABELS)


def test_a_fault_is_one_sentence_by_its_label() -> None:
    given = {"model": {"hidden": [128, "foo"]}, "schedule": {"steps": 0}, "data": {"folds": 1}}
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(given)
    found = {fault.partition(": ")[0]: fault for fault in words.faults(refused.value)}
    assert says(found["Hidden layers"], "foo", "whole number")
    assert says(found["Steps"], "1", "0")
    assert says(found["Class folds"], "2 or more")
    with pytest.raises(SpecError) as refused:
        RunSpec.parse({"schedule": {"patience": 3}, "data": {"validation": "none"}})
    assert says(*words.faults(refused.value), "Patience", "“Validation split”", "none")


def test_a_run_is_called_by_its_name_and_time_even_when_it_is_gone(run: Run) -> None:
    assert words.plain(f"forked from {run.id}") == f"Forked from “{words.called(run)}”"
    assert words.called(run).startswith("Digits · Ranking · ")
    gone = "20261122-1159-digits-distance-sensitive-9aac"
    told = words.plain(f"{gone} is at work")
    assert gone not in told
    assert says(told, "22 Nov, 11:59 UTC", "no longer here", "is at work")
    kept = f"cannot be read: /runs/{gone}/state.json"
    assert words.plain(kept) == f"C{kept[1:]}"  # paths are shown unchanged


@in_one_case(
    case=[
        ("x.npz cannot be read. Run python -m dmlcore evaluate RUN", "X.npz cannot be read. Evaluate the run again"),
        ("as it was, or go on in a fork: python -m dmlcore fork RUN --step 40", "As it was, or go on in a fork"),
    ]
)
def test_a_command_becomes_what_the_page_offers(case: tuple[str, str]) -> None:
    text, said = case
    assert words.plain(text) == said


def test_changes_are_told_by_labels_and_titles() -> None:
    overrides = ["loss.name=multi_similarity", "loss.alpha=3", "schedule.steps=1000", "data.augment=false"]
    assert words.changes(RunSpec(), RunSpec().with_overrides(overrides)) == [
        "Random flips and crops: on → off",
        "Loss: Ranking → Multi-similarity",
        "Multi-similarity, steepness of the pull: 3",
        "Steps: 400 → 1,000",
    ]
    labelled = "Loss parameters, Loss, Classes left out of training"
    assert words.labels(["loss.parameters.m", "loss.name", "fork.leave_out"]) == labelled
