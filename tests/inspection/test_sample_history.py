"""The history of every sample: results of each evaluation by step, without other samples."""

import numpy as np

from dmlcore.inspection.neighbours import read
from dmlcore.inspection.sample_history import sample_history


def evaluated(folder, step, indices):
    """Return an evaluation of random embeddings of these samples."""
    random = np.random.default_rng(step)
    path = folder / f"{step}.npz"
    labels = np.arange(len(indices)) % 3
    np.savez(path, embeddings=random.normal(size=(len(indices), 4)).astype("f4"), labels=labels, indices=indices)
    return step, read(path)


def test_every_step_says_what_it_found(tmp_path):
    indices = np.arange(10, 40)
    found = [evaluated(tmp_path, step, indices) for step in (8, 0, 4)]
    history = sample_history(found)
    assert history.steps.tolist() == [0, 4, 8]
    for row, (_, known) in enumerate(sorted(found, key=lambda each: each[0])):
        assert (history.nearest[row] == known.indices[known.neighbours[:, 0]]).all()
        assert (history.right[row] == (known.labels[history.nearest[row] - 10] == known.labels)).all()
        assert (history.rank[row][history.right[row]] == 1).all()
        assert (history.distance[row] == known.distances[:, 0]).all()


def test_other_samples_are_left_out_and_none_have_no_history(tmp_path):
    first = evaluated(tmp_path, 0, np.arange(10))
    other = evaluated(tmp_path, 4, np.arange(1, 11))
    assert sample_history([first, other]).steps.tolist() == [0]
    assert sample_history([]) is None
