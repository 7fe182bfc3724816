"""Rows 15 to 25 of the fault matrix: damaged or forged images, lists, pickles, archives and splits."""

import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import zlib

import numpy as np
import pytest
from PIL import Image

import dmlcore.data
from dmlcore.data import DataError, splits
from dmlcore.data.dataset import Samples
from dmlcore.data.files import archives, image_store, images
from dmlcore.data.readers.cub import read_table
from dmlcore.training.forks import fork_spec
from dmlcore.training.samplers import BalancedSampler
from tests.faults import adversarial_images, foreign_names

# Images


def test_15_a_truncated_or_foreign_image_is_named_and_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / ".cache"))
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    paths = [tmp_path / f"{name}.jpg" for name in ("good", "cut", "text", "empty", "tiff")]
    Image.fromarray(noise).save(paths[0])
    paths[1].write_bytes(paths[0].read_bytes()[:1500])
    paths[2].write_text("not an image")
    paths[3].touch()
    Image.fromarray(noise).save(paths[4], format="TIFF")
    for _ in range(2):  # the second attempt finds no partial results
        with pytest.raises(DataError, match=r"4 of 5 images are unreadable, the first: image .*cut.jpg cannot be dec"):
            image_store.StoredImages(paths, 32)[0]
    assert image_store.StoredImages(paths[:1], 32)[0].shape == (3, 32, 32)
    for path in paths[2:]:
        with pytest.raises(
            DataError, match=rf"{path.name} is not in a supported format \(JPEG, PNG, WEBP, GIF, BMP\); replace it"
        ):
            images.thumbnail(path)


@pytest.mark.parametrize("mode", ["L", "CMYK", "P", "RGBA", "LA", "1"])
def test_16_any_colour_mode_becomes_rgb(tmp_path, mode):
    left_red = np.zeros((20, 20, 3), np.uint8)
    left_red[:, :10, 0] = 255
    image = Image.fromarray(left_red).convert(mode)
    path = tmp_path / ("image.jpg" if mode in ("L", "CMYK") else "image.png")
    image.save(path, **({"quality": 100} if path.suffix == ".jpg" else {}))
    pixels = images.with_short_side(path, 20)
    assert pixels.shape == (20, 20, 3)
    expected = np.asarray(image.convert("RGB"), dtype=int)
    assert abs(pixels[5, [3, 16]] - expected[5, [3, 16]]).max() <= 8


def test_16_transparency_shows_white_not_what_lies_hidden_under_it(tmp_path):
    Image.new("RGBA", (20, 20), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (images.with_short_side(tmp_path / "clear.png", 20) == 255).all()


@pytest.mark.parametrize(("orientation", "bright"), [(1, (5, 2)), (3, (5, 37)), (6, (2, 5)), (8, (37, 5))])
def test_16_an_exif_turned_image_is_upright(tmp_path, orientation, bright):
    pixels = np.zeros((10, 40), np.uint8)
    pixels[:, :8] = 255  # bright on the left as stored
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(tmp_path / "turned.jpg", exif=exif)
    upright = images.thumbnail(tmp_path / "turned.jpg")
    assert upright.shape == ((10, 40, 3) if orientation in (1, 3) else (40, 10, 3))
    assert upright[bright].min() > 230
    assert upright.mean() == pytest.approx(51, abs=5)


def test_17_sixteen_bits_are_scaled_not_cut_off(tmp_path):
    ramp = np.linspace(0, 65535, 256).astype(np.uint16)
    Image.fromarray(np.tile(ramp, (256, 1))).save(tmp_path / "ramp.png")
    pixels = images.thumbnail(tmp_path / "ramp.png")
    assert pixels.mean() == pytest.approx(127.5, abs=0.5)
    assert (pixels[0, :, 0] == np.arange(256)).all()


def test_18_a_forged_header_is_refused_before_decoding(tmp_path):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    for side in (8_000, 30_000):  # below and above the size that Pillow itself refuses
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        (tmp_path / "bomb.png").write_bytes(png)
        with pytest.raises(DataError, match=r"bomb.png is too large to decode \(.*pixels"):
            images.with_short_side(tmp_path / "bomb.png", 64)


# Lists

ROWS = {
    "images": ["1 001.A/a.jpg", "2 001.A/b.jpg", "3 101.B/c.jpg", "4 101.B/d.jpg"],
    "image_class_labels": ["1 1", "2 1", "3 101", "4 101"],
    "classes": ["1 001.A", "101 101.B"],
    "train_test_split": ["1 1", "2 0", "3 1", "4 0"],
}


@pytest.fixture
def lists(tmp_path):
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("images", None, r"images.txt is missing; restore it"),
        ("images", [], r"images.txt is empty"),
        ("images", ROWS["images"][:3], r"image_class_labels.txt:4: image 4 is not in .*images.txt"),
        ("image_class_labels", ROWS["image_class_labels"][:3], r"images.txt:4: image 4 has no row in .*labels.txt"),
        ("train_test_split", ["1 1", "2 0", "3 1"], r"images.txt:4: image 4 has no row in .*train_test_split.txt"),
        ("images", [*ROWS["images"], "4 101.B/e.jpg"], r"images.txt:5: number 4 is already listed in line 4"),
        ("images", [*ROWS["images"][:3], "4 001.A/a.jpg"], r"images.txt:4: 001.A/a.jpg is already listed in line 1"),
        (
            "image_class_labels",
            ["1 1", "2 1", "3 1", "4 101"],
            r"images.txt:3: folder '101.B' does not belong to class 1",
        ),
        ("image_class_labels", ["1 1", "2 1", "3 101", "4 7"], r"labels.txt:4: class '7' is not in"),
        ("image_class_labels", ["1 1", "2 one", "3 101", "4 101"], r"labels.txt:2: class 'one' is not in"),
        ("image_class_labels", ["1 1", "2 " + "9" * 5000, "3 101", "4 101"], r"labels.txt:2: class '99"),
        ("images", ["0 001.A/a.jpg"], r"images.txt:1: expected '<number from 1> <value>', got '0 001"),
        ("images", ["9" * 5000 + " 001.A/a.jpg"], r"images.txt:1: expected '<number"),
        ("images", ["1 001.A/a.jpg", "2"], r"images.txt:2: expected '<number from 1> <value>', got '2'"),
        ("images", ["x 001.A/a.jpg"], r"images.txt:1: expected"),
        ("images", ["1 001.A/../../etc/a.jpg", *ROWS["images"][1:]], r"images.txt:1: expected '<class folder>/<file>'"),
        ("images", ["1 /etc/passwd", *ROWS["images"][1:]], r"images.txt:1: expected '<class folder>/<file>'"),
        ("images", ["1 001.A/..", *ROWS["images"][1:]], r"images.txt:1: expected '<class folder>/<file>'"),
        ("train_test_split", ["1 1", "2 2", "3 1", "4 0"], r"train_test_split.txt:2: expected 1 \(train\) or 0"),
    ],
)
def test_19_a_damaged_list_is_named_with_its_line(lists, name, rows, message):
    path = lists / f"{name}.txt"
    if rows is None:
        path.unlink()
    else:
        path.write_text("".join(f"{row}\n" for row in rows))
    with pytest.raises(DataError, match=message):
        read_table(lists)


def test_19_text_that_is_not_utf8_is_named_with_its_line(lists):
    (lists / "classes.txt").write_bytes(b"1 001.A\n101 101.\xff\xfe\n")
    with pytest.raises(DataError, match=r"classes.txt:2: not UTF-8"):
        read_table(lists)


def test_19_crlf_byte_order_mark_and_blank_lines_are_harmless(lists):
    expected = read_table(lists)
    for name, rows in ROWS.items():
        (lists / f"{name}.txt").write_bytes("\ufeff{}\r\n\r\n".format("\r\n".join(rows)).encode())
    assert read_table(lists).paths == expected.paths
    assert read_table(lists).labels.tolist() == expected.labels.tolist() == [0, 0, 1, 1]


# Pickles


class Touch:
    """Object whose unpickling creates the file `path`."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


GOOD = {b"data": np.zeros((100, 3072), np.uint8), b"fine_labels": list(range(100))}
META = {b"fine_label_names": [b"class"] * 100}


def write_cifar(folder, **replaced):
    folder.mkdir()
    for name, content in {"train": GOOD, "test": GOOD, "meta": META, **replaced}.items():
        data = content if isinstance(content, bytes) else pickle.dumps(content, protocol=2)
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_20_a_forged_pickle_runs_nothing(tmp_path, name):
    canary = tmp_path / "canary"
    folder = write_cifar(tmp_path / "cifar", **{name: {**GOOD, **META, b"x": Touch(canary)}})
    with pytest.raises(DataError, match=rf"{name} is truncated or not .*global (posix|nt)\.mkdir is not allowed"):
        dmlcore.data.load("cifar100", root=folder)
    assert not canary.exists()
    pickle.loads((folder / name).read_bytes())
    assert canary.exists()  # the forgery works on an unprotected reader


@pytest.mark.parametrize("name", ["data_batch_1", "data_batch_3", "test_batch", "batches.meta"])
def test_20_a_forged_pickle_of_cifar_10_runs_nothing(tmp_path, name):
    folder = tmp_path / "cifar"
    folder.mkdir()
    good = {b"data": np.zeros((20, 3072), np.uint8), b"labels": list(range(10)) * 2}
    for file in ("data_batch_1", "data_batch_3", "test_batch"):
        (folder / file).write_bytes(pickle.dumps(good, protocol=2))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": [b"class"] * 10}, protocol=2))
    assert len(dmlcore.data.load("cifar10", root=folder).inputs) == 60
    canary = tmp_path / "canary"
    (folder / name).write_bytes(pickle.dumps({**good, b"x": Touch(canary)}, protocol=2))
    with pytest.raises(DataError, match=rf"{name} is truncated or not a CIFAR-10 .*mkdir is not allowed"):
        dmlcore.data.load("cifar10", root=folder)
    assert not canary.exists()


@pytest.mark.parametrize("data_set", ["collage", "collage_distilled", "collage_pretraining"])
@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_20_a_forged_pickle_under_the_collages_runs_nothing(tmp_path, data_set, name):
    canary = tmp_path / "canary"
    coarse = {b"coarse_labels": [label % 20 for label in range(100)]}
    supers = {b"coarse_label_names": [b"trees"] * 20}
    files = {"train": GOOD | coarse, "test": GOOD | coarse, "meta": META | supers}
    folder = write_cifar(tmp_path / "cifar", **files | {name: {**files[name], b"x": Touch(canary)}})
    with pytest.raises(DataError, match=rf"{name} is truncated or not .*mkdir is not allowed"):
        dmlcore.data.load(data_set, root=folder)
    assert not canary.exists()


@pytest.mark.parametrize(
    "code",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy\nndarray.tofile\n.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I99999999999999999\ntS'b'\ntR.",
        b"cnumpy\nndarray\n(I-1\ntR.",
        b"(lp0\n" + b"(" * 5000,
        b"",
        b"\x80\x02}q\x00.",
        b"\x80\x02]q\x00.",
        bytes(range(256)),
    ],
)
def test_20_a_malformed_pickle_is_named(tmp_path, code):
    folder = write_cifar(tmp_path / "cifar", train=code)
    with pytest.raises(DataError, match=r"cifar/train .*(official file|restore the official one)"):
        dmlcore.data.load("cifar100", root=folder)


def test_20_no_codec_but_latin1_is_reached(tmp_path):
    folder = write_cifar(tmp_path / "cifar", train=b"c_codecs\nencode\n(Vx\nVrot13\ntR.")
    with pytest.raises(DataError, match="encoding 'rot13' is not allowed"):
        dmlcore.data.load("cifar100", root=folder)


def test_20_a_pickle_cut_anywhere_is_named(tmp_path):
    whole = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [1, 2]}, protocol=2)
    folder = write_cifar(tmp_path / "cifar")
    for length in [*range(0, 200, 3), len(whole) // 2, len(whole) - 1]:
        (folder / "train").write_bytes(whole[:length])
        with pytest.raises(DataError, match="cifar/train is truncated"):
            dmlcore.data.load("cifar100", root=folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train", {b"data": np.zeros((1, 3072), object), b"fine_labels": [0]}, "must be .* uint8, got object"),
        ("train", {b"data": np.zeros((1, 3072)), b"fine_labels": [0]}, "got float64"),
        ("train", {b"data": np.zeros((1, 3000), np.uint8), b"fine_labels": [0]}, r"shape \(1, 3000\)"),
        ("train", {b"data": [1, 2], b"fine_labels": [0]}, "got list"),
        ("train", {b"data": GOOD[b"data"], b"fine_labels": [0] * 99}, "must list 100 numbers, got 99"),
        ("train", {b"data": GOOD[b"data"], b"fine_labels": 7}, "must list 100 numbers, got int"),
        ("train", {b"data": GOOD[b"data"], b"fine_labels": [0] * 99 + [100]}, r"fine_labels\[99\] must be in 0..99"),
        ("train", {b"data": GOOD[b"data"], b"fine_labels": ["a"] * 100}, r"fine_labels\[0\] must be in 0..99"),
        ("train", {b"fine_labels": [0]}, "has no data"),
        ("test", {b"data": GOOD[b"data"]}, "has no fine_labels"),
        ("meta", {b"fine_label_names": [b"a"]}, "list of 100 names"),
    ],
)
def test_20_inconsistent_content_is_named(tmp_path, name, content, message):
    folder = write_cifar(tmp_path / "cifar", **{name: content})
    with pytest.raises(DataError, match=rf"cifar/{name}.* {message}"):
        dmlcore.data.load("cifar100", root=folder)


@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_20_a_missing_file_is_named(tmp_path, name):
    folder = write_cifar(tmp_path / "cifar")
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"cifar/{name} is missing; unpack https"):
        dmlcore.data.load("cifar100", root=folder)


# Archives


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, io.BytesIO(content)


@pytest.fixture
def forge(tmp_path):
    """Return a function that packs members and tries to unpack them; no file but the archive may exist afterwards."""
    (tmp_path / "sandbox").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()

    def refused(*members, message):
        archive = tmp_path / "sandbox" / "forged.tgz"
        with tarfile.open(archive, "w:gz", format=tarfile.GNU_FORMAT) as tar:
            for info, content in members:
                tar.addfile(info, content)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        with pytest.raises(DataError, match=message):
            archives.unpack(archive, tmp_path / "sandbox" / "into", sha256=digest)
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["forged.tgz", "outside", "sandbox"]

    return refused


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/tmp/dml-lab-evil", "..", "a\\..\\evil", "//evil", "./../evil"]
)
def test_21_a_name_that_leads_outside_is_refused(forge, name):
    forge(member("good", b"1"), member(name, b"evil"), message="leads outside the folder")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_21_links_devices_and_sparse_files_are_refused(forge, kind, tmp_path):
    info = member("link", type=kind, linkname=str(tmp_path / "outside"))
    forge(info, member("link/evil", b"evil"), message="neither a regular file nor a folder")


def test_21_a_doubled_name_is_refused(forge):
    forge(member("a", b"1"), member("a", b"2"), message="cannot be unpacked .*exists")


def test_21_a_bomb_is_stopped_at_the_ceiling(forge, monkeypatch):
    monkeypatch.setattr(archives, "MAX_EXPANSION", 10)
    forge(member("zeros", bytes(3 * 2**20)), message=r"it unpacks to more than [\d,]+ bytes")


def test_21_a_bomb_in_the_headers_is_stopped_too(forge, monkeypatch):
    monkeypatch.setattr(archives, "MAX_EXPANSION", 10)
    forge(member("a" * 3 * 2**20, b""), message=r"it unpacks to more than [\d,]+ bytes")


def test_21_too_many_files_are_refused(forge, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 5)
    forge(*(member(f"{number}") for number in range(6)), message="it has more than 5 files")


@pytest.mark.parametrize("keep", [0, 1, 20, 0.5, 0.99])
def test_21_a_cut_archive_leaves_nothing(tmp_path, keep):
    noise = np.random.default_rng(0).bytes(100_000)
    path = tmp_path / "whole.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(*member("noise", noise))
    packed = path.read_bytes()
    packed = packed[: keep if isinstance(keep, int) else int(keep * len(packed))]
    path.write_bytes(packed)
    with pytest.raises(DataError, match=r"whole.tgz cannot be unpacked"):
        archives.unpack(path, tmp_path / "into", sha256=hashlib.sha256(packed).hexdigest())
    assert [file.name for file in tmp_path.iterdir()] == ["whole.tgz"]


def test_21_damaged_compression_leaves_nothing(tmp_path):
    path = tmp_path / "damaged.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(*member("text", np.random.default_rng(0).bytes(50_000).hex().encode()))
    packed = path.read_bytes()
    header = 10 + len("damaged.tgz\0")  # time stamp and file name, where a flipped bit is harmless
    for position in range(header, len(packed), 997):
        path.write_bytes(packed[:position] + bytes([packed[position] ^ 255]) + packed[position + 1 :])
        with pytest.raises(DataError, match=r"damaged.tgz"):
            archives.unpack(path, tmp_path / "into", sha256=hashlib.sha256(path.read_bytes()).hexdigest())
        assert [file.name for file in tmp_path.iterdir()] == ["damaged.tgz"]


def test_21_a_flipped_byte_fails_the_digest_of_a_known_archive(tmp_path, monkeypatch):
    path = tmp_path / "known.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(*member("a", b"1"))
    packed = bytearray(path.read_bytes())
    known = archives.Archive("known.tgz", len(packed), hashlib.sha256(packed).hexdigest())
    monkeypatch.setattr(archives, "KNOWN", (known,))
    packed[-1] ^= 1
    path.write_bytes(packed)
    with pytest.raises(DataError, match=r"SHA-256 .* damaged or altered; download it again"):
        archives.unpack(path, tmp_path / "into")
    assert not (tmp_path / "into").exists()


# Splits


def samples(labels, train_classes=2, **more):
    labels = np.asarray(labels)
    names = more.pop("class_names", tuple("abcdefgh"[: labels.max() + 1]))
    return Samples(np.zeros((len(labels), 1), np.float32), labels, names, train_classes, **more)


def test_22_a_class_under_two_numbers_is_refused():
    forged = samples(np.repeat(np.arange(4), 3), class_names=("crow", "wren", "crow", "tern"))
    with pytest.raises(DataError, match=r"in both train and test: class crow \(numbers 0 and 2\)"):
        splits.partition(forged, "classes", "none", 0)


def test_22_a_image_on_both_sides_is_refused_and_the_pairs_listed():
    keys = ["1", "2", "3", "4", "1", "5", "4", "6"]
    forged = samples([0, 0, 1, 1, 2, 2, 3, 3], keys=keys)
    with pytest.raises(DataError, match=r"image 1 \(rows 0 and 4\); image 4 \(rows 3 and 6\); correct"):
        splits.partition(forged, "classes", "none", 0)


def test_22_long_lists_of_pairs_are_cut():
    keys = [str(row % 10) for row in range(20)]
    forged = samples(np.repeat(np.arange(4), 5), keys=keys)
    with pytest.raises(DataError, match=r"and 5 more; correct the lists"):
        splits.partition(forged, "classes", "none", 0)


def test_23_classes_with_one_sample_are_never_drawn_and_counted():
    labels = np.array([0, 0, 1, 2, 2, 3])
    sampler = BalancedSampler(labels, 2, 2, seed=0)
    assert sampler.left_out == 2
    assert set(np.concatenate([labels[sampler.batch(step)] for step in range(50)])) == {0, 2}


def test_24_too_few_classes_for_a_batch_stop_before_the_start():
    labels = [0, 0, 1, 2, 2, 3]
    with pytest.raises(ValueError, match=r"needs 3 classes, but only 2 of 4 have two samples or more \(2 have one\)"):
        BalancedSampler(labels, 3, 2, seed=0)


@pytest.mark.parametrize(
    ("labels", "split", "validation", "message"),
    [
        (
            [0, 0, 1, 1],
            "classes",
            "none",
            r"split 'classes' leaves the test split empty \(train 4 samples of 2 classes",
        ),
        ([0, 0, 1, 1, 2, 2], "classes", "none", r"split 'classes' leaves the test split with a single class"),
        ([0, 0, 0, 1, 1, 1], "samples", "none", r"split 'samples' leaves the test split empty"),
        (np.arange(4).repeat(4), "classes", "classes", r"validation 'classes' leaves the train split empty"),
        (np.arange(4).repeat(3), "classes", "samples", r"validation 'samples' leaves the validation split empty"),
    ],
)
def test_25_an_empty_split_names_the_protocol_and_the_numbers(labels, split, validation, message):
    with pytest.raises(DataError, match=message):
        splits.partition(samples(labels), split, validation, 0)


# Memory


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="reads the peak memory from Linux")
def test_no_image_of_20_mb_takes_300_mb_to_decode(tmp_path):
    adversarial_images.write_all(tmp_path)
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 20_000_000
    decode = [sys.executable, "-m", "tests.faults.adversarial_images", str(tmp_path)]
    grown = json.loads(subprocess.run(decode, stdout=subprocess.PIPE, check=True).stdout)
    assert {name: size for name, (size, _) in grown.items() if size > 300_000_000} == {}
    refused = {name for name, (_, fault) in grown.items() if fault}
    assert refused == {"tall.png", "progressive.jpg"}
    assert all("is too large to decode" in grown[name][1] for name in refused)


# Names


def is_shown(text):
    text.encode()
    return text.replace("\u200c", "").isprintable() and len(text) <= 200


def test_names_in_any_encoding_are_printable_and_their_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / ".cache"))
    foreign_names.write(tmp_path / "set")
    os.makedirs(os.path.join(os.fsencode(tmp_path / "set"), b"empty\xff"))
    made = dmlcore.data.load("folder", root=tmp_path / "set", image_size=16)
    assert len(set(made.class_names)) == 40
    assert all(map(is_shown, [*made.class_names, *made.keys, *made.notes]))
    assert {"Änte", "می‌خواهم", "a\\u202eb", "B\\xe4r"} <= set(made.class_names)
    assert made.inputs[[0, 159]].shape == (2, 3, 16, 16)
    assert made.image(80).shape == (16, 20, 3)
    assert len(set(made.keys)) == 160
    bear = made.class_names.index("B\\xe4r")
    assert fork_spec.class_of(made, "B\\xe4r") == fork_spec.class_of(made, os.fsdecode(b"B\xe4r")) == bear


def test_different_names_stay_different(tmp_path):
    for name in (b"a\xff", b"a\\xff", b"b" * 250, b"b" * 249 + b"c", b"\xff" * 200):
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        Image.new("RGB", (20, 16)).save(os.fsdecode(os.path.join(folder, b"0.png")))
    names = dmlcore.data.read("folder", root=tmp_path).class_names
    assert len(set(names)) == 5
    assert all(map(is_shown, names))
    assert "a\\xff" in names


def test_an_image_that_cannot_be_read_is_named_in_any_encoding(tmp_path):
    foreign_names.write(tmp_path)
    bad = next(tmp_path.glob("B*r/*0.png"))
    bad.write_bytes(b"no image")
    with pytest.raises(DataError) as raised:
        images.thumbnail(bad)
    assert "B\\xe4r" in str(raised.value)
    str(raised.value).encode()


def test_labels_of_foreign_shards_are_printable(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / ".cache"))
    labels = ["\ud800", "a\0b\x1b[31m", "x" * 2**18, "plain", "Bär".encode("latin-1")]
    content = io.BytesIO()
    Image.new("RGB", (20, 16)).save(content, "PNG")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number, label in enumerate(labels):
            about = ("cls", label) if isinstance(label, bytes) else ("json", json.dumps({"label": label}).encode())
            for ending, part in (("png", content.getvalue()), about):
                info = tarfile.TarInfo(f"{number}é.{ending}".encode("latin-1").decode("utf-8", "surrogateescape"))
                info.size = len(part)
                tar.addfile(info, io.BytesIO(part))
    made = dmlcore.data.read("folder", root=tmp_path)
    assert len(set(made.class_names)) == 5
    assert {"\\ud800", "a\\x00b\\x1b[31m", "B\\xe4r", "plain"} < set(made.class_names)
    assert all(map(is_shown, [*made.class_names, *made.keys]))
    assert made.inputs[:].shape == (5, 3, 64, 64)
    os.rename(tmp_path / "a.tar", os.path.join(os.fsencode(tmp_path), b"shard\xff.tar"))
    with pytest.raises(DataError, match=r"shard.xff.tar: the name of this tar file is not UTF-8; rename it"):
        dmlcore.data.read("folder", root=tmp_path)
