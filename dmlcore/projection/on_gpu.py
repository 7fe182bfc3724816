"""t-SNE and UMAP maps computed by cuML on a GPU, with the neighbours and forces of cuML."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np

from dmlcore.typing import Floats, Singles


class Missing(RuntimeError):
    """Error raised if a required package is not installed; the message names the package and the install command."""


def is_chosen(device: str, start: Any) -> bool:
    """Return True if a map is to be computed on the GPU.

    Raises:
        ValueError: If `device` is neither "cpu" nor "cuda", or if the GPU is chosen for a map with an initial map.
    """
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or cuda, got {device!r}")
    if device == "cuda" and start is not None:
        raise ValueError("a map that starts from another map is computed on the CPU; use device='cpu'")
    return device == "cuda"


def draw(method: Literal["TSNE", "UMAP"], points: Floats, **settings: Any) -> Singles:
    """Return the map (N, 2) of points (N, D) by a class of `cuml.manifold`, float32.

    Raises:
        Missing: If cuML is not installed or finds no GPU.
    """
    try:
        kind = getattr(import_module("cuml.manifold"), method)
    except (ImportError, RuntimeError, OSError) as error:
        raise Missing(
            f"maps on a GPU need the package cuml, which cannot be imported ({error}); install it with "
            "`pip install cuml-cu13`, or compute the map on the CPU"
        ) from None
    return np.asarray(kind(output_type="numpy", **settings).fit_transform(points.astype(np.float32)), np.float32)
