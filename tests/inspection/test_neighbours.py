"""Neighbours, scores and positives by their definitions; kept beside the embeddings, and never those of others."""

import numpy as np
import pytest

from dmlcore.inspection import neighbours
from dmlcore.metrics import retrieval


def written(path, *, classes=7, n=80, gallery=False, seed=0):
    random = np.random.default_rng(seed)
    labels = np.append(random.integers(0, classes, n - 1), classes)  # the last is alone in its class
    embeddings = (random.normal(size=(classes + 1, 5))[labels] + 1.5 * random.normal(size=(n, 5))).astype(np.float32)
    embeddings[10], embeddings[11] = embeddings[9], embeddings[9]  # copies, to be ordered by row
    more = {"is_gallery": random.random(n) < 0.5} if gallery else {}
    np.savez(path, embeddings=embeddings, labels=labels, indices=np.arange(n) * 3 + 1, **more)
    return path


def by_definition(found):
    """Of each row: all searched others by (distance, row), and their distances."""
    x = found.embeddings.astype(float)
    searched = found.is_gallery if found.is_gallery.any() else np.ones(len(x), bool)
    for row in range(len(x)):
        distance = np.linalg.norm(x - x[row], axis=1)
        order = np.lexsort((np.arange(len(x)), distance))
        order = order[searched[order] & (order != row)]
        yield row, order, distance[order]


@pytest.mark.parametrize("gallery", [False, True])
def test_positives_are_those_of_the_definition(tmp_path, gallery):
    found = neighbours.read(written(tmp_path / "a.npz", gallery=gallery, classes=25, n=200))
    beyond = 0
    for row, order, distance in by_definition(found):
        places = np.flatnonzero(found.labels[order] == found.labels[row])
        p = found.positives
        if not len(places):
            assert (p.nearest[row], p.farthest[row], p.rank[row]) == (-1, -1, 0)
            assert np.isnan([p.nearest_distance[row], p.farthest_distance[row]]).all()
            continue
        assert p.rank[row] == places[0] + 1
        assert p.nearest[row] == order[places[0]]
        assert p.nearest_distance[row] == pytest.approx(distance[places[0]], abs=1e-12)
        assert p.farthest_distance[row] == pytest.approx(distance[places[-1]], abs=1e-9)
        beyond += p.rank[row] > neighbours.MOST_NEIGHBOURS
    assert beyond > 10, "the counting beyond the kept neighbours was tried"


@pytest.mark.parametrize("classes", [4, 25])  # R beyond the kept neighbours, and within them
@pytest.mark.parametrize("gallery", [False, True])
def test_average_precision_is_that_of_the_metrics(tmp_path, classes, gallery):
    found = neighbours.read(written(tmp_path / "a.npz", gallery=gallery, classes=classes, n=200))
    q = ~found.is_gallery
    more = {"gallery": found.embeddings[~q], "gallery_labels": found.labels[~q]} if gallery else {}
    scores = retrieval(found.embeddings[q], found.labels[q], **more)
    np.testing.assert_allclose(found.average_precision[q], scores.per_query_average_precision, atol=1e-15)
    assert found.map_at_r == pytest.approx(scores.map_at_r)
    assert found.recall_at_1 == pytest.approx(scores.recall_at[1])


def test_what_is_kept_is_read_and_only_for_the_same_embeddings(tmp_path, monkeypatch):
    path = written(tmp_path / "a.npz")
    first = neighbours.read(path)
    assert neighbours.path_of(path).is_file()
    computed = neighbours._computed
    monkeypatch.setattr(neighbours, "_computed", lambda *_: pytest.fail("computed again"))
    again = neighbours.read(path)
    assert np.array_equal(again.neighbours, first.neighbours)
    assert np.array_equal(again.positives.rank, first.positives.rank)
    neighbours.keep(path)
    moved = tmp_path / "copy"
    moved.mkdir()
    for name in ("a.npz", "a.neighbours.npz"):
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert np.array_equal(neighbours.read(moved / "a.npz").neighbours, first.neighbours), "a copied run is warm"

    monkeypatch.setattr(neighbours, "_computed", computed)
    written(path, seed=1)
    other = neighbours.read(path)
    assert not np.array_equal(other.neighbours, first.neighbours)
    for row, order, _ in by_definition(other):
        assert np.array_equal(other.neighbours[row], order[: other.neighbours.shape[1]])


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut", b"x" * 1000])
def test_a_damaged_kept_file_is_made_anew(tmp_path, damage):
    path = written(tmp_path / "a.npz")
    first = neighbours.read(path)
    neighbours.path_of(path).write_bytes(damage)
    assert np.array_equal(neighbours.read(path).neighbours, first.neighbours)
    with np.load(neighbours.path_of(path)) as file:
        assert str(file["source"]) == neighbours.fingerprint(path)


def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(tmp_path, monkeypatch):
    path = written(tmp_path / "a.npz")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(neighbours.atomic_files, "replace", full)
    assert len(neighbours.read(path).labels) == 80
    assert not neighbours.path_of(path).exists()


def test_damaged_embeddings_are_named(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(neighbours.Unreadable, match=r"a\.npz cannot be read"):
        neighbours.read(path)
    np.savez(path, embeddings=np.full((3, 2), np.nan), labels=[0, 0, 1], indices=[0, 1, 2])
    with pytest.raises(neighbours.Unreadable, match="must hold numbers"):
        neighbours.read(path)
