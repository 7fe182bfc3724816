import hashlib
import io
import tarfile

import pytest

from dmlcore.data import DataError, archives


def write(path, **files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_files_come_out_as_they_went_in(tmp_path):
    digest = write(tmp_path / "a.tgz", data__one=b"1" * 5000, data__deep__two=b"", three=b"3")
    into = archives.unpack(tmp_path / "a.tgz", tmp_path / "new" / "out", sha256=digest)
    assert into == tmp_path / "new" / "out"
    files = {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}
    assert files == {"data/one": b"1" * 5000, "data/deep/two": b"", "three": b"3"}
    assert [path.name for path in into.parent.iterdir()] == ["out"]


def test_a_wrong_digest_unpacks_nothing(tmp_path):
    write(tmp_path / "a.tgz", one=b"1")
    with pytest.raises(DataError, match=r"a.tgz has SHA-256 \w{64} instead of 0000"):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "out", sha256="0" * 64)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_an_unknown_archive_needs_a_digest(tmp_path):
    write(tmp_path / "a.tgz", one=b"1")
    with pytest.raises(DataError, match=r"not a known archive; known are 102flowers.tgz, CUB_200_2011.tgz, "):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "out")


def test_a_known_name_of_another_size_is_called_cut_short(tmp_path):
    (tmp_path / "CUB_200_2011.tgz").write_bytes(b"x" * 100)
    with pytest.raises(DataError, match="has 100 bytes instead of 1,150,585,339"):
        archives.identify(tmp_path / "CUB_200_2011.tgz")


def test_an_existing_folder_is_left_alone(tmp_path):
    digest = write(tmp_path / "a.tgz", one=b"1")
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="exists already; remove it"):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "out", sha256=digest)


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(DataError, match=r"archive .*a.tgz is missing"):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "out", sha256="0" * 64)


@pytest.mark.parametrize(
    "name",
    [
        "cifar-100-python.tar.gz",
        "cub-mini-images.tar.gz",
        "cub-annotations.tar.gz",
        "cars-annotations.tar.gz",
        "sop-lists.tar.gz",
        "inshop-partition-surrogate.tar.gz",
        "flowers102-labels.tar.gz",
        "aircraft-lists.tar.gz",
    ],
)
def test_the_pinned_digests_are_those_of_the_packs(pack, name):
    path = pack(name)
    assert archives.identify(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
