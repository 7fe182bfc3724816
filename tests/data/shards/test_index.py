import json
import os

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError, checks
from dmlcore.data.files import image_store, images
from dmlcore.data.shards import index, pack
from tests.data import layouts


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path, _own_cache, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path):
    """Return shards of eight products with eight images each."""
    layouts.sop(tmp_path / "Stanford_Online_Products")
    pack.pack("sop", dmlcore.data.read("sop", root=tmp_path), tmp_path / "packed", shard_bytes=20_000)
    return tmp_path / "packed"


def damage_image(place):
    """Change a byte of the first image of the second shard."""
    with open(place / "sop-00001.tar", "r+b") as file:
        file.seek(700)
        byte = file.read(1)
        file.seek(700)
        file.write(bytes([byte[0] ^ 1]))


def rewrite(place, change):
    """Change the manifest, as a forger would."""
    manifest = json.loads((place / index.MANIFEST).read_text())
    change(manifest)
    (place / index.MANIFEST).write_text(json.dumps(manifest))


def sign(place):
    """Give the manifest the digest of the present index."""
    digest = index.hashlib.sha256((place / index.ROWS).read_bytes()).hexdigest()
    rewrite(place, lambda manifest: manifest["digests"].update({index.ROWS: digest}))


def rows_changed(place, field, value):
    """Return an index whose rows were changed and whose manifest has the matching digest."""
    rows = np.load(place / index.ROWS)
    rows[field][3] = value
    np.save(place / index.ROWS, rows)
    sign(place)


DAMAGE = {
    "missing shard": (lambda place: (place / "sop-00002.tar").unlink(), r"sop-00002.tar with \d+ images is missing; "),
    "cut shard": (
        lambda place: os.truncate(place / "sop-00001.tar", 9_000),
        r"sop-00001.tar has 9,000 bytes instead of ",
    ),
    "missing index": (lambda place: (place / index.ROWS).unlink(), r"index.npy is missing; "),
    "another index": (
        lambda place: np.save(place / index.ROWS, np.zeros(64, index.ROW)),
        "does not match the shards.json",
    ),
    "other names": (
        lambda place: (place / index.KEYS).write_bytes(b"x" * 99),
        "keys.bin does not match the shards.json",
    ),
    "other classes": (lambda place: (place / index.CLASSES).write_text("[]"), "classes.json does not match"),
    "no manifest": (lambda place: (place / index.MANIFEST).write_text("{"), "shards.json is damaged"),
    "later manifest": (
        lambda place: rewrite(place, lambda m: m.update(version=2)),
        "or was written by a later release .version",
    ),
    "path in manifest": (
        lambda place: rewrite(place, lambda m: m["shards"][0].update(name="../sop-00000.tar")),
        r"damaged, or was written by a later release .shards.0.name",
    ),
    "fewer samples": (lambda place: rewrite(place, lambda m: m.update(samples=63)), "is not an index of 63 samples"),
    "shard outside": (lambda place: rows_changed(place, "shard", 99), "points outside of its shards or classes"),
    "offset outside": (lambda place: rows_changed(place, "offset", 2**63), "points outside of its shards or classes"),
    "size outside": (lambda place: rows_changed(place, "size", 2**31), "points outside of its shards or classes"),
    "label outside": (lambda place: rows_changed(place, "label", 8), "points outside of its shards or classes"),
    "key outside": (lambda place: rows_changed(place, "key_end", 2**40), "points outside of its shards or classes"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_when_the_set_is_read(place, name):
    change, message = DAMAGE[name]
    change(place)
    with pytest.raises(DataError, match=message) as raised:
        dmlcore.data.read("sop", root=place)
    assert "copy it again from its source, or pack the data set again" in str(raised.value)


def test_an_index_is_never_unpickled(place):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(place / "exploded"),)

    rows = np.array([Bomb()], object)
    np.save(place / index.ROWS, rows, allow_pickle=True)
    sign(place)
    with pytest.raises(DataError, match=r"index.npy is damaged"):
        dmlcore.data.read("sop", root=place)
    assert not (place / "exploded").exists()


def test_an_index_whose_header_is_no_python_is_damaged(place):
    content = (place / index.ROWS).read_bytes()
    (place / index.ROWS).write_bytes(content.replace(b"}", b"(", 1))  # numpy raises tokenize.TokenError
    sign(place)
    with pytest.raises(DataError, match=r"index.npy is damaged"):
        dmlcore.data.read("sop", root=place)


@pytest.mark.parametrize("gigabytes", ["0", "1"])
def test_a_damaged_image_is_named_with_its_shard(place, monkeypatch, gigabytes):
    monkeypatch.setenv("DML_DECODED_GB", gigabytes)
    samples = dmlcore.data.read("sop", root=place)
    damage_image(place)
    row = int(np.flatnonzero(samples.files.shards.rows["shard"] == 1)[0])
    with pytest.raises(DataError, match=r"sop-00001.tar is damaged: image .*JPG has changed since it was packed"):
        samples.inputs[np.array([row])]
    checked = checks.examine(samples)
    assert checked.failures == 1
    assert checked.unreadable[0][0] == samples.keys[row]


def test_damage_between_the_images_is_found_by_the_check(place):
    with open(place / "sop-00001.tar", "r+b") as file:
        file.write(b"x")  # in the name of the first member
    assert checks.examine(dmlcore.data.read("sop", root=place)).unreadable[0][0] == "sop-00001.tar"


def test_a_shard_that_is_cut_or_goes_while_it_is_in_use_is_named(place, monkeypatch):
    monkeypatch.setenv("DML_DECODED_GB", "0")
    samples = dmlcore.data.read("sop", root=place)
    assert samples.inputs[:2].shape == (2, 3, 64, 64)
    os.truncate(place / "sop-00000.tar", 3_000)
    with pytest.raises(DataError, match=r"sop-00000.tar ends within image .*: it is truncated"):
        samples.inputs[:10]
    (place / "sop-00006.tar").unlink()
    with pytest.raises(DataError, match=r"sop-00006.tar cannot be read"):
        samples.inputs[50:]


def test_many_shards_take_few_descriptors(place, monkeypatch):
    monkeypatch.setattr(index, "OPEN", 2)
    samples = dmlcore.data.read("sop", root=place)
    before = len(os.listdir("/proc/self/fd"))
    contents = [file.open("rb").read() for file in samples.files]
    assert len(os.listdir("/proc/self/fd")) - before == 2
    assert len(set(samples.files.shards.rows["shard"].tolist())) > 3
    assert all(contents)


def test_images_read_one_by_one_equal_those_decoded_once(place, monkeypatch, caplog):
    samples = dmlcore.data.read("sop", root=place, image_size=16)
    once, rows = samples.inputs, np.array([5, 60, 5])
    assert once[:].shape == (64, 3, 16, 16)
    (tmp,) = {entry.parent for entry in (place.parent / "cache" / "pictures").glob("*-*/sizes")}
    tmp.rename(place.parent / "elsewhere")
    monkeypatch.setenv("DML_DECODED_GB", "0")
    with caplog.at_level("INFO"):
        now = dmlcore.data.read("sop", root=place, image_size=16).inputs
        assert np.array_equal(now[:], once[:])
    assert "caching 64 decoded images would take 0.0 GB, above the limit" in caplog.text
    assert np.array_equal(now[rows], once[rows])
    for one, other in zip(now.uncut(rows), once.uncut(rows), strict=True):
        assert np.array_equal(one, other)
    assert not list((place.parent / "cache" / "pictures").glob("*-*/"))


def test_copies_that_are_there_are_used_whatever_room_there_is(place, monkeypatch):
    samples = dmlcore.data.read("sop", root=place)
    whole = samples.inputs[:]
    monkeypatch.setenv("DML_DECODED_GB", "0")
    monkeypatch.setattr(images, "with_short_side", None)
    assert np.array_equal(dmlcore.data.read("sop", root=place).inputs[:], whole)


def test_copies_take_half_of_the_free_space_unless_told(tmp_path, monkeypatch):
    usage = image_store.shutil.disk_usage(tmp_path)._replace(free=2 * 100 * 72 * 72 * 4)
    monkeypatch.setattr(image_store.shutil, "disk_usage", lambda folder: usage)
    assert image_store.is_decoded_once(tmp_path / "a" / "b", 100, 72)
    assert not image_store.is_decoded_once(tmp_path / "a" / "b", 101, 72)
    monkeypatch.setenv("DML_DECODED_GB", "0.01")
    assert image_store.is_decoded_once(tmp_path / "a" / "b", 101, 72)
    monkeypatch.setenv("DML_DECODED_GB", "plenty")
    with pytest.raises(DataError, match="DML_DECODED_GB must be a number of gigabytes, got 'plenty'"):
        image_store.is_decoded_once(tmp_path / "a" / "b", 101, 72)


def test_shards_of_another_data_set_are_refused(place):
    with pytest.raises(DataError, match=r"contains the shards of sop; choose that data set, not folder"):
        dmlcore.data.read("folder", root=place)
