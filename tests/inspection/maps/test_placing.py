"""Large data sets: a class-balanced sample is mapped, and the other points are placed near their neighbours."""

import numpy as np
import pytest

from dmlcore.inspection.maps import maps, placing
from dmlcore.inspection.maps.settings import Settings
from dmlcore.spec import RunSpec
from dmlcore.storage import arrays
from dmlcore.storage.runs import RunStore


def test_a_sample_takes_as_many_of_each_class_as_there_are():
    labels = np.random.default_rng(0).permutation(np.repeat([3, 5, 9, 11], [1000, 7, 300, 30]))
    rows = placing.draw_balanced(labels, 100)
    assert len(np.unique(rows)) == 100
    assert (np.diff(rows) > 0).all()
    counts = dict(zip(*np.unique(labels[rows], return_counts=True), strict=True))
    assert counts[5] == 7, "the whole smallest class"
    assert {counts[3], counts[9], counts[11]} == {31} or sorted((counts[3], counts[9], counts[11])) == [30, 31, 32]
    assert not np.array_equal(rows, placing.draw_balanced(labels, 100, seed=1))
    assert len(placing.draw_balanced(labels, 5000)) == len(labels)


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_the_map_of_very_many_says_what_it_is_of(tmp_path, monkeypatch, method):
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 150)
    x = (6 * random.normal(size=(8, 6))[labels] + random.normal(size=(1200, 6))).astype(np.float32)
    run = RunStore(tmp_path).create(RunSpec())
    source = run.path / "embeddings" / "a.npz"
    with source.open("wb") as file:
        arrays.save(file, embeddings=x, labels=labels, indices=np.arange(1200))
    for name, value in (("MOST_MAPPED", 1000), ("SAMPLE", 240), ("PART", 500), ("AMONG", 600)):
        monkeypatch.setattr(placing, name, value)
    told = []
    made = maps.read(maps.make(run, Settings(method, iterations=250), lambda done, words: told.append((done, words))))
    assert made.points.shape == (1200, 2)
    assert made.drawn == 240
    assert "240 samples balanced over the classes were mapped; 960 were placed" in made.words
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert any("placing 960 points among 240" in words for _, words in told)
    assert made.quality.among == 600
    assert made.quality.points == 1200
    assert "among 600 that were placed" in made.quality.words
    centres = np.stack([made.points[labels == label].mean(axis=0) for label in range(8)])
    nearest = np.linalg.norm(made.points[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > (0.95 if method == "tsne" else 0.5), "placed points are among their class"
    sample = placing.draw_balanced(labels, 240, 0)
    own = maps.place(made, x[sample[:5]])
    np.testing.assert_allclose(own, made.points[sample[:5]], atol=1e-4)
