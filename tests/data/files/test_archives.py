import hashlib
import io
import stat
import tarfile
import zipfile

import pytest

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.data.files import archives


def write(path, **files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_zip(path, *members, **files):
    """Write a zip file of members (ZipInfo or name, content)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for member, content in (*members, *((name.replace("__", "/"), content) for name, content in files.items())):
            packed.writestr(member, content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(("name", "write"), [("a.tgz", write), ("a.zip", write_zip)])
def test_files_come_out_as_they_went_in(tmp_path, name, write):
    digest = write(tmp_path / name, data__one=b"1" * 5000, data__deep__two=b"", three=b"3")
    into = archives.unpack(tmp_path / name, tmp_path / "new" / "out", sha256=digest)
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
    with pytest.raises(DataError, match=r"not a known archive; known archives: 102flowers.tgz, CUB_200_2011.tgz, "):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "out")


def test_a_known_name_of_another_size_is_called_cut_short(tmp_path):
    (tmp_path / "CUB_200_2011.tgz").write_bytes(b"x" * 100)
    with pytest.raises(DataError, match="has 100 bytes instead of 1,150,585,339"):
        archives.identify(tmp_path / "CUB_200_2011.tgz")


def test_an_existing_folder_is_left_alone(tmp_path):
    digest = write(tmp_path / "a.tgz", one=b"1")
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="already exists; remove it"):
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


def refuse_zip(path, digest, message):
    with pytest.raises(DataError, match=message):
        archives.unpack(path, path.with_name("out"), sha256=digest)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_empty_folder_of_a_zip_is_made(tmp_path):
    into = archives.unpack(tmp_path / "a.zip", tmp_path / "out", sha256=write_zip(tmp_path / "a.zip", ("empty/", b"")))
    assert (into / "empty").is_dir()


@pytest.mark.parametrize("name", ["/etc/evil", "../evil", "a/../../evil", "a\\..\\evil", "C:\\evil"])
def test_21_a_zip_name_that_leads_outside_is_refused(tmp_path, name):
    refuse_zip(tmp_path / "a.zip", write_zip(tmp_path / "a.zip", (name, b"1")), "leads outside the folder")


def test_21_a_zip_name_with_nul_is_refused(tmp_path):
    """The zipfile module truncates such a name when writing and reading."""
    write_zip(tmp_path / "a.zip", nameXtail=b"1")
    forged = (tmp_path / "a.zip").read_bytes().replace(b"nameXtail", b"name\0tail")
    (tmp_path / "a.zip").write_bytes(forged)
    refuse_zip(tmp_path / "a.zip", hashlib.sha256(forged).hexdigest(), "leads outside the folder")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR])
def test_21_links_and_devices_in_a_zip_are_refused(tmp_path, kind):
    member = zipfile.ZipInfo("link")
    member.external_attr = (kind | 0o777) << 16
    refuse_zip(
        tmp_path / "a.zip", write_zip(tmp_path / "a.zip", (member, b"/etc")), "neither a regular file nor a folder"
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_21_a_doubled_name_in_a_zip_is_refused(tmp_path):
    refuse_zip(
        tmp_path / "a.zip", write_zip(tmp_path / "a.zip", ("a", b"1"), ("a", b"2")), "cannot be unpacked .*exists"
    )


def test_21_a_zip_bomb_is_stopped_whatever_it_says_of_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_EXPANSION", 10)
    digest = write_zip(tmp_path / "a.zip", *((f"{number}", bytes(2**19)) for number in range(5)))
    refuse_zip(tmp_path / "a.zip", digest, r"it unpacks to more than [\d,]+ bytes")


def test_21_a_zip_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 5)
    digest = write_zip(tmp_path / "a.zip", *((f"{number}", b"") for number in range(6)))
    refuse_zip(tmp_path / "a.zip", digest, "it has more than 5 files")


def test_21_a_damaged_zip_leaves_nothing(tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, text=bytes(range(256)).hex().encode() * 20)
    packed = path.read_bytes()
    directory = packed.index(b"PK\1\2")
    for position in (*range(34, directory, 37), directory, len(packed) - 22):
        path.write_bytes(packed[:position] + bytes([packed[position] ^ 255]) + packed[position + 1 :])
        refuse_zip(path, hashlib.sha256(path.read_bytes()).hexdigest(), r"a.zip")
    for keep in (0, 1, len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:keep])
        refuse_zip(path, hashlib.sha256(packed[:keep]).hexdigest(), "a.zip cannot be unpacked")


def test_an_encrypted_zip_is_refused(tmp_path):
    write_zip(tmp_path / "a.zip", a=b"1")
    forged = bytearray((tmp_path / "a.zip").read_bytes())
    forged[6] |= 1  # the flag in the header of the file and in that of the directory
    forged[forged.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(forged)
    refuse_zip(tmp_path / "a.zip", hashlib.sha256(forged).hexdigest(), "cannot be unpacked .*encrypted")


def test_an_archive_known_by_md5_and_of_unknown_size(tmp_path, monkeypatch):
    write(tmp_path / "a.tgz", one=b"1")
    md5 = hashlib.md5((tmp_path / "a.tgz").read_bytes()).hexdigest()
    monkeypatch.setattr(archives, "KNOWN", (archives.Archive("a.tgz", None, md5=md5),))
    assert (archives.unpack(tmp_path / "a.tgz", tmp_path / "out") / "one").read_bytes() == b"1"
    monkeypatch.setattr(archives, "KNOWN", (archives.Archive("a.tgz", None, md5="0" * 32),))
    with pytest.raises(DataError, match=rf"has MD5 {md5} instead of 0000"):
        archives.unpack(tmp_path / "a.tgz", tmp_path / "other")


def test_what_belongs_together_is_unpacked_into_one_folder(tmp_path, monkeypatch):
    write(tmp_path / "images.tgz", jpg__1=b"1")
    write(tmp_path / "more.tgz", jpg__2=b"2")
    (tmp_path / "labels.mat").write_bytes(b"labels")
    files = ("images.tgz", "more.tgz", "labels.mat")
    raw = {name: (tmp_path / name).read_bytes() for name in files}
    known = [archives.Archive(name, len(raw[name]), hashlib.sha256(raw[name]).hexdigest()) for name in files]
    monkeypatch.setattr(archives, "KNOWN", tuple(known))
    companions = [tmp_path / name for name in files[1:]]
    into = archives.unpack(tmp_path / files[0], tmp_path / "out", companions=companions)
    found = sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())
    assert found == ["jpg/1", "jpg/2", "labels.mat"]
    companions[1].write_bytes(b"LABELS")
    with pytest.raises(DataError, match=r"labels.mat has SHA-256"):
        archives.unpack(tmp_path / files[0], tmp_path / "other", companions=companions)
    companions[1].unlink()
    with pytest.raises(DataError, match=r"labels.mat is missing; images.tgz needs it"):
        archives.unpack(tmp_path / files[0], tmp_path / "other", companions=companions)
    assert not (tmp_path / "other").exists()


def test_every_archive_of_a_data_set_is_known():
    known = {archive.name for archive in archives.KNOWN}
    for name in data.names():
        info = data.describe(name)
        assert {*info.archives, *(part for parts in info.companions.values() for part in parts)} <= known
    assert all(len(archive.digest) == (64 if archive.sha256 else 32) for archive in archives.KNOWN)


def test_a_zip_of_a_user_needs_no_digest_but_keeps_its_limits(tmp_path):
    with zipfile.ZipFile(tmp_path / "images.ZIP", "w") as packed:
        packed.writestr("photos/a.png", b"1" * 5000)
    into = archives.unpack_unknown(tmp_path / "images.ZIP", tmp_path / "out")
    assert (into / "photos" / "a.png").read_bytes() == b"1" * 5000
    with pytest.raises(DataError, match="unpacks to more than 4,999 bytes"):
        archives.unpack_unknown(tmp_path / "images.ZIP", tmp_path / "other", max_bytes=4999)
    assert not (tmp_path / "other").exists()
