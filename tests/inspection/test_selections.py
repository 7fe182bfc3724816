"""Selections are stored, equal ones share one id, and only a valid id opens a file."""

import numpy as np
import pytest

from dmlcore.inspection import selections
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore


@pytest.fixture
def run(tmp_path):
    return RunStore(tmp_path).create(RunSpec())


def test_a_selection_is_found_again_by_its_id(run):
    kept = selections.save(run, [7, 3, 3], "lasso <b>on</b> the map")
    found = selections.load(run, kept.id)
    assert found.indices.tolist() == [3, 7]
    assert found.origin == "lasso <b>on</b> the map"
    assert selections.save(run, [3, 7], "lasso <b>on</b> the map").id == kept.id


@pytest.mark.parametrize("indices", [[], [-1], [0.5], ["a"]])
def test_what_are_no_samples_is_refused(run, indices):
    with pytest.raises(ValueError, match="indices must be"):
        selections.save(run, indices, "x")


@pytest.mark.parametrize("name", ["", "0" * 16, "../../spec", "g" * 16])
def test_an_unknown_or_foreign_id_is_none(run, name):
    assert selections.load(run, name) is None


def test_a_damaged_file_is_none(run):
    kept = selections.save(run, [1], "x")
    (run.path / "selections" / f"{kept.id}.json").write_text('{"indices": [1')
    assert selections.load(run, kept.id) is None


def test_only_the_newest_are_kept(run, monkeypatch):
    monkeypatch.setattr(selections, "MOST_KEPT", 2)
    first, *_, last = (selections.save(run, [n], "x") for n in range(4))
    assert selections.load(run, first.id) is None
    assert np.array_equal(selections.load(run, last.id).indices, [3])


def test_the_newest_selection_that_can_be_read(run):
    assert selections.newest(run) is None
    kept = [selections.save(run, [n], "x") for n in range(3)]
    assert selections.newest(run).id == kept[2].id
    selections.save(run, [0], "x")
    assert selections.newest(run).id == kept[0].id
    (run.path / "selections" / f"{kept[0].id}.json").write_text("{")
    assert selections.newest(run).id == kept[2].id
