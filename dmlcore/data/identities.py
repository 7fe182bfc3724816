"""Identifiers of samples, computed from their contents, because generated data sets reuse indices and labels.

Equal identifiers mean the same sample, also in data sets that were generated from different seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Dataset
from dmlcore.typing import Bytes, Ints

CHUNK = 4096  # samples read at a time
BYTES = 8  # number of bytes per digest; a collision among a million samples has a probability of 1 in 40 million


def identities(data: Dataset, indices: Ints) -> Bytes:
    """Return an eight-byte digest of each sample, shape (n, 8); equal digests mean the same sample.

    The digest of an image file is computed from its name in the lists and its size in bytes, because reading all files
    would take minutes. It therefore does not depend on the image size of the network. The digest of a generated image
    is computed from the values that determine the image (`inputs.drawn_from`), that of an imported vector from its id
    (`inputs.identity_of`), so that different embeddings of a sample are equal, and that of any other sample from its
    inputs. Raises DataError if a file is missing.
    """
    digests = b"".join(hashlib.blake2b(content, digest_size=BYTES).digest() for content in _contents(data, indices))
    return np.frombuffer(digests, np.uint8).reshape(-1, BYTES)


def _contents(data: Dataset, indices: Ints) -> Iterator[bytes]:
    drawn_from: Any = getattr(data.inputs, "drawn_from", None)
    identity_of: Any = getattr(data.inputs, "identity_of", None)
    if identity_of is not None:
        for index in indices.tolist():
            yield identity_of(index)
    elif data.keys is not None and data.files is not None:
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
