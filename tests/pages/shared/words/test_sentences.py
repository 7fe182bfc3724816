"""Texts of the pages for terms of the library: labels, names of runs, one sentence per fault."""

from __future__ import annotations

import pytest

from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.storage.runs import Run
from pages.shared.words import sentences as words
from pages.shared.words.labels import LABELS
from tests.wording import says


def test_every_key_has_a_label_of_its_own() -> None:
    assert LABELS.keys() == keys().keys()
    assert len(set(LABELS.values())) == len(LABELS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": {"hidden": [128, "foo"]}}, ["Hidden layers: 'foo' is not a whole number"]),
        ({"ks": ["x"]}, ["K of R@K: 'x' is not a whole number"]),
        (
            {"schedule": {"steps": 0}, "seed": -1},
            ["Seed: must be at least 0, got -1", "Steps: must be at least 1, got 0"],
        ),
        (
            {"data": {"folds": 1}},
            ["Class folds: one fold would validate on all classes; use 2 or more, or 0 for the last quarter"],
        ),
        (
            {"schedule": {"patience": 3}, "data": {"validation": "none"}},
            ['Patience: needs a validation split, but “Validation split” is "none"'],
        ),
    ],
)
def test_a_fault_is_one_sentence_by_its_label(given: dict[str, object], said: list[str]) -> None:
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(given)
    assert words.faults(refused.value) == said


def test_a_run_is_called_by_its_name_and_time_even_when_it_is_gone(run: Run) -> None:
    assert words.plain(f"forked from {run.id}") == f"Forked from “{words.called(run)}”"
    assert words.called(run).startswith("Digits · Ranking · ")
    gone = "20261122-1159-digits-distance-sensitive-9aac"
    told = words.plain(f"{gone} is at work")
    assert gone not in told
    assert says(told, "22 Nov, 11:59 UTC", "no longer here", "is at work")
    kept = f"cannot be read: /runs/{gone}/state.json"
    assert words.plain(kept) == f"C{kept[1:]}"  # paths are shown unchanged


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no embeddings yet: python -m dmlcore evaluate RUN", "No embeddings yet; evaluate the run again"),
        ("trained on since; run: python -m dmlcore evaluate RUN", "Trained on since; evaluate the run again"),
        ("x.npz cannot be read. Run python -m dmlcore evaluate RUN", "X.npz cannot be read. Evaluate the run again"),
        ("as it was, or go on in a fork: python -m dmlcore fork RUN --step 40", "As it was, or go on in a fork"),
    ],
)
def test_a_command_becomes_what_the_page_offers(text: str, said: str) -> None:
    assert words.plain(text) == said


CHANGES = ["loss.name=multi_similarity", "loss.alpha=3", "schedule.steps=1000", "data.augment=false"]


def test_changes_are_told_by_labels_and_titles() -> None:
    before = RunSpec()
    after = before.with_overrides(CHANGES)
    assert words.changes(before, after) == [
        "Random flips and crops: on → off",
        "Loss: Ranking → Multi-similarity",
        "Multi-similarity, steepness of the pull: 3",
        "Steps: 400 → 1,000",
    ]
    assert words.labels(["loss.parameters.m", "loss.name", "fork.leave_out"]) == (
        "Loss parameters, Loss, Classes left out of training"
    )
