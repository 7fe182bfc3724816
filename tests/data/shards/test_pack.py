import multiprocessing
import os
import signal
import tarfile
import time

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.identities import identities
from dmlcore.data.shards import index, pack
from dmlcore.monitoring import retention
from dmlcore.monitoring.retention import DAY, Rules
from dmlcore.storage.runs import RunStore
from tests.cli.here import here
from tests.data import layouts
from tests.data.layouts import WRITERS

PACKED = ("cars", "sop", "inshop", "aircraft", "flowers", "folder")
SHARD = 20_000  # bytes: some ten samples of the small trees


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path, _own_cache, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


def packed(tmp_path, name="sop", shard_bytes=SHARD):
    """Return the tree of a data set, and the folder of its shards."""
    tree, target = tmp_path / "tree", tmp_path / "packed" / f"{name}-shards"
    if not tree.exists():
        WRITERS[name](tree / (dmlcore.data.describe(name).folder or "classes"))
    root = tree if dmlcore.data.describe(name).folder else tree / "classes"
    pack.pack(name, dmlcore.data.read(name, root=root), target, shard_bytes=shard_bytes)
    return root, target


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", PACKED)
def test_shards_are_read_as_the_same_data_set(tmp_path, name):
    root, target = packed(tmp_path, name)
    for split in ("classes", "samples"):
        files = dmlcore.data.load(name, root=root, split=split, image_size=16)
        shards = dmlcore.data.load(name, root=target, split=split, image_size=16)
        assert index.read_manifest(target).samples == len(files.labels)
        assert len(index.read_manifest(target).shards) > 2
        assert np.array_equal(files.inputs[:], shards.inputs[:])
        assert np.array_equal(files.labels, shards.labels)
        assert files.splits.keys() == shards.splits.keys()
        assert all(np.array_equal(files.splits[each], shards.splits[each]) for each in files.splits)
        assert (files.class_names, files.notes) == (shards.class_names, shards.notes)
        assert list(files.keys) == list(shards.keys)
        assert np.array_equal(files.image(3), shards.image(3))
        rows = np.arange(len(files.labels))
        assert np.array_equal(identities(files, rows), identities(shards, rows))
        assert [file.open("rb").read() for file in files.files] == [file.open("rb").read() for file in shards.files]


def test_a_set_in_the_usual_place_is_found_after_the_files_and_before_an_archive(tmp_path, monkeypatch):
    root, _ = packed(tmp_path)
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    assert here("data", "pack", "sop", "--root", str(root), "--shard-mb", "1").returncode == 0
    (tmp_path / "data" / "Stanford_Online_Products.zip").touch()
    assert dmlcore.data.available("sop") == tmp_path / "data" / "sop-shards"
    shown = here("data", "show", "sop")
    assert shown.returncode == 0
    assert "Packed into 1 shard, " in shown.stdout
    (root / "Stanford_Online_Products").rename(tmp_path / "data" / "Stanford_Online_Products")
    assert dmlcore.data.available("sop") == tmp_path / "data" / "Stanford_Online_Products"


def test_a_shard_is_a_tar_file_of_images_and_classes_as_webdataset_has_them(tmp_path):
    root, target = packed(tmp_path)
    made = dmlcore.data.read("sop", root=root)
    members = []
    for shard in index.read_manifest(target).shards:
        with tarfile.open(target / shard.name, "r:") as tar:
            members += [(member.name, tar.extractfile(member).read()) for member in tar]
    assert [name for name, _ in members[::2]] == list(made.keys)
    assert [name for name, _ in members[1::2]] == [f"{os.path.splitext(key)[0]}.cls" for key in made.keys]
    assert [content for _, content in members[::2]] == [file.read_bytes() for file in made.files]
    assert [int(content) for _, content in members[1::2]] == made.labels.tolist()


def test_names_that_webdataset_would_misread_become_numbers(tmp_path):
    tree = layouts.class_folders(tmp_path / "tree", each=4)
    (tree / "ant" / "0.jpg").rename(tree / "ant" / "a.b.jpg")
    (tree / "bee" / "0.jpg").rename(tree / "bee" / "1.png")  # next to 1.jpg; the format is taken from the contents
    made = dmlcore.data.read("folder", root=tree)
    pack.pack("folder", made, tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "folder-00000.tar") as tar:
        names = tar.getnames()
    assert len(names) == len(set(names)) == 2 * len(made.labels)
    assert names[6:8] == ["000000003.jpg", "000000003.cls"]
    assert list(dmlcore.data.read("folder", root=tmp_path / "packed").keys) == list(made.keys)


def test_the_same_files_make_the_same_bytes_and_are_packed_once(tmp_path, monkeypatch):
    _, target = packed(tmp_path)
    first = contents(target)
    target.rename(tmp_path / "other")
    packed(tmp_path)
    assert contents(target) == first
    monkeypatch.setattr(pack, "_Packing", None)
    packed(tmp_path)
    with pytest.raises(
        DataError, match="already exists with other contents; remove it, or choose another folder with --into"
    ):
        packed(tmp_path, shard_bytes=SHARD + 1)
    assert sorted(path.name for path in target.parent.iterdir()) == ["sop-shards"]


@pytest.mark.parametrize("kept", ["a photograph of mine", None])
def test_a_folder_that_is_there_is_left_alone(tmp_path, kept):
    for name in ("sop-shards", "sop-shards.staging"):
        folder = tmp_path / "packed" / name
        folder.mkdir(parents=True)
        if kept:
            (folder / "kept").write_text(kept)
        if kept or name == "sop-shards":
            with pytest.raises(DataError, match="--into"):
                packed(tmp_path)
        assert [path.name for path in folder.iterdir()] == (["kept"] if kept else [])
        (folder / "kept").unlink(missing_ok=True)
        folder.rmdir()


def die_after(writes, tmp_path):
    """Pack, and kill the process in the middle of a write."""
    count = 0
    add = pack._add

    def dying(tar, name, content):
        nonlocal count
        count += 1
        if count > writes:
            tar.fileobj.write(b"torn")
            tar.fileobj.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        add(tar, name, content)

    pack._add = dying
    packed(tmp_path)


def killed(writes, tmp_path):
    process = multiprocessing.get_context("fork").Process(target=die_after, args=(writes, tmp_path))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("writes", [0, 1, 30, 100])
def test_a_killed_packing_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch, writes):
    _, target = packed(tmp_path)
    whole = contents(target)
    target.rename(tmp_path / "whole")
    killed(writes, tmp_path)
    assert not target.exists()
    staging = target.with_name("sop-shards.staging")
    finished = len(list(staging.glob("*.tar")))
    assert finished == {0: 0, 1: 0, 30: 2, 100: 6}[writes]
    written = []
    replace = pack.atomic_files.replace
    monkeypatch.setattr(
        pack.atomic_files, "replace", lambda path, write: written.append(path.name) or replace(path, write)
    )
    packed(tmp_path)
    assert len([name for name in written if name.endswith(".tar")]) == len(list(target.glob("*.tar"))) - finished
    assert contents(target) == whole
    assert sorted(path.name for path in target.parent.iterdir()) == ["sop-shards"]
    assert list(pack.leftovers()) == []


def test_a_packing_of_files_that_changed_meanwhile_begins_anew(tmp_path):
    root, target = packed(tmp_path)
    target.rename(tmp_path / "whole")
    killed(60, tmp_path)
    assert target.with_name("sop-shards.staging").joinpath("sop-00000.tar").is_file()
    image = root / "Stanford_Online_Products" / "coffee_maker_final" / "10815_0.JPG"  # the first in that shard
    assert image.is_file()
    layouts.write_image(image, 7)
    packed(tmp_path)
    made, again = (dmlcore.data.read("sop", root=place) for place in (root, target))
    assert np.array_equal(made.inputs[:], again.inputs[:])


def test_what_a_killed_packing_left_is_found_by_the_sweep(tmp_path):
    killed(40, tmp_path)
    (tmp_path / "packed" / "other").mkdir()
    staging = tmp_path / "packed" / "sop-shards.staging"
    store = RunStore(tmp_path / "runs")
    assert retention.plan(store, Rules(cache=1)) == []
    for path in (staging, *staging.iterdir()):
        os.utime(path, (time.time() - 2 * DAY,) * 2)
    (removal,) = retention.plan(store, Rules(cache=1))
    assert removal.what == f"half-packed {staging}"
    assert [why for _, why in retention.apply([removal])] == [""]
    assert [path.name for path in (tmp_path / "packed").iterdir()] == ["other"]
    assert list(pack.notes_folder().iterdir()) == []


def test_what_cannot_be_packed_says_why(tmp_path):
    assert "cannot be packed, because" in here("data", "pack", "digits").stderr
    layouts.omniglot(tmp_path / "omniglot-py")
    assert "cannot be packed, because" in here("data", "pack", "omniglot", "--root", str(tmp_path)).stderr
    _, target = packed(tmp_path)
    again = here("data", "pack", "sop", "--root", str(target), "--into", str(tmp_path / "again"))
    assert f"{target} is already packed; give the folder of the image files with --root" in again.stderr
    assert not (tmp_path / "again").exists()


def test_an_image_that_goes_meanwhile_leaves_nothing(tmp_path):
    root, _ = packed(tmp_path)
    made = dmlcore.data.read("sop", root=root)
    content = pack._Packing._content

    def cut(self, row):
        if row == 20:
            os.truncate(self.files[row], 100)
        return content(self, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack._Packing, "_content", cut)
        with pytest.raises(DataError, match=r"changed during packing; pack the data set again"):
            pack.pack("sop", made, tmp_path / "other" / "shards")
    assert list((tmp_path / "other").iterdir()) == []
