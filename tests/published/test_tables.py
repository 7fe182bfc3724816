"""Contract of every published table; no table is named here."""

from __future__ import annotations

import itertools
import re

import pytest

from dmlcore import losses
from dmlcore.experiments import protocols
from dmlcore.published import collection, table_reader

TABLES = [(letter, number) for letter in table_reader.sources() for number in table_reader.files(letter)]
every = pytest.mark.parametrize(("letter", "number"), TABLES, ids=["-".join(table) for table in TABLES])


@every
def test_it_is_shown_found_and_of_a_known_protocol(letter, number):
    file = table_reader.files(letter)[number]
    (table,) = (t for t in collection.collection() if (t.source, t.number) == (letter, number))
    assert file.caption
    assert collection.table(table.key) is table
    assert len(table.rows) == len(file.rows)
    assert not table.protocol or table.protocol in protocols.names()
    for row in table.rows:
        assert (table, row) in collection.search(row.method, source=letter)


@every
def test_scores_are_per_cent_and_no_rank_finds_less_than_the_one_before(letter, number):
    file = table_reader.files(letter)[number]
    ranks = [(int(name[2:]), at) for at, name in enumerate(file.columns) if re.fullmatch(r"R@\d+", name)]
    for row in file.rows:
        printed = [row.values[at] for _, at in sorted(ranks) if isinstance(row.values[at], (int, float))]
        assert all(0 <= value <= 100 for value in printed)
        ascending = all(less <= more for less, more in itertools.pairwise(printed))
        assert ascending or any(row.method in note and "impossible" in note for note in file.notes), row


@every
def test_a_row_that_names_a_loss_has_hyper_parameters_of_it(letter, number):
    for row in table_reader.files(letter)[number].rows:
        if row.loss in losses.LOSSES and not row.quoted_from:
            losses.describe(row.loss).resolve(row.numbers)
        assert row.method or row.loss
        assert not row.quoted_from or row.quoted_from in table_reader.files(letter)
