import faulthandler
import random
import struct
import zlib

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.io.matlab import MatlabFunction, MatlabObject, MatlabOpaque

from dmlcore.data import DataError, locate
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
    assert found.field_words("annotations", "relative_im_path") == tuple(rows["relative_im_path"])
    for field in ("class", "test", "bbox_x1"):
        assert found.field_integers("annotations", field).tolist() == rows[field].tolist()
    assert found.words("class_names") == tuple(expected["class_names"])
    assert found.has_field("annotations", "class")
    assert not found.has_field("annotations", "classes")


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (1, 1)])
def test_numbers_of_every_type_become_int64(tmp_path, dtype, shape):
    values = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)
    savemat(tmp_path / "a.mat", {"before": "x", "n": values, "after": np.zeros(3)})
    found = read(tmp_path / "a.mat").integers("n")
    assert found.dtype == np.int64
    assert found.tolist() == values.ravel().tolist()


def test_small_integers_do_not_wrap_around(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.array([[250, 255]], dtype=np.uint8)})
    assert (read(tmp_path / "a.mat").integers("labels") + 10).tolist() == [260, 265]


def test_big_endian_files_are_read(tmp_path):
    """The bytes are written by hand, because scipy writes only little-endian files: labels = [258, 3], uint16 for
    double.
    """
    content = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 1, 2)
    content += struct.pack(">HH4s", 1, 1, b"n\0\0\0") + struct.pack(">II2H4x", 4, 4, 258, 3)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(content)) + content)
    assert read(tmp_path / "a.mat").integers("n").tolist() == [258, 3]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([[1.0, 2.5]]), r"n: expected whole numbers, got 2.5 at position 2"),
        (np.array([[1.0, np.nan]]), r"n: expected whole numbers"),
        (np.array([[1.0, np.inf]]), r"n: expected whole numbers"),
        (np.array([[1 + 2j]]), r"n: not real numbers"),
        (np.zeros((2, 2)), r"n: shape 2 x 2 instead of one row"),
        (np.zeros((0, 0)), r"n: shape 0 x 0 instead of one row"),
        ("word", r"n: not real numbers"),
        (layouts.cells(["a", "b"]), r"n: not real numbers"),  # an object array
        (layouts.structs(a=[1, 2]), r"n: not real numbers"),
    ],
)
def test_what_is_not_whole_numbers_is_refused(tmp_path, value, message):
    savemat(tmp_path / "a.mat", {"n": value})
    with pytest.raises(DataError, match=rf"a.mat: {message}.*; restore it from https"):
        read(tmp_path / "a.mat").integers("n")


@pytest.mark.parametrize(
    ("column", "ask", "message"),
    [
        ([1, "x"], "field_integers", "s.c, entry 2: not real numbers"),
        (["x", 1], "field_words", "s.c, entry 2: expected text"),
        (["x", "  "], "field_words", "s.c, entry 2: expected text"),
    ],
)
def test_an_entry_of_another_kind_is_named(tmp_path, column, ask, message):
    savemat(tmp_path / "a.mat", {"s": layouts.structs(c=column)})
    with pytest.raises(DataError, match=message):
        getattr(read(tmp_path / "a.mat"), ask)("s", "c")


def test_nested_content_is_not_followed(tmp_path):
    found = np.zeros((1, 1), dtype=[("c", object)])
    found[0, 0]["c"] = layouts.cells([layouts.cells(["deep"])])
    savemat(tmp_path / "a.mat", {"s": found})
    with pytest.raises(DataError, match=r"s.c, entry 1: not real numbers"):
        read(tmp_path / "a.mat").field_integers("s", "c")


def test_a_missing_variable_or_field_says_what_there_is(annotations):
    with pytest.raises(DataError, match=r"lacks the variable 'labels' \(it has annotations, class_names\)"):
        read(annotations).integers("labels")
    with pytest.raises(DataError, match=r"annotations: field 'fname' is missing; there are: relative_im_path, bbox_x1"):
        read(annotations).field_words("annotations", "fname")
    with pytest.raises(DataError, match=r"class_names: not a struct array"):
        read(annotations).field_words("class_names", "fname")


def ask_everything(path):
    found = read(path)
    found.field_words("annotations", "relative_im_path")
    found.field_integers("annotations", "class")
    found.words("class_names")


@pytest.mark.parametrize("keep", [0, 1, 127, 128, 130, 200, 0.3, 0.7, 0.999])
def test_20_a_cut_file_is_named(annotations, keep):
    raw = annotations.read_bytes()
    annotations.write_bytes(raw[: keep if isinstance(keep, int) else int(keep * len(raw))])
    with pytest.raises(DataError, match=r"cars_annos.mat"):
        ask_everything(annotations)


def test_20_no_damaged_byte_does_more_than_raise(annotations):
    """Some of these bytes make scipy crash with a segmentation fault, which only ends its own process."""
    faulthandler.enable()
    raw, draw, refused = annotations.read_bytes(), random.Random(0), []
    for _ in range(120):
        forged = bytearray(raw)
        for _ in range(draw.choice((1, 1, 4))):
            position = draw.randrange(draw.choice((600, len(raw))))
            forged[position] = draw.choice((0, 255, draw.randrange(256)))
        annotations.write_bytes(forged)
        try:
            ask_everything(annotations)
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 20
    packed = raw[128] == 15
    assert packed or any("scipy was terminated by SIGSEGV" in said for said in refused), (
        "otherwise no separate process is needed"
    )


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
    for ask in ("integers", "words"):
        with pytest.raises(DataError, match=r"a.mat(: n: no (real numbers|cells)| is damaged: )"):
            getattr(read(tmp_path / "a.mat"), ask)("n")


@pytest.mark.parametrize("kind", [MatlabObject, MatlabOpaque, MatlabFunction])
def test_20_what_scipy_makes_of_them_is_neither_numbers_nor_structs(kind):
    content = np.zeros((1, 1), dtype=[("f", object)])
    assert "fields" in matlab_worker.plain(content)
    assert matlab_worker.plain(content.view(kind)) == {"shape": [1, 1]}


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


def test_a_file_of_the_packs_is_read_as_scipy_reads_it(pack):
    path = locate("cars", pack("cars-annotations.tar.gz")) / "devkit" / "cars_train_annos.mat"
    expected = loadmat(path, squeeze_me=True)["annotations"]
    found = read(path)
    assert found.field_integers("annotations", "class").tolist() == expected["class"].tolist()
    assert found.field_words("annotations", "fname") == tuple(expected["fname"])
