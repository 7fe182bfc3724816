"""CIFAR-100 in its official python layout: pickles, read without running what a forged one might hold."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.data.dataset import DataError, Description, Labels, Picture, Samples

SIDE, CLASSES = 32, 100
MAX_BYTES = 400 * 2**20  # of a pickle; the official `train` has 155 million

INFO = Description(
    name="cifar100",
    title="CIFAR-100",
    sentence="Photographs of 32 x 32 pixels in 100 classes; classes 0-49 train, 50-99 test.",
    citation="A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images. University of Toronto, 2009.",
    kind="pictures",
    image_size=SIDE,
    needs_files=True,
    folder="cifar-100-python",
    markers=("train", "test", "meta"),
    archives=("cifar-100-python.tar.gz",),
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
)


def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read `train` and then `test`: inputs (N, 3, 32, 32) uint8, fine labels; complete set and subsets alike."""
    names = _class_names(folder / "meta")
    batches = [_batch(folder / part) for part in ("train", "test")]
    inputs = np.concatenate([pixels for pixels, _ in batches])
    fine = np.concatenate([labels for _, labels in batches])
    present, labels = np.unique(fine, return_inverse=True)  # a subset may lack classes
    return Samples(
        inputs=inputs,
        labels=labels.astype(np.int64),
        class_names=tuple(names[label] for label in present),
        train_classes=int((present < CLASSES // 2).sum()),
        official_train=np.arange(len(fine)) < len(batches[0][1]),
        picture=partial(_picture, inputs),
        notes=() if len(fine) == 60_000 else (f"a subset: {len(fine):,} of the 60,000 pictures",),
    )


def _picture(inputs: NDArray[np.uint8], index: int) -> Picture:
    return np.ascontiguousarray(inputs[index].transpose(1, 2, 0))


def _class_names(path: Path) -> list[str]:
    names = _field(path, _load(path), "fine_label_names")
    if not isinstance(names, list) or len(names) != CLASSES:
        raise DataError(f"{path}: fine_label_names must be a list of {CLASSES} names; restore the official file")
    return [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names]


def _batch(path: Path) -> tuple[Picture, Labels]:
    """Return pixels (n, 3, 32, 32) uint8 and fine labels (n,) of one file."""
    content = _load(path)
    pixels, labels = _field(path, content, "data"), _field(path, content, "fine_labels")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * SIDE * SIDE,):
        shape = f"{pixels.dtype} of shape {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise DataError(f"{path}: data must be (n, {3 * SIDE * SIDE}) uint8, got {shape}; restore the official file")
    if not isinstance(labels, list) or len(labels) != len(pixels):
        count = len(labels) if isinstance(labels, list) else type(labels).__name__
        raise DataError(f"{path}: fine_labels must list {len(pixels)} numbers, got {count}; restore the official file")
    for row, label in enumerate(labels):
        if not isinstance(label, int) or not 0 <= label < CLASSES:
            raise DataError(f"{path}: fine_labels[{row}] must be in 0..{CLASSES - 1}, got {label!r}")
    return pixels.reshape(-1, 3, SIDE, SIDE), np.array(labels, dtype=np.int64)


def _field(path: Path, content: dict[Any, Any], name: str) -> Any:
    for key in (name.encode(), name):  # copies rewritten under Python 3 have str keys
        if key in content:
            return content[key]
    raise DataError(f"{path} has no {name}; it is not a CIFAR-100 file: restore the official one")


def _load(path: Path) -> dict[Any, Any]:
    if not path.is_file():
        raise DataError(f"{path} is missing; unpack {INFO.url} again")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path} is larger than {MAX_BYTES:,} bytes, so it is not a CIFAR-100 file")
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a cut or forged pickle raises nearly anything
        raise DataError(
            f"{path} is truncated or not a CIFAR-100 pickle ({error}); restore the official file"
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds a {type(content).__name__} instead of a dict; restore the official file")
    return content


def _encode_latin1(text: str, encoding: str) -> bytes:
    """Stand in for `_codecs.encode` as Python 3 copies use it: bytes written as latin1 text."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"encoding {encoding!r} is not allowed")
    return text.encode("latin1")


_RECONSTRUCT = np.empty(0).__reduce__()[0]  # numpy's private _reconstruct, whose module was renamed in numpy 2


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode_latin1,
}


class _Unpickler(pickle.Unpickler):
    """Knows the globals that an array of numbers needs, and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"global {module}.{name} is not allowed")
        return _ALLOWED[module, name]
