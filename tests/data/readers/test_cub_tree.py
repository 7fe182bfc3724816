import numpy as np

import dmlcore.data
from benchmarks import cub_tree
from dmlcore.data.readers.cub import read_table


def test_a_small_tree_under_official_names(pack, tmp_path):
    pack("cub-annotations.tar.gz")
    assert cub_tree.make(tmp_path, classes=8, each=6) == 48
    dataset = dmlcore.data.load("cub", root=tmp_path, validation="none")
    assert [len(dataset.splits[split]) for split in ("train", "test")] == [24, 24]
    assert dataset.class_names[0] == "Black footed Albatross"
    table = read_table(tmp_path / "CUB_200_2011")
    assert table.paths[0] == "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg"
    pixels = dataset.inputs[:].astype(float)
    assert (pixels.std(axis=(1, 2, 3)) > 10).all()


def test_images_are_drawn_by_class_and_reproducibly():
    first, again, other = (cub_tree.draw(number, 30, 32) for number in (3, 3, 4))
    assert np.array_equal(first, again)
    assert len(np.unique(first.reshape(30, -1), axis=0)) == 30
    means = [birds.mean(axis=0).ravel() for birds in (first[:15], first[15:], other[:15], other[15:])]
    within = np.linalg.norm(means[0] - means[1]) + np.linalg.norm(means[2] - means[3])
    between = np.linalg.norm(means[0] - means[2]) + np.linalg.norm(means[1] - means[3])
    assert between > 1.3 * within
