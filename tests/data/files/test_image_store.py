import errno
import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError
from dmlcore.data.files import image_store, images

SIZES = [(60, 40), (40, 60), (44, 44), (300, 20), (36, 50), (90, 70)]


@pytest.fixture
def kept(tmp_path, _own_cache, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pictures"


@pytest.fixture
def paths(tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "tree").mkdir()
    files = [tmp_path / "tree" / f"{number}.png" for number in range(len(SIZES))]
    for file, (width, height) in zip(files, SIZES, strict=True):
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(file)
    return files


def stores(kept):
    return sorted(entry.name for entry in kept.iterdir() if entry.is_dir())


def centre(image, side):
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return image[top : top + side, left : left + side].transpose(2, 0, 1)


def test_the_short_side_is_the_256_of_227():
    assert [image_store.short_side(side) for side in (227, 224, 64, 32)] == [256, 253, 72, 36]


def test_an_image_is_the_centre_of_its_copy_decoded_directly(kept, paths):
    stored = image_store.StoredImages(paths, 32)
    direct = np.stack([centre(images.with_short_side(path, 36), 32) for path in paths])
    assert (len(stored), stored.shape, stored.dtype) == (6, direct.shape, direct.dtype)
    mask = np.array([True, False, False, True, False, True])
    for index in (3, -1, np.array([4, 0, 4]), slice(1, 3), mask, np.array([], np.int64), slice(None)):
        found = stored[index]
        assert np.array_equal(found, direct[index])
        found[...] = 7  # a copy
    assert np.array_equal(stored[:], direct)
    for index in (6, (0, 1)):
        with pytest.raises(IndexError):
            stored[index]


def test_whole_images_come_uncut(kept, paths):
    whole = image_store.StoredImages(paths, 32).uncut(np.array([3, 1]))
    # 300 x 20 is longer than 4:1, so its middle is kept
    assert [(image.shape, image.dtype) for image in whole] == [((36, 144, 3), np.uint8), ((54, 36, 3), np.uint8)]
    for image, path in zip(whole, (paths[3], paths[1]), strict=True):
        assert np.array_equal(image, images.with_short_side(path, 36))


def test_files_are_decoded_once_when_first_asked_for_and_kept_for_the_next_process(kept, paths, monkeypatch):
    first = image_store.StoredImages(paths, 32)
    assert not kept.exists()
    pixels = first[:]
    monkeypatch.setattr(images, "with_short_side", None)
    assert np.array_equal(first[:], pixels)
    assert np.array_equal(image_store.StoredImages(paths, 32)[:], pixels)
    assert len(stores(kept)) == 1


def test_each_size_and_each_list_has_its_own_store(kept, paths):
    for files, side in ((paths, 32), (paths, 64), (paths[:3], 32), (paths[::-1], 32)):
        assert image_store.StoredImages(files, side)[0].shape == (3, side, side)
    assert len(stores(kept)) == 4


def test_a_changed_file_makes_a_new_store_and_removes_the_old_one(kept, paths):
    old = image_store.StoredImages(paths, 32)
    before, others = old[:], image_store.StoredImages(paths[:3], 32)[:]
    Image.new("RGB", (50, 50), (1, 2, 3)).save(paths[5])
    after = image_store.StoredImages(paths, 32)[:]
    assert after[5, :, 0, 0].tolist() == [1, 2, 3]
    assert np.array_equal(after[:5], before[:5])
    assert len(stores(kept)) == 2  # this one and that of the first three
    assert np.array_equal(image_store.StoredImages(paths[:3], 32)[:], others)
    assert np.array_equal(old[:], before)  # readers of the old file are unaffected


def test_a_missing_file_is_named(kept, paths):
    paths[4].unlink()
    with pytest.raises(DataError, match=r"1 of 6 images are unreadable, the first: image .*4.png is missing"):
        image_store.StoredImages(paths, 32)[0]
    assert stores(kept) == []


def die_at(count, paths):
    decode, calls = images.with_short_side, []

    def dying(path, short):
        calls.append(path)
        if len(calls) > count:
            os.kill(os.getpid(), signal.SIGKILL)
        return decode(path, short)

    image_store.CHUNK, images.WORKERS, images.with_short_side = 2, 1, dying
    image_store.StoredImages(paths, 32)[0]


def test_a_killed_decoding_goes_on_where_it_stopped(kept, paths, monkeypatch):
    process = multiprocessing.get_context("fork").Process(target=die_at, args=(5, paths))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (staging,) = stores(kept)
    assert staging.endswith(".staging")
    with open(kept / staging / "pixels", "ab") as file:
        file.write(b"torn")  # a write that did not get as far as its size

    decode, again = images.with_short_side, []
    monkeypatch.setattr(images, "with_short_side", lambda path, short: again.append(path) or decode(path, short))
    found = image_store.StoredImages(paths, 32)[:]
    assert again == paths[4:]  # two chunks of two were safe
    assert np.array_equal(found, np.stack([centre(decode(path, 36), 32) for path in paths]))
    assert stores(kept) == [staging.removesuffix(".staging")]


def test_pixels_lost_behind_their_sizes_are_decoded_again(kept, paths):
    whole = image_store.StoredImages(paths, 32)[:]
    (name,) = stores(kept)
    (kept / name).rename(kept / f"{name}.staging")
    os.truncate(kept / f"{name}.staging" / "pixels", 10_000)  # cuts the second image
    assert np.array_equal(image_store.StoredImages(paths, 32)[:], whole)


def test_two_at_once_decode_once(kept, paths, monkeypatch):
    decode, calls = images.with_short_side, []
    monkeypatch.setattr(images, "with_short_side", lambda path, short: calls.append(path) or decode(path, short))
    found = []
    threads = [threading.Thread(target=lambda: found.append(image_store.StoredImages(paths, 32)[:])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls) == paths
    assert all(np.array_equal(each, found[0]) for each in found)
    assert len(found) == 3


def test_a_full_disk_says_where_and_leaves_nothing(kept, paths, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"no space left for the decoded images in .*pictures .*DML_CACHE"):
            image_store.StoredImages(paths, 32)[0]
    assert stores(kept) == []
    assert image_store.StoredImages(paths, 32)[0].shape == (3, 32, 32)


def test_a_cache_that_cannot_be_made_says_so(tmp_path, paths, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot be written in .*DML_CACHE"):
        image_store.StoredImages(paths, 32)[0]


def test_a_store_cut_behind_its_back_is_refused(kept, paths):
    image_store.StoredImages(paths, 32)[0]
    os.truncate(kept / stores(kept)[0] / "pixels", 1000)
    with pytest.raises(DataError, match="are damaged; remove this folder"):
        image_store.StoredImages(paths, 32)[0]


def test_what_a_half_done_removal_left_is_made_again(kept, paths):
    whole = image_store.StoredImages(paths, 32)[:]
    (kept / stores(kept)[0] / "sizes").unlink()
    assert np.array_equal(image_store.StoredImages(paths, 32)[:], whole)


def test_progress_is_told(kept, paths, monkeypatch, caplog):
    monkeypatch.setattr(image_store, "CHUNK", 2)
    monkeypatch.setattr(image_store, "SAY_EVERY", 0.0)
    with caplog.at_level("INFO"):
        image_store.StoredImages(paths, 32)[0]
    assert [record.getMessage() for record in caplog.records] == [f"decoded {done} of 6 images" for done in (2, 4, 6)]
