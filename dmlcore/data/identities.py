"""Which samples these are, told from what they hold: indices and labels alone are the same for another draw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Dataset
from dmlcore.typing import Bytes, Ints

CHUNK = 4096  # samples read at once
BYTES = 8  # of a digest: of a million samples no two are alike by chance, one in 40 million


def identities(data: Dataset, indices: Ints) -> Bytes:
    """Eight bytes (n, 8) for each of these samples, the same wherever the sample is the same and else others.

    Of an image that lies in a file: its name in the lists and the size of the file in bytes, as reading all of them
    would take minutes; so it does not depend on how large the image is shown to the network. Of an image that is
    drawn: what it is drawn from (`inputs.drawn_from`). Of all others: the inputs. Raises DataError for a missing file.
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
