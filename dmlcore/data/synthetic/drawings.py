"""Images that are drawn, each when it is first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmlcore.data.dataset import rows_of
from dmlcore.typing import Ints, Pixels

CHUNK = 64  # images drawn at once: what is computed of them stays in the cache


class Drawings:
    """Images (N, ...) uint8; `draw` makes those of some rows (n,) ascending, as (n, ...).

    Indexing is numpy's along the first axis and returns a copy. What an image is drawn from, and nothing else, should
    be in `drawn_from(index)`, where identities of samples come from.
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        shape: tuple[int, ...],
        draw: Callable[[Ints], Pixels],
        drawn_from: Callable[[int], bytes],
    ) -> None:
        self.shape, self._draw, self.drawn_from = shape, draw, drawn_from
        self._images = np.empty(shape, np.uint8)  # memory is taken up as images are drawn
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
