"""Binary format of responses: a JSON header followed by arrays, quantised to the precision that a figure needs.

A response consists of a uint32 length, a JSON header of that many bytes, and the arrays one after another. The header's
"arrays" maps each array's name to [dtype, shape]. `assets/src/kit/socket.ts` decodes it.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.typing import Array, Bytes, Floats

ARROWS = 20  # number of arrows along each side of a view
# Names by dtype; numpy would construct the name string at every access to dtype.name.
NAMES = {np.dtype(name): name for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")}

Request = dict[str, Any]


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Encode a response from a header and named arrays.

    Arrays are little-endian and of any shape, with dtype uint8, int8, uint16, int16, uint32, int32 or float32.
    """
    table = {name: [NAMES[array.dtype], list(array.shape)] for name, array in arrays.items()}
    head = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(head)), head, *(np.ascontiguousarray(a).tobytes() for a in arrays.values())))


def unpack(answer: bytes) -> dict[str, Any]:
    """Decode a response: return its header, with the decoded arrays under "arrays". Inverse of `pack`."""
    (length,) = struct.unpack_from("<I", answer)
    header: dict[str, Any] = json.loads(answer[4 : 4 + length])
    at, arrays = 4 + length, {}
    for name, (dtype, shape) in header["arrays"].items():
        count = math.prod(shape)
        arrays[name] = np.frombuffer(answer, dtype, count, at).reshape(shape)
        at += arrays[name].nbytes
    return header | {"arrays": arrays}


def identity(request: Request) -> int:
    """Return the "id" of a request, which the response repeats; 0 if the request has none."""
    number = request.get("id")
    return number if isinstance(number, int) else 0


def number(x: float | None) -> float | None:
    """Return a float that JSON can represent: None if `x` is None or not finite, and 0 instead of -0."""
    return None if x is None or not math.isfinite(x) else x + 0.0


def shares(values: Floats) -> Bytes:
    """Quantise values in 0..1 to uint8; values outside are clipped, NaN becomes 0."""
    return np.asarray((255 * np.fmin(np.fmax(values, 0.0), 1.0) + 0.5).astype(np.uint8))


def signed_shares(values: Floats) -> Bytes:
    """Quantise values in -1..1 to 1..255 as uint8: 0 and NaN become 128, values outside are clipped."""
    held = np.minimum(np.maximum(values, -1.0), 1.0)
    return np.asarray((127 * np.where(np.isnan(held), 0.0, held) + 128.5).astype(np.uint8))


def fractions(values: Floats) -> NDArray[np.uint16]:
    """Quantise values in 0..1 to uint16; values outside are clipped."""
    return np.asarray((65535 * np.minimum(np.maximum(values, 0.0), 1.0) + 0.5).astype(np.uint16))


def over_view(lines: Sequence[Floats], view: tuple[float, float, float]) -> NDArray[np.uint16]:
    """Concatenate polylines, each (K, 2), and quantise their coordinates relative to `view` to uint16.

    `view` is (centre x, centre y, half width).
    """
    if not lines:
        return np.empty((0, 2), np.uint16)
    return fractions((np.concatenate(lines) - (np.array(view[:2]) - view[2])) / (2 * view[2]))


def arrows(force: Floats, reference: float) -> NDArray[np.int8]:
    """Return 127 F / (|F| + reference) as int8 for forces F (..., D).

    This keeps the directions and limits all lengths to less than 127.
    """
    length = np.sqrt(np.einsum("...i,...i->...", force, force))[..., None]
    return np.asarray(np.rint(127 * force / (length + reference)).astype(np.int8))


@lru_cache(maxsize=8)
def arrow_nodes(n: int) -> tuple[Array, Array]:
    """Return the row and column indices of the ARROWS x ARROWS nodes of an n x n grid at which arrows are drawn."""
    nodes = ((np.arange(ARROWS) + 0.5) * n / ARROWS).astype(int)
    return nodes[:, None], nodes[None, :]
