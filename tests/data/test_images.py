import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError, images

STRIPES = np.repeat(np.array([[250, 0, 0], [0, 250, 0], [0, 0, 250], [90, 90, 90]], np.uint8), 10, axis=0)


@pytest.fixture
def folder(tmp_path):
    for number in range(5):
        Image.new("RGB", (30, 20), (number * 50, 10, 200)).save(tmp_path / f"{number}.png")
    return tmp_path


def test_square_keeps_the_centre_and_the_colour_order(tmp_path):
    wide = np.broadcast_to(STRIPES, (20, 40, 3))  # four stripes of 10 columns; the centre 20 hold green and blue
    Image.fromarray(wide).save(tmp_path / "wide.png")
    pixels = images.square(tmp_path / "wide.png", 20)
    assert pixels.shape == (3, 20, 20)
    assert pixels[:, 10, 4].tolist() == [0, 250, 0]
    assert pixels[:, 10, 15].tolist() == [0, 0, 250]


def test_square_resizes_the_shorter_side(tmp_path):
    Image.fromarray(np.broadcast_to(STRIPES, (80, 40, 3))).save(tmp_path / "tall.png")
    pixels = images.square(tmp_path / "tall.png", 20)
    assert pixels.shape == (3, 20, 20)
    assert pixels[:, 10, [2, 7, 12, 17]].T.tolist() == [[250, 0, 0], [0, 250, 0], [0, 0, 250], [90, 90, 90]]


def test_a_thumbnail_is_whole_and_bounded_and_never_enlarged(tmp_path):
    Image.new("RGB", (400, 200)).save(tmp_path / "large.jpg")
    assert images.thumbnail(tmp_path / "large.jpg", 100).shape == (50, 100, 3)
    assert images.thumbnail(tmp_path / "large.jpg", 1000).shape == (200, 400, 3)


def test_lazy_pictures_index_like_an_array(folder):
    paths = sorted(folder.iterdir())
    lazy = images.LazyPictures(paths, 16)
    whole = np.stack([images.square(path, 16) for path in paths])
    assert (len(lazy), lazy.shape, lazy.dtype) == (5, whole.shape, whole.dtype)
    for index in (3, -1, [4, 0, 4], slice(1, 3), np.array([True, False, False, True, False]), [], slice(None)):
        index = np.array(index, dtype=np.int64) if isinstance(index, list) else index
        assert np.array_equal(lazy[index], whole[index])
    with pytest.raises(IndexError):
        lazy[5]


def test_each_file_is_decoded_once_and_only_when_asked_for(folder):
    lazy = images.LazyPictures(sorted(folder.iterdir()), 16)
    before = lazy[np.array([0, 1])]
    before[:] = 7  # a copy: the kept pixels stay
    for number in (0, 1):
        (folder / f"{number}.png").unlink()
    assert lazy[np.array([1, 0])][:, 0, 0, 0].tolist() == [50, 0]
    (folder / "2.png").unlink()
    with pytest.raises(DataError, match=r"1 of 2 pictures are unreadable; first: picture .*2.png is missing"):
        lazy[np.array([0, 2, 3])]
    (folder / "3.png").unlink()
    assert lazy[3][0, 0, 0] == 150  # was decoded beside the missing one
