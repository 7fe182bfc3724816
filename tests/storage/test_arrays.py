"""Truncated, forged or corrupted array files give one readable error and allocate nothing of the claimed size."""

import io
import mmap
import os
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlcore.inspection import neighbours
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable

RANDOM = np.random.default_rng(5)
GOOD: dict[str, Any] = {
    "embeddings": RANDOM.normal(size=(40, 6)).astype(np.float32),
    "labels": np.arange(40) % 5,
    "indices": np.arange(100, 140),
    "class_labels": np.arange(5),
    "class_map_at_r": np.array([0.5, np.nan, 0.25, 0.0, 1.0], np.float32),
}


def read(path: Path) -> dict[str, Any]:
    return arrays.read(path, EMBEDDINGS, remedy="Evaluate the run again")


def claiming(header: str) -> Callable[[Path], None]:
    """Write an archive whose embeddings have this header and almost no content."""

    def write(path: Path) -> None:
        np.savez(path, **{name: value for name, value in GOOD.items() if name != "embeddings"})
        with zipfile.ZipFile(path, "a") as archive:
            text = header.encode().ljust(118) + b"\n"
            archive.writestr(
                "embeddings.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"0" * 64
            )

    return write


def saved(**changes: Any) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **(GOOD | changes))


def without(name: str) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **{key: value for key, value in GOOD.items() if key != name})


def with_value(name: str, value: float) -> Callable[[Path], None]:
    spoilt = GOOD[name].copy()
    spoilt.flat[3] = value
    return saved(**{name: spoilt})


def bomb(path: Path) -> None:
    np.savez_compressed(path, **GOOD)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        file = io.BytesIO()
        np.save(file, np.zeros(2**22, np.uint8))
        archive.writestr("is_gallery.npy", file.getvalue())


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "fewer labels than rows": (saved(labels=np.arange(39)), "labels has a dimension of 39 instead of 40"),
    "fewer indices than rows": (saved(indices=np.arange(39)), "indices has a dimension of 39 instead of 40"),
    "a gallery of another length": (
        saved(is_gallery=np.zeros(41, bool)),
        "is_gallery has a dimension of 41 instead of 40",
    ),
    "scores of other classes": (saved(class_labels=np.arange(6)), "class_map_at_r has a dimension of 5 instead of 6"),
    "23 TiB": (claiming("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 160000000000), }"), "is declared as"),
    "beyond any machine": (
        claiming(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (40, {10**40}), }}"),
        "is declared as",
    ),
    "below zero": (
        claiming("{'descr': '<f4', 'fortran_order': False, 'shape': (-40, 6), }"),
        "embeddings has a negative dimension",
    ),
    "objects": (saved(labels=np.array([None] * 40)), "labels is object"),
    "texts": (saved(labels=np.array(["a"] * 40)), "labels is <U1"),
    "integers": (saved(embeddings=np.zeros((40, 6), int)), "embeddings is int64"),
    "one dimension": (saved(embeddings=np.zeros(40, np.float32)), "embeddings is float32 40"),
    "NaN": (with_value("embeddings", np.nan), "embeddings must contain numbers up to"),
    "Inf": (with_value("embeddings", np.inf), "embeddings must contain numbers up to"),
    "1e30": (with_value("embeddings", 1e30), "in magnitude, got 1e"),
    "a class below zero": (with_value("labels", -1), "labels has values from -1"),
    "a huge class": (with_value("labels", 2**40), "labels has values from"),
    "a sample below zero": (with_value("indices", -7), "indices has values from -7"),
    "no labels": (without("labels"), "the array labels is missing"),
    "a bomb": (bomb, "is_gallery is uint8"),
    "empty": (lambda path: path.write_bytes(b""), "cannot be read"),
    "cut": (lambda path: (np.savez(path, **GOOD), os.truncate(path, 900))[0], "cannot be read"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "a folder": (os.mkdir, "cannot be read"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_does_not_fit_is_one_error_that_says_what(kind: str, tmp_path: Path) -> None:
    write, words = BAD[kind]
    path = tmp_path / "a.npz"
    write(path)
    tracemalloc.start()
    with pytest.raises(Unreadable) as caught:
        read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert words in str(caught.value)
    assert str(caught.value).startswith("The file a.npz cannot be read (")
    assert str(caught.value).endswith(". Evaluate the run again.")
    assert most < 2**20


def test_what_fits_comes_back_and_only_what_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **GOOD | {"later": np.zeros(3)}, labels_of_old=np.zeros(2))
    found = read(path)
    assert found.keys() == GOOD.keys()
    for name, value in GOOD.items():
        np.testing.assert_array_equal(found[name], value)
    assert found["labels"].dtype == np.int64
    only = arrays.read(path, EMBEDDINGS, "labels", "is_gallery", remedy="x")
    assert only.keys() == {"labels"}
    with pytest.raises(Unreadable, match="instead of 41"):
        arrays.read(path, EMBEDDINGS, "labels", remedy="x", n=41)


def test_a_flipped_bit_is_found_or_does_nothing(tmp_path: Path) -> None:
    path, source = tmp_path / "a.npz", random.Random(3)
    np.savez(path, **GOOD)
    whole = path.read_bytes()
    caught = 0
    for _ in range(400):
        spoilt = bytearray(whole)
        spoilt[source.randrange(len(whole))] ^= 1 << source.randrange(8)
        path.write_bytes(spoilt)
        try:
            found = read(path)
        except Unreadable:
            caught += 1
        else:
            for name in found:
                np.testing.assert_array_equal(found[name], GOOD[name])
    assert caught > 250


def test_neighbours_of_other_embeddings_or_out_of_range_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **GOOD)
    first = neighbours.read(path)
    kept = neighbours.path_of(path)
    with np.load(kept) as file:
        table = dict(file)
    for changes in (
        {"neighbours": table["neighbours"] + 40},
        {"neighbours": table["neighbours"][:30]},
        {"nearest": table["nearest"] + 40},
        {"rank": table["rank"].astype(float)},
        {"distances": table["distances"] * np.nan},
    ):
        np.savez(kept, **(table | changes))
        np.testing.assert_array_equal(neighbours.read(path).neighbours, first.neighbours)


def test_large_arrays_are_mapped_and_checked_as_others_are(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    with open(path, "wb") as file:
        arrays.save(file, **GOOD)
    with np.load(path) as by_numpy:
        assert all(np.array_equal(by_numpy[name], GOOD[name], equal_nan=name == "class_map_at_r") for name in GOOD)
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", 1)
    stored = read(path)
    for name, values in GOOD.items():
        assert stored[name].dtype == values.dtype
        assert np.array_equal(stored[name], values, equal_nan=values.dtype.kind == "f")
        base = stored[name]
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base.obj, mmap.mmap), f"{name} is a view of the file"
        assert stored[name].__array_interface__["data"][0] % arrays.ALIGNED == 0
    # more than zipfile reads with the header, so that the CRC is checked by our code
    wide = np.tile(GOOD["embeddings"], 1000)
    np.savez(tmp_path / "b.npz", **GOOD | {"embeddings": wide})
    content = bytearray((tmp_path / "b.npz").read_bytes())
    content[content.index(wide.tobytes()) + wide.nbytes - 4] ^= 1
    (tmp_path / "b.npz").write_bytes(content)
    with pytest.raises(Unreadable, match="wrong CRC"):
        read(tmp_path / "b.npz")
    with_value("embeddings", np.nan)(path)
    with pytest.raises(Unreadable, match="must contain numbers"):
        read(path)
    np.savez_compressed(path, **GOOD)
    assert np.array_equal(read(path)["embeddings"], GOOD["embeddings"])
