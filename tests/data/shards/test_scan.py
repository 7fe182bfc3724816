"""Index of tar files in WebDataset naming that were packed by other programs."""

import io
import json
import os
import tarfile

import numpy as np
import pytest
from PIL import Image

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.shards import pack, scan
from tests.data import layouts


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path, _own_cache, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


def image(number):
    content = io.BytesIO()
    Image.new("RGB", (24, 18), (number * 3 % 256, 90, 160)).save(content, "PNG")
    return content.getvalue()


def tar_of(path, members, mode="w"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def by_cls(number):
    return [(f"{number:06d}.png", image(number)), (f"{number:06d}.cls", str(number % 12).encode() + b"\n")]


def by_json(number):
    about = {"label": number % 12, "caption": "a tile", "class": "not this one"}
    return [(f"{number:06d}.json", json.dumps(about).encode()), (f"{number:06d}.PNG", image(number))]


def by_folder(number):
    return [(f"./{number % 12}/{number:06d}.png", image(number)), (f"./{number % 12}/{number:06d}.txt", b"a tile")]


def many_dots(number):
    return [(f"a.b/{number:06d}.left.png", image(number)), (f"a.b/{number:06d}.cls", str(number % 12).encode())]


@pytest.mark.parametrize("members", [by_cls, by_json, by_folder, many_dots])
def test_samples_of_others_are_read_in_their_order(tmp_path, members):
    for shard in range(3):
        numbers = range(40 * shard, 40 * shard + 40)
        tar_of(tmp_path / "tars" / f"some-{shard:06d}.tar", [each for number in numbers for each in members(number)])
    made = dmlcore.data.read("folder", root=tmp_path / "tars", image_size=16)
    assert made.class_names == tuple(map(str, range(12)))
    assert made.train_classes == 6
    assert made.labels.tolist() == [number % 12 for number in range(120)]
    assert [file.open("rb").read() for file in made.files] == [image(number) for number in range(120)]
    assert made.inputs[:][:, 0, 8, 8].tolist() == [number * 3 % 256 for number in range(120)]
    assert len(set(made.keys)) == 120


@pytest.mark.parametrize(("classes", "kind"), [(12, "image-wise"), (6, "class-disjoint")])
def test_shards_of_train_and_test_are_a_split(tmp_path, classes, kind):
    for shard, name in enumerate(("set_train_0", "set_train_1", "set_val_0")):
        first = 0 if classes == 12 or shard < 2 else 6
        members = [
            (f"{number}.{ending}", content)
            for number in range(24)
            for ending, content in (("png", image(number)), ("cls", str((number % classes + first) % 12).encode()))
        ]
        tar_of(tmp_path / "tars" / f"{name}.tar", members)
    split = "samples" if kind == "image-wise" else "classes"
    made = dmlcore.data.load("folder", root=tmp_path / "tars", split=split, validation="none")
    assert made.splits["train"].tolist() == list(range(48))
    assert made.splits["test"].tolist() == list(range(48, 72))
    assert any(kind in note for note in made.notes)


def test_the_index_is_made_once_until_a_shard_changes(tmp_path, monkeypatch):
    tar_of(tmp_path / "tars" / "a.tar", [each for number in range(24) for each in by_cls(number)])
    first = dmlcore.data.read("folder", root=tmp_path / "tars").labels
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_make", None)
        assert np.array_equal(dmlcore.data.read("folder", root=tmp_path / "tars").labels, first)
    tar_of(tmp_path / "tars" / "b.tar", [each for number in range(24) for each in by_json(number)])
    assert len(dmlcore.data.read("folder", root=tmp_path / "tars").labels) == 48
    assert len(list((tmp_path / "cache" / "shards").glob("*-*/"))) == 1


def test_our_own_shards_are_read_without_their_index(tmp_path):
    tree = layouts.class_folders(tmp_path / "tree")
    made = dmlcore.data.read("folder", root=tree)
    pack.pack("folder", made, tmp_path / "packed", shard_bytes=20_000)
    for file in (tmp_path / "packed").iterdir():
        if file.suffix != ".tar":
            file.unlink()
    again = dmlcore.data.read("folder", root=tmp_path / "packed")
    assert np.array_equal(again.inputs[:], made.inputs[:])
    assert np.array_equal(again.labels, made.labels)


def link(tar):
    info = tarfile.TarInfo("999.png")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar.addfile(info)


BAD = {
    "no class": ([("1.png", image(1)), ("2.png", image(2))], r"a.tar: sample '1' has no class: .* 1.cls"),
    "json without": ([("1.png", image(1)), ("1.json", b'{"caption": 1}')], r"sample '1' has no class"),
    "json of lists": ([("1.png", image(1)), ("1.json", b"[" * 100_000)], r"sample '1' has no class"),
    "one class": ([("1.png", image(1)), ("1.cls", b"7")], "images of 1 classes, but at least two"),
    "no image": ([("1.cls", b"7")], "images of 0 classes, but at least two"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_says_no_class_is_named(tmp_path, name):
    members, message = BAD[name]
    tar_of(tmp_path / "tars" / "a.tar", members)
    with pytest.raises(DataError, match=message):
        dmlcore.data.read("folder", root=tmp_path / "tars")


def test_links_compressed_and_cut_shards_are_refused(tmp_path):
    place = tmp_path / "tars" / "a.tar"
    good = [each for number in range(24) for each in by_cls(number)]
    tar_of(place, good)
    whole = place.read_bytes()
    with tarfile.open(place, "a") as tar:
        link(tar)
    with pytest.raises(DataError, match=r"a.tar: member '999.png' is neither a regular file nor a folder"):
        dmlcore.data.read("folder", root=place.parent)
    tar_of(place, good, "w:gz")
    with pytest.raises(DataError, match=r"a.tar is not an uncompressed tar file .*, or decompress it to .tar"):
        dmlcore.data.read("folder", root=place.parent)
    for length in (700, 1024, 10 * 1024 + 100, 20 * 1024):  # in an image, after one, in a header, after a class
        place.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"a.tar .*copy it again"):
            dmlcore.data.read("folder", root=place.parent)
    assert os.listdir(tmp_path / "cache" / "shards") == [] or not list((tmp_path / "cache" / "shards").glob("*-*/"))


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (2**32, r"a.tar: image 'big.png' claims 4,294,967,296 bytes, but at most 4,294,967,295 can be read"),
        (2**85, r"a.tar is not an uncompressed tar file"),
        (-1, r"a.tar is not an uncompressed tar file|a.tar: image 'big.png' claims -1 bytes"),
    ],
)
def test_a_member_of_an_absurd_size_is_refused_in_words(tmp_path, size, message):
    big = tarfile.TarInfo("big.png")
    big.size = size
    (tmp_path / "tars").mkdir()
    with open(tmp_path / "tars" / "a.tar", "wb") as file:
        file.write(big.tobuf(tarfile.GNU_FORMAT))
        file.truncate(2**32 + 20 * tarfile.BLOCKSIZE)  # a hole: it takes no disk
    with pytest.raises(DataError, match=message):
        dmlcore.data.read("folder", root=tmp_path / "tars")
