import random
import struct
import zlib

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.io.matlab import MatlabFunction, MatlabObject, MatlabOpaque

from dmlcore.data import DataError
from dmlcore.data.files import matlab, matlab_worker
from dmlcore.data.readers import flowers
from tests.data import layouts


def read(path):
    return matlab.read(path, flowers.INFO)


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def annotations(request, tmp_path):
    layouts.cars_single(tmp_path, compressed=request.param, images=False)
    return tmp_path / "cars_annos.mat"


def test_structs_cells_and_numbers_are_those_of_scipy(annotations):
    expected = loadmat(annotations, squeeze_me=True)
    found = read(annotations)
    rows = expected["annotations"]
    assert found.words("annotations.relative_im_path") == tuple(rows["relative_im_path"])
    for field in ("class", "test", "bbox_x1"):
        assert found.integers(f"annotations.{field}").tolist() == rows[field].tolist()
    assert found.words("class_names") == tuple(expected["class_names"])
    assert "annotations.class" in found
    assert "annotations.classes" not in found


def test_numbers_of_every_type_and_orientation_become_int64(tmp_path):
    kinds = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
    shapes = [(1, 7), (7, 1), (1, 1)]
    written = {
        f"{kind}_{number}": np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(kind)
        for kind in kinds
        for number, shape in enumerate(shapes)
    }
    savemat(tmp_path / "a.mat", written)
    found = read(tmp_path / "a.mat")
    for name, values in written.items():
        assert found.integers(name).dtype == np.int64
        assert found.integers(name).tolist() == values.ravel().tolist(), name


def test_big_endian_files_are_read(tmp_path):
    """The bytes are written by hand, because scipy writes only little-endian files: labels = [258, 3], uint16 for
    double.
    """
    content = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 1, 2)
    content += struct.pack(">HH4s", 1, 1, b"n\0\0\0") + struct.pack(">II2H4x", 4, 4, 258, 3)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(content)) + content)
    assert read(tmp_path / "a.mat").integers("n").tolist() == [258, 3]


def nested(value):
    """Return a struct array of one entry with the field `c`."""
    found = np.zeros((1, 1), dtype=[("c", object)])
    found[0, 0]["c"] = value
    return found


WRONG = {
    "half": (np.array([[1.0, 2.5]]), ", entry 2: expected a whole number, got 2.5"),
    "nan": (np.array([[1.0, np.nan]]), ", entry 2: expected a whole number, got nan"),
    "inf": (np.array([[1.0, np.inf]]), ", entry 2: expected a whole number, got inf"),
    "large": (np.array([[2.0**53]]), ", entry 1: expected a whole number"),
    "complex": (np.array([[1 + 2j]]), ", entry 1: expected a whole number"),
    "matrix": (np.zeros((2, 2)), ": shape 2 x 2 instead of one row"),
    "empty": (np.zeros((0, 0)), ": shape 0 x 0 instead of one row"),
    "word": ("word", ", entry 1: expected a whole number, got 'word'"),
    "cells": (layouts.cells(["a", "b"]), ", entry 1: expected a whole number, got 'a'"),
    "numbers.c": (layouts.structs(c=[1, "x"]), ", entry 2: expected a whole number, got 'x'"),
    "deep.c": (nested(layouts.cells([layouts.cells(["deep"])])), ", entry 1: expected a whole number, got None"),
    "pair.c": (nested(np.array([[1, 2]])), ", entry 1: expected a whole number, got None"),
    "absent": (None, ": missing; the file has "),
}


def test_what_is_not_whole_numbers_is_refused(tmp_path):
    savemat(
        tmp_path / "a.mat", {name.partition(".")[0]: value for name, (value, _) in WRONG.items() if name != "absent"}
    )
    found = read(tmp_path / "a.mat")
    for name, (_, message) in WRONG.items():
        with pytest.raises(DataError, match=rf"a.mat: {name}{message}.*; restore it from https"):
            found.integers(name)


def test_what_is_not_text_is_refused(tmp_path):
    savemat(tmp_path / "a.mat", {"s": layouts.structs(c=["x", 1], d=["x", "  "]), "n": np.arange(1, 3)})
    found = read(tmp_path / "a.mat")
    for name, row in (("s.c", 2), ("s.d", 2), ("n", 1)):
        with pytest.raises(DataError, match=f"a.mat: {name}, entry {row}: expected text, got "):
            found.words(name)
    with pytest.raises(DataError, match=r"a.mat: s: missing; the file has n, s.c, s.d; restore"):
        found.words("s")


def test_a_file_is_read_again_only_after_it_has_changed(tmp_path, monkeypatch):
    savemat(tmp_path / "a.mat", {"n": np.arange(1, 3)})
    assert read(tmp_path / "a.mat").integers("n").tolist() == [1, 2]
    with monkeypatch.context() as patch:
        patch.setattr(matlab.subprocess, "run", None)
        assert read(tmp_path / "a.mat").integers("n").tolist() == [1, 2]
    savemat(tmp_path / "a.mat", {"n": np.arange(1, 9)})
    assert read(tmp_path / "a.mat").integers("n").tolist() == list(range(1, 9))


def ask_everything(path):
    found = read(path)
    found.words("annotations.relative_im_path")
    found.integers("annotations.class")
    found.words("class_names")


@pytest.mark.parametrize("keep", [0, 127, 130, 0.7])
def test_20_a_cut_file_is_named(annotations, keep):
    raw = annotations.read_bytes()
    annotations.write_bytes(raw[: keep if isinstance(keep, int) else int(keep * len(raw))])
    with pytest.raises(DataError, match=r"cars_annos.mat"):
        ask_everything(annotations)


def test_20_no_damaged_byte_does_more_than_raise(tmp_path):
    """Some of these bytes make scipy crash with a segmentation fault, which only ends its own process."""
    layouts.cars_single(tmp_path, compressed=False, images=False)
    path = tmp_path / "cars_annos.mat"
    raw, draw, refused = path.read_bytes(), random.Random(4), []
    for _ in range(12):
        forged = bytearray(raw)
        for _ in range(draw.choice((1, 1, 4))):
            position = draw.randrange(draw.choice((600, len(raw))))
            forged[position] = draw.choice((0, 255, draw.randrange(256)))
        path.write_bytes(forged)
        try:
            ask_everything(path)
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 3
    assert any("scipy was terminated by SIGSEGV" in message for message in refused), "needs no separate process"


def test_20_other_files_are_refused_by_what_they_are(tmp_path):
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(512, b"\0"))
    with pytest.raises(DataError, match=r"version 5 but a file of version 7.3 \(HDF5\)"):
        read(path)
    path.write_bytes(b"\x80\x04c__builtin__\neval\n".ljust(512, b"\0"))
    with pytest.raises(DataError, match=r"not a .mat file of version 5 but truncated or a different kind of file"):
        read(path)
    with pytest.raises(DataError, match=r"b.mat is missing; restore it"):
        read(tmp_path / "b.mat")


@pytest.mark.parametrize("kind", [3, 5, 16, 17])  # object, sparse, function handle, opaque
def test_20_objects_and_functions_are_refused(tmp_path, kind):
    savemat(tmp_path / "a.mat", {"n": np.array([[1.0, 2.0]])})
    raw = bytearray((tmp_path / "a.mat").read_bytes())
    assert raw[144] == 6  # the class in the flags: double
    raw[144] = kind
    (tmp_path / "a.mat").write_bytes(raw)
    with pytest.raises(DataError, match=r"a.mat(: n: not numbers, text, cells or structs| is damaged: )"):
        read(tmp_path / "a.mat").integers("n")


@pytest.mark.parametrize("kind", [MatlabObject, MatlabOpaque, MatlabFunction])
def test_20_what_scipy_makes_of_them_is_neither_numbers_nor_structs(kind):
    content = np.zeros((1, 1), dtype=[("f", object)])
    assert dict(matlab_worker.columns("n", content)) == {"n.f": [None]}
    assert dict(matlab_worker.columns("n", content.view(kind))) == {"n": "not numbers, text, cells or structs"}


def test_20_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(matlab, "MAX_BYTES", 10_000)
    monkeypatch.setattr(matlab, "MEMORY", 2**21)
    savemat(tmp_path / "a.mat", {"n": np.zeros((1, 2**19), np.int64)}, do_compression=True)
    assert (tmp_path / "a.mat").stat().st_size < 10_000
    with pytest.raises(DataError, match="is damaged: it needs too much memory"):
        read(tmp_path / "a.mat")
    (tmp_path / "a.mat").write_bytes(bytes(20_000))
    with pytest.raises(DataError, match="20,000 bytes, above the limit of 10,000"):
        read(tmp_path / "a.mat")


def test_20_a_cut_stream_is_refused(tmp_path):
    savemat(tmp_path / "a.mat", {"n": np.arange(1, 500.0)[None]}, do_compression=True)
    raw = (tmp_path / "a.mat").read_bytes()
    _, length = struct.unpack_from("<II", raw, 128)
    packed = zlib.compress(zlib.decompress(raw[136 : 136 + length]))[:-9]
    (tmp_path / "a.mat").write_bytes(raw[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DataError, match="is damaged: "):
        read(tmp_path / "a.mat")
