"""A column is guessed as the labels only if exactly one looks like labels."""

import numpy as np
import pyarrow as pa
import pytest

from dmlcore.data.embedding_sets.label_guess import describe_guess, guess_label
from dmlcore.data.embedding_sets.roles import Roles

ROWS = 12
NAMES = [f"bird {row % 3}" for row in range(ROWS)]
UNIQUE = [f"file {row}.jpg" for row in range(ROWS)]
NUMBERS = [row % 4 for row in range(ROWS)]


@pytest.mark.parametrize(
    ("columns", "label"),
    [
        ({"Species": NAMES, "time": ["day", "night"] * 6}, "Species"),
        ({"product_id": NUMBERS, "price": NUMBERS}, "product_id"),
        ({"identity": NUMBERS}, "identity"),
        ({"model": pa.array(NAMES).dictionary_encode(), "note": UNIQUE}, "model"),
        ({"Vogelart": NAMES, "note": UNIQUE, "count": NUMBERS}, "Vogelart"),
        ({"make": NAMES, "model": NAMES}, None),  # two candidates
        ({"first": NAMES, "second": NAMES}, None),
        ({"species": UNIQUE}, None),  # no value repeats
        ({"species": ["one"] * ROWS}, None),
        ({"species": [None, *NAMES[1:]]}, None),
        ({"species": ["  ", *NAMES[1:]]}, None),
        ({"species": [float(number) for number in NUMBERS]}, None),
        ({"count": NUMBERS}, None),  # a number without the name of a class
        ({}, None),
    ],
)
def test_the_only_candidate_is_guessed(columns: dict, label: str | None) -> None:
    assert guess_label(pa.table(columns), ()) == label


def test_columns_with_another_role_are_no_candidates() -> None:
    assert guess_label(pa.table({"species": NAMES, "other": NAMES}), ["species"]) == "other"
    found = Roles.guess(pa.table({"split": ["train", "test"] * 6, "species": NAMES}))
    assert found == Roles(label="species", split="split")


def test_a_usual_name_is_preferred_and_needs_no_note() -> None:
    columns = pa.table({"species": NAMES, "label": NAMES})
    roles = Roles.guess(columns)
    assert roles.label == "label"
    assert roles.guess_notes(columns) == ()


def test_a_guess_comes_with_a_note() -> None:
    columns = pa.table({"species": NAMES})
    note = "labels: column 'species' was guessed, because its 3 values repeat"
    assert Roles.guess(columns).guess_notes(columns) == (note,)
    assert describe_guess(columns, "species") == note


def test_many_columns_are_not_all_examined() -> None:
    columns = {f"c{number}": np.arange(ROWS) for number in range(300)}
    assert guess_label(pa.table(columns | {"species": NAMES}), ()) is None
