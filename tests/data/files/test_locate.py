import hashlib
import tarfile

import pytest

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.files import archives, locate
from tests.data import layouts


@pytest.fixture
def layout(tmp_path, monkeypatch):
    """Return a folder CUB_200_2011 with the lists only, outside every default search folder."""
    monkeypatch.setenv("DML_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(locate, "HOME", tmp_path / "a" / "b")
    folder = tmp_path / "birds" / "CUB_200_2011"
    folder.mkdir(parents=True)
    (folder / "images.txt").write_text("1 001.A/a.jpg\n")
    return folder


def test_the_folder_and_its_parent_are_both_accepted(layout):
    for root in (layout, layout.parent, str(layout)):
        assert dmlcore.data.locate("cub", root) == layout


def test_a_folder_nested_twice_is_found(layout):
    inner = layout / "CUB_200_2011"
    inner.mkdir()
    (layout / "images.txt").rename(inner / "images.txt")
    assert dmlcore.data.locate("cub", layout.parent) == inner


def test_a_copy_with_images_goes_before_the_lists_alone(layout):
    (layout / "CUB_200_2011" / "images").mkdir(parents=True)
    (layout / "CUB_200_2011" / "images.txt").touch()
    assert dmlcore.data.locate("cub", layout) == layout / "CUB_200_2011"


def test_the_environment_is_searched_first_and_folders_go_before_archives(layout, monkeypatch, tmp_path):
    beside = tmp_path / "a" / "b" / "data"
    beside.mkdir(parents=True)
    (beside / "CUB_200_2011.tgz").touch()
    assert dmlcore.data.available("cub") == beside / "CUB_200_2011.tgz"
    monkeypatch.setenv("DML_DATA", str(layout.parent))
    assert dmlcore.data.available("cub") == layout


def test_nothing_found_says_where_it_looked_and_what_to_do(layout, tmp_path):
    assert dmlcore.data.available("cub") is None
    with pytest.raises(DataError) as error:
        dmlcore.data.locate("cub")
    for part in (str(tmp_path / "elsewhere"), "shared/data", "CUB_200_2011", "https://data.caltech.edu"):
        assert part in str(error.value)


def test_a_data_set_without_files_is_always_available():
    assert dmlcore.data.available("digits") is not None


def test_an_archive_of_another_data_set_is_refused(pack):
    with pytest.raises(DataError, match="is not an archive of CIFAR-100"):
        dmlcore.data.locate("cifar100", pack("cub-annotations.tar.gz"))


def test_an_archive_is_unpacked_once(pack, monkeypatch):
    archive = pack("cub-annotations.tar.gz")
    folder = dmlcore.data.locate("cub", archive)
    assert (folder / "images.txt").is_file()
    monkeypatch.setattr(archives, "unpack", lambda *_, **__: pytest.fail("unpacked again"))
    assert dmlcore.data.locate("cub", archive) == folder


def test_a_damaged_cache_says_to_remove_it(pack, monkeypatch, tmp_path):
    archive = pack("cub-annotations.tar.gz")
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    folder = dmlcore.data.locate("cub", archive)
    folder.rename(tmp_path / "gone")
    with pytest.raises(DataError, match="lacks the folder CUB_200_2011; remove it"):
        dmlcore.data.locate("cub", archive)


def test_losing_the_race_to_unpack_uses_the_winners_folder(pack, monkeypatch, tmp_path):
    archive = pack("cub-annotations.tar.gz")
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    unpack = archives.unpack

    def race(*arguments, **keywords):
        unpack(*arguments, **keywords)  # the winner
        return unpack(*arguments, **keywords)

    monkeypatch.setattr(archives, "unpack", race)
    assert (dmlcore.data.locate("cub", archive) / "classes.txt").is_file()


def test_the_folder_may_have_another_name(layout, tmp_path):
    other = tmp_path / "birds" / "cub200"
    (other / "images" / "001.Black_footed_Albatross").mkdir(parents=True)
    layout.joinpath("images.txt").unlink()
    assert dmlcore.data.locate("cub", other.parent) == dmlcore.data.locate("cub", other) == other
    (other / "images" / "001.Black_footed_Albatross").rename(other / "images" / "albatross")
    with pytest.raises(DataError, match="for the folder CUB_200_2011 or cub200 or"):
        dmlcore.data.locate("cub", other.parent)


def test_official_archives_that_belong_together_are_unpacked_into_one_folder(monkeypatch, tmp_path):
    """Flowers: images are in a tar file, labels and sets in two files next to it."""
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    tree, packed = layouts.flowers(tmp_path / "tree"), tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "102flowers.tgz", "w:gz") as tar:
        for path in sorted((tree / "jpg").iterdir()):
            tar.add(path, f"jpg/{path.name}")
    for name in ("imagelabels.mat", "setid.mat"):
        (tree / name).rename(packed / name)
    known = [
        archives.Archive(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in packed.iterdir()
    ]
    monkeypatch.setattr(archives, "KNOWN", tuple(known))
    dataset = dmlcore.data.load("flowers", root=packed / "102flowers.tgz", validation="none")
    assert [len(dataset.splits[split]) for split in ("train", "test")] == [32, 32]
    assert dmlcore.data.available("flowers", packed) == packed / "102flowers.tgz"  # not the labels, which lie open
