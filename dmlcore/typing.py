"""Array types, named by their numbers: one name for each dtype, and no module defines its own.

Shapes stand beside the argument or field that has them, as (N, D).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Halves = NDArray[np.float16]
Reals = Floats | Singles

Ints = NDArray[np.int64]  # labels, indices, counts
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Pixels = NDArray[np.uint8]  # (..., h, w, 3) of images in colour, (..., h, w) in grey

Array = NDArray[Any]  # any dtype, where it is checked or does not matter
Arrays = dict[str, Array]  # by name, as in an .npz file
