"""Array types: one name per dtype, used by all modules.

Shapes are documented with the argument or attribute, as in (N, D).
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
Pixels = NDArray[np.uint8]  # (..., h, w, 3) for colour images, (..., h, w) for grey ones

Array = NDArray[Any]  # any dtype, where the dtype is checked elsewhere or irrelevant
Arrays = dict[str, Array]  # arrays by name, as in an .npz file
