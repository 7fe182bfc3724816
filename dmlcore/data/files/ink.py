"""Display of single-channel ink drawings (0 for paper, 255 for ink) as dark ink on white."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlcore.typing import Pixels


def image(pixels: Any, index: int) -> Pixels:
    """Return drawing `index` of `pixels` (N, 1, H, W) uint8 as an RGB image (H, W, 3) with dark ink on white."""
    return np.repeat(255 - np.asarray(pixels[index])[0, :, :, None], 3, axis=2)
