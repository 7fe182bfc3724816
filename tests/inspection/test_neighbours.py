"""Neighbours, scores and positives by definition, stored next to the embeddings and never reused for others."""

import mmap

import numpy as np
import pytest

from dmlcore.inspection import neighbour_lists, neighbours, queries
from dmlcore.metrics import mapped, retrieval
from dmlcore.storage import arrays


def write_embeddings(path, *, classes=7, n=80, gallery=False, seed=0):
    random = np.random.default_rng(seed)
    labels = np.append(random.integers(0, classes, n - 1), classes)  # the last sample is alone in its class
    embeddings = (random.normal(size=(classes + 1, 5))[labels] + 1.5 * random.normal(size=(n, 5))).astype(np.float32)
    embeddings[10], embeddings[11] = embeddings[9], embeddings[9]  # duplicates, to be ordered by row
    more = {"is_gallery": random.random(n) < 0.5} if gallery else {}
    np.savez(path, embeddings=embeddings, labels=labels, indices=np.arange(n) * 3 + 1, **more)
    return path


def by_definition(found):
    """Yield for each row all searched others by (distance, row), and their distances."""
    x = found.embeddings.astype(float)
    searched = found.is_gallery if found.is_gallery.any() else np.ones(len(x), bool)
    for row in range(len(x)):
        distance = np.linalg.norm(x - x[row], axis=1)
        order = np.lexsort((np.arange(len(x)), distance))
        order = order[searched[order] & (order != row)]
        yield row, order, distance[order]


@pytest.mark.parametrize("gallery", [False, True])
def test_positives_are_those_of_the_definition(tmp_path, gallery):
    found = neighbours.read(write_embeddings(tmp_path / "a.npz", gallery=gallery, classes=25, n=200))
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
    assert beyond > 10, "counting beyond the stored neighbours was tested"


@pytest.mark.parametrize("classes", [4, 25])  # R larger and smaller than the number of stored neighbours
@pytest.mark.parametrize("gallery", [False, True])
def test_average_precision_is_that_of_the_metrics(tmp_path, classes, gallery):
    found = neighbours.read(write_embeddings(tmp_path / "a.npz", gallery=gallery, classes=classes, n=200))
    q = ~found.is_gallery
    more = {"gallery": found.embeddings[~q], "gallery_labels": found.labels[~q]} if gallery else {}
    scores = retrieval(found.embeddings[q], found.labels[q], **more)
    np.testing.assert_allclose(found.average_precision[q], scores.per_query_average_precision, atol=1e-15)
    assert found.map_at_r == pytest.approx(scores.map_at_r)
    assert found.recall_at_1 == pytest.approx(scores.recall_at[1])


def test_what_is_kept_is_read_and_only_for_the_same_embeddings(tmp_path, monkeypatch):
    path = write_embeddings(tmp_path / "a.npz")
    first = neighbours.read(path)
    assert neighbours.path_of(path).is_file()
    computed = neighbours._compute
    monkeypatch.setattr(neighbours, "_compute", lambda *_: pytest.fail("computed again"))
    again = neighbours.read(path)
    assert np.array_equal(again.neighbours, first.neighbours)
    assert np.array_equal(again.positives.rank, first.positives.rank)
    neighbours.keep(path)
    moved = tmp_path / "copy"
    moved.mkdir()
    for name in ("a.npz", "a.neighbours.npz"):
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert np.array_equal(neighbours.read(moved / "a.npz").neighbours, first.neighbours), "a copied run keeps its cache"

    monkeypatch.setattr(neighbours, "_compute", computed)
    write_embeddings(path, seed=1)
    other = neighbours.read(path)
    assert not np.array_equal(other.neighbours, first.neighbours)
    for row, order, _ in by_definition(other):
        assert np.array_equal(other.neighbours[row], order[: other.neighbours.shape[1]])


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut", b"x" * 1000])
def test_a_damaged_kept_file_is_made_anew(tmp_path, damage):
    path = write_embeddings(tmp_path / "a.npz")
    first = neighbours.read(path)
    neighbours.path_of(path).write_bytes(damage)
    assert np.array_equal(neighbours.read(path).neighbours, first.neighbours)
    with np.load(neighbours.path_of(path)) as file:
        assert str(file["source"]) == neighbours.fingerprint(path)


def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(tmp_path, monkeypatch):
    path = write_embeddings(tmp_path / "a.npz")

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
    with pytest.raises(neighbours.Unreadable, match="must contain numbers"):
        neighbours.read(path)


@pytest.mark.parametrize("gallery", [False, True])
def test_of_many_a_sample_is_asked_and_the_others_when_they_are_shown(tmp_path, monkeypatch, gallery):
    path = write_embeddings(tmp_path / "a.npz", gallery=gallery, classes=25, n=200)
    whole = neighbours.read(path)
    neighbours.path_of(path).unlink()
    monkeypatch.setattr(neighbour_lists, "MOST_PAIRS", 10_000)
    monkeypatch.setattr(neighbour_lists, "SAMPLE", 40)
    monkeypatch.setattr(neighbour_lists, "ENTRIES", 200)  # several chunks
    monkeypatch.setattr(mapped, "PART", 64)
    found = neighbours.read(path)
    assert found.is_sample
    assert found.queries.sum() == 40
    assert not (found.queries & found.is_gallery).any()
    scored = found.queries & ~np.isnan(whole.average_precision)
    assert found.map_at_r == pytest.approx(whole.average_precision[scored].mean())
    assert found.recall_at_1 == pytest.approx(whole.right[scored, 0].mean())
    assert found.interval(found.average_precision) == pytest.approx(
        1.96 * whole.average_precision[scored].std() / scored.sum() ** 0.5
    )
    others = np.flatnonzero(~found.queries)
    assert (found.neighbours[others] == -1).all()
    assert not found.right[others].any()
    failures = found.failures.copy()
    found.search_rows(others[::-1])
    assert (found.failures == failures).all(), "previews must not affect the scores"
    again = neighbours.read(path)
    assert again.queries.sum() == 40, "the sample must be stored"
    for each in (found, again):
        rows = each.neighbours[:, 0] >= 0
        np.testing.assert_array_equal(each.neighbours[rows], whole.neighbours[rows])
        np.testing.assert_allclose(each.distances[rows], whole.distances[rows], rtol=1e-6)
        np.testing.assert_allclose(each.average_precision[rows], whole.average_precision[rows], atol=1e-12)
        np.testing.assert_array_equal(each.positives.rank[rows], whole.positives.rank[rows])
        np.testing.assert_array_equal(each.positives.nearest[rows], whole.positives.nearest[rows])
        np.testing.assert_array_equal(each.positives.farthest[rows], whole.positives.farthest[rows])
    worst = queries.select(again)
    assert again.queries[worst].all()
    assert len(queries.select(again, "by index")) == (~again.is_gallery).sum()


def test_twenty_thousand_are_open_without_all_pairs(tmp_path, monkeypatch):
    random = np.random.default_rng(3)
    labels = np.repeat(np.arange(400), 50)
    embeddings = (random.normal(size=(400, 32))[labels] + random.normal(size=(20_000, 32))).astype(np.float32)
    np.savez(tmp_path / "a.npz", embeddings=embeddings, labels=labels, indices=np.arange(20_000))
    monkeypatch.setattr(neighbour_lists, "MOST_PAIRS", 20_000 * 1000)
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", 2**20)
    compared = []
    search = mapped.faiss.knn
    monkeypatch.setattr(mapped.faiss, "knn", lambda q, g, k: compared.append(len(q) * len(g)) or search(q, g, k))
    found = neighbours.read(tmp_path / "a.npz")
    assert sum(compared) == 1000 * 20_000, "a thousand queries instead of all"
    base = found.embeddings
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)
    row = int(np.flatnonzero(~found.queries)[0])
    found.search_rows([row])
    distance = np.linalg.norm(embeddings.astype(float) - embeddings[row], axis=1)
    order = np.lexsort((np.arange(20_000), distance))
    assert found.neighbours[row].tolist() == [other for other in order.tolist() if other != row][:24]
