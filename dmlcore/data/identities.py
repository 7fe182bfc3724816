"""Identities of samples, computed from their contents; indices and labels are the same for other random draws."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Dataset
from dmlcore.typing import Bytes, Ints

CHUNK = 4096  # samples per read
BYTES = 8  # bytes per digest: among a million samples, a collision has a probability of 1 in 40 million


def identities(data: Dataset, indices: Ints) -> Bytes:
    """Return eight bytes (n, 8) per sample that are equal if and only if the sample is the same.

    For an image file they depend on its name in the lists and the size of the file, because reading all files would
    take minutes; so they do not depend on the image size of the network. For a generated image they depend on the
    values it is drawn from (`inputs.drawn_from`), for all other samples on the inputs. Raises DataError for a missing
    file.
    """
    digests = b"".join(hashlib.blake2b(content, digest_size=BYTES).digest() for content in _contents(data, indices))
    return np.frombuffer(digests, np.uint8).reshape(-1, BYTES)


def _contents(data: Dataset, indices: Ints) -> Iterator[bytes]:
    drawn_from: Any = getattr(data.inputs, "drawn_from", None)
    if data.keys is not None and data.files is not None:
        for index in indices.tolist():
            try:
                yield f"{data.keys[index]}\0{data.files[index].stat().st_size}".encode("utf-8", "surrogateescape")
            except OSError as error:
                raise DataError(f"image {data.files[index]} cannot be read ({error}); complete the data set") from None
    elif drawn_from is not None:
        for index in indices.tolist():
            yield drawn_from(index)
    else:
        for start in range(0, len(indices), CHUNK):
            for sample in np.ascontiguousarray(data.inputs[indices[start : start + CHUNK]]):
                yield repr(sample.shape).encode() + sample.tobytes()
