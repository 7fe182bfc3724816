"""The weights of a pooling over positions: their share on the foreground, and the stored file of a run."""

import numpy as np
import pytest

from dmlcore.inspection.local import weight_maps
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training.loop import train
from tests.members import in_one_case


def test_the_share_of_a_tile_is_the_sum_over_its_quarter():
    random = np.random.default_rng(0)
    weights = random.random((4, 6, 8))
    weights /= weights.sum((1, 2), keepdims=True)
    quarters = [weights[0, :3, :4], weights[1, :3, 4:], weights[2, 3:, :4], weights[3, 3:, 4:]]
    share = weight_maps.foreground_share(weights, np.eye(4, dtype=bool))
    assert share == pytest.approx([quarter.sum() for quarter in quarters], rel=1e-6)


@in_one_case(grid=[2, 3], side=[1, 4, 6, 7])
def test_averaging_has_the_share_of_the_tiles_even_where_they_cut_a_position(grid, side):
    tiles = grid * grid
    shows = np.concatenate([np.eye(tiles, dtype=bool), np.ones((1, tiles), bool)])
    even = np.full((tiles + 1, side, side), 1 / side**2)
    assert weight_maps.foreground_share(even, shows) == pytest.approx([1 / tiles] * tiles + [1], rel=1e-6)
    corner = np.zeros((tiles, side, side))
    corner[:, -1, -1] = 1  # all weight on the last tile
    share = weight_maps.foreground_share(corner, shows[:-1])
    assert share[-1] == pytest.approx(1 if side >= grid else 1 / tiles)
    assert share.sum() == pytest.approx(1)


def test_a_run_on_images_gets_its_maps_and_a_damaged_file_says_so(tmp_path):
    spec = RunSpec().with_overrides(
        [
            "data.name=digits_pictures",
            "model.name=conv4_32",
            "model.embedding_dim=8",
            "schedule.steps=1",
            "batch.classes=2",
            "batch.samples=2",
        ]
    )
    run = RunStore(tmp_path).create(spec)
    with pytest.raises(RunError, match="not been evaluated"):
        weight_maps.write(run)
    with run.lock():
        train(run)
    assert weight_maps.path_of(run) is None
    found = weight_maps.read(weight_maps.write(run))
    with np.load(run.embeddings()) as learned:
        assert (found.indices == learned["indices"]).all()
    assert found.weights.shape[1] == found.weights.shape[2] > 1
    assert found.weights.sum((1, 2)) == pytest.approx(1, abs=2e-2)  # stored in half precision
    assert np.isnan(found.foreground).all()
    path = weight_maps.path_of(run)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(RunError, match="compute the weights again"):
        weight_maps.read(path)


def test_vectors_have_no_maps(tmp_path):
    run = RunStore(tmp_path).create(RunSpec().with_overrides(["schedule.steps=1", "model.hidden=[4]"]))
    with run.lock():
        train(run)
    with pytest.raises(RunError, match="not trained on images"):
        weight_maps.write(run)
