"""Images that are drawn on first access and cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlcore.data.dataset import rows_of
from dmlcore.typing import Ints, Pixels

CHUNK = 64  # number of images per call of `draw`; so small that intermediate results fit into the CPU cache


class Drawings:
    """Images (N, ...) uint8 that are drawn on first access; `draw` maps ascending indices (n,) to images (n, ...).

    Indexing follows numpy along the first axis and returns a copy. `drawn_from(index)` must return all values that
    determine the image as bytes; the identifier of the sample is computed from them.
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        shape: tuple[int, ...],
        draw: Callable[[Ints], Pixels],
        drawn_from: Callable[[int], bytes],
    ) -> None:
        self.shape, self._draw, self.drawn_from = shape, draw, drawn_from
        # The operating system provides memory only for pages that are written, that is, for images that are drawn.
        self._images = np.empty(shape, np.uint8)
        self._is_drawn = np.zeros(len(self), bool)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any, /) -> Pixels:
        rows = rows_of(index, len(self))
        missing = np.unique(rows[~self._is_drawn[rows]])
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            self._images[chunk] = self._draw(chunk)
            self._is_drawn[chunk] = True
        return self._images.take(rows, axis=0)
