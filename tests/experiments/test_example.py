"""The shipped example run: complete, readable by the current code, in no list, and absent after deletion."""

import hashlib
import os
import tomllib

import numpy as np
import pytest

from dmlcore.data.identities import identities
from dmlcore.experiments import example
from dmlcore.inspection import neighbours, snapshots
from dmlcore.inspection.index import Index
from dmlcore.inspection.local import weight_maps
from dmlcore.inspection.maps import maps, trajectory
from dmlcore.inspection.maps.settings import Settings
from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import EXAMPLE, RunStore, scores
from dmlcore.training.build import load_data


def test_the_archive_is_the_one_that_was_packed_and_small():
    content = example.ARCHIVE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == example.DIGEST.read_text().split()[0]
    assert len(content) <= example.LARGEST


def test_the_code_of_today_reads_it_and_embeds_as_it_did(store):
    run = example.find(store)
    assert run.status() == "done"
    # otherwise train the example again
    assert run.spec == RunSpec.parse(tomllib.loads((SPECS / f"{example.SPEC}.toml").read_text()))
    data = load_data(run.spec)
    found = neighbours.read(run.embeddings())
    kept = np.load(run.embeddings())
    assert np.array_equal(kept["content"], identities(data, kept["indices"]))
    assert np.nanmean(found.average_precision) == pytest.approx(
        scores(run.metrics()[0])["trained"]["map_at_r"], abs=1e-3
    )
    assert scores(run.metrics()[0])["trained"]["map_at_r"] > 3 * scores(run.metrics()[0])["untrained"]["map_at_r"]
    index = Index.of_run(run)
    again = index.embed(data.inputs[kept["indices"][:64]])
    np.testing.assert_allclose(again, kept["embeddings"][:64], atol=1e-4)


def test_it_holds_what_the_pages_show(store):
    run = example.find(store)
    known = snapshots.snapshots(run)
    assert len(known) >= 2
    assert all(snapshot.embeddings for snapshot in known)
    assert checkpoint.load(run.path).facts["step"] == known[-1].step == run.spec.schedule.steps
    assert weight_maps.read(weight_maps.path_of(run)).weights.shape[1:] == (3, 3)
    assert len(maps.read(run.projection()).points) == 2_400
    assert trajectory.find(run, Settings(seed=run.spec.seed)) is not None


def test_no_list_holds_it_and_its_name_opens_it(store):
    assert store.list() == []
    run = example.find(store)
    assert run.is_example
    assert (store.list(), store.count(), store.unreadable()) == ([], 0, [])
    assert store.find(lambda name, brief: True, state=("done",)) == []
    assert store.open(EXAMPLE).spec == run.spec
    mine = store.create(RunSpec())
    assert [found.id for found in store.list()] == [mine.id]
    assert not mine.is_example


def test_once_deleted_it_stays_away_until_it_is_brought_back(store):
    run = example.find(store)
    (run.path / "mine.txt").write_text("made here")
    run.delete()
    assert example.find(store) is None
    assert example.was_removed(store)
    back = example.restore(store)
    assert back.status() == "done"
    assert not (back.path / "mine.txt").exists()
    assert not example.was_removed(store)


def test_a_store_that_cannot_be_written_has_none(tmp_path):
    (tmp_path / "file").touch()
    assert example.find(RunStore(tmp_path / "file" / "runs")) is None


def test_a_damaged_archive_is_refused_and_leaves_nothing(store, tmp_path, monkeypatch):
    damaged = tmp_path / "example.zip"
    damaged.write_bytes(example.ARCHIVE.read_bytes()[:-1])
    monkeypatch.setattr(example, "ARCHIVE", damaged)
    assert example.find(store) is None
    assert os.listdir(store.root) == []
