"""Reader of the Python layout of CIFAR-10 and CIFAR-100: pickles, loaded without executing code from the files."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Description, Samples
from dmlcore.typing import Ints, Pixels

SIDE, IMAGES = 32, 60_000  # pixels per side; number of images in each complete data set
MAX_BYTES = 400 * 2**20  # maximum size of a pickle; the largest official one has 155 million bytes


def samples(
    pixels: Pixels,
    labels: Ints,
    names: Sequence[str],
    training_rows: int,
    *,
    border: int,
    note: str = "",
) -> Samples:
    """Return samples with inputs `pixels` (N, 3, 32, 32).

    The first `training_rows` samples are the official training split. Classes with `labels` (N,) below `border` are the
    training classes of the class-disjoint split. Classes without images are left out and the remaining classes
    renumbered. `note` is appended to the message that says that the data set is incomplete.
    """
    present, compact = np.unique(labels, return_inverse=True)  # an incomplete copy may lack classes
    subset = f"a subset: {len(labels):,} of the {IMAGES:,} images"
    return Samples(
        inputs=pixels,
        labels=compact.astype(np.int64),
        class_names=tuple(names[label] for label in present),
        train_classes=int((present < border).sum()),
        official_train=np.arange(len(labels)) < training_rows,
        image=partial(image, pixels),
        notes=() if len(labels) == IMAGES else (subset + note,),
    )


def image(pixels: Any, index: int) -> Pixels:
    """Return image `index` of pixels (N, 3, H, W) as (H, W, 3)."""
    return np.ascontiguousarray(pixels[index].transpose(1, 2, 0))


def read(
    paths: Sequence[Path], info: Description, fields: Mapping[str, int]
) -> tuple[Pixels, dict[str, Ints], list[int]]:
    """Read files in order; return pixels (N, 3, 32, 32) uint8, labels (N,) by field name, and row counts by file.

    `fields` maps the name of a label field to its number of classes. Raises DataError naming the file and its defect.
    """
    files = [_read_file(path, info, fields) for path in paths]
    pixels = np.concatenate([pixels for pixels, _ in files])
    labels = {field: np.concatenate([labels[field] for _, labels in files]) for field in fields}
    return pixels, labels, [len(pixels) for pixels, _ in files]


def read_names(path: Path, info: Description, field: str, count: int) -> tuple[str, ...]:
    """Read the list of `count` class names stored under `field`; raise DataError if it is missing or invalid."""
    names = _field(path, info, _load(path, info), field)
    if not isinstance(names, list) or len(names) != count:
        raise DataError(f"{path}: {field} must be a list of {count} names; restore the official file")
    return tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names)


def _read_file(path: Path, info: Description, fields: Mapping[str, int]) -> tuple[Pixels, dict[str, Ints]]:
    content = _load(path, info)
    pixels = _field(path, info, content, "data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * SIDE * SIDE,):
        shape = f"{pixels.dtype} of shape {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise DataError(f"{path}: data must be (n, {3 * SIDE * SIDE}) uint8, got {shape}; restore the official file")
    labels = {field: _labels(path, info, content, field, len(pixels), classes) for field, classes in fields.items()}
    return pixels.reshape(-1, 3, SIDE, SIDE), labels


def _labels(path: Path, info: Description, content: dict[Any, Any], field: str, rows: int, classes: int) -> Ints:
    labels = _field(path, info, content, field)
    if not isinstance(labels, list) or len(labels) != rows:
        count = len(labels) if isinstance(labels, list) else type(labels).__name__
        raise DataError(f"{path}: {field} must list {rows} numbers, got {count}; restore the official file")
    for row, label in enumerate(labels):
        if not isinstance(label, int) or not 0 <= label < classes:
            raise DataError(f"{path}: {field}[{row}] must be in 0..{classes - 1}, got {label!r}")
    return np.array(labels, dtype=np.int64)


def _field(path: Path, info: Description, content: dict[Any, Any], name: str) -> Any:
    for key in (name.encode(), name):  # copies rewritten by Python 3 have str keys
        if key in content:
            return content[key]
    raise DataError(f"{path} has no {name}; it is not a {_family(info)} file: restore the official one")


def _load(path: Path, info: Description) -> dict[Any, Any]:
    if not path.is_file():
        raise DataError(f"{path} is missing; unpack {info.url} again")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path} is larger than {MAX_BYTES:,} bytes, so it is not a {_family(info)} file")
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a truncated or forged pickle raises almost any exception
        raise DataError(
            f"{path} is truncated or not a {_family(info)} pickle ({error}); restore the official file"
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} contains a {type(content).__name__} instead of a dict; restore the official file")
    return content


def _family(info: Description) -> str:
    # the readers of CIFAR-100 collages use this function as well
    return "CIFAR-10" if info.folder == "cifar-10-batches-py" else "CIFAR-100"


def _encode_latin1(text: str, encoding: str) -> bytes:
    """Restore bytes from latin1 text; replaces `_codecs.encode`, which pickles rewritten by Python 3 call."""
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
    """Unpickler that allows only the globals needed to load a numeric array."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"global {module}.{name} is not allowed")
        return _ALLOWED[module, name]
