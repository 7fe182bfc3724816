"""Pooling weights of a run: the weight of each position in the pooled vector, for every test image.

Only `write` imports torch, so pages can read the weights without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dmlcore.storage import arrays, atomic_files
from dmlcore.storage.arrays import FLOATS, INTEGERS, ArraySpec, Unreadable
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Bools, Floats, Ints, Singles

CHUNK = 256  # images per forward pass
WEIGHTS = {
    "indices": ArraySpec(INTEGERS, ("N",)),
    "weights": ArraySpec(FLOATS, ("N", "h", "w")),
    "foreground": ArraySpec(FLOATS, ("N",), nan=True),
    "tile": ArraySpec(INTEGERS, ("N",), least=-1),
}


@dataclass(frozen=True, eq=False)
class WeightMaps:
    """Pooling weights of the test images.

    Args:
        indices: Sample indices (N,) in the data set.
        weights: Weights (N, h, w), which sum to 1 per image; h = w = 0 if the pooling has no weights.
        foreground: Share (N,) of the weight that falls on the tiles of a collage that show the labelled class; NaN if
            it is unknown which tiles do.
        tile: Row-major index (N,) of the tile that shows the labelled class; -1 if there is not exactly one.
    """

    indices: Ints
    weights: Singles
    foreground: Singles
    tile: Ints


def path_of(run: Run) -> Path | None:
    """Return the file of the weights of the newest evaluation, or None if there is none."""
    source = run.embeddings()
    path = run.path / "weights" / source.name if source else None
    return path if path and path.is_file() else None


def read(path: Path) -> WeightMaps:
    """Read pooling weights.

    Raises:
        RunError: The file is damaged.
    """
    try:
        stored = arrays.read(path, WEIGHTS, remedy="Remove it and compute the weights again")
    except Unreadable as error:
        raise RunError(str(error)) from None
    return WeightMaps(stored["indices"], stored["weights"].astype(np.float32), stored["foreground"], stored["tile"])


def foreground_share(weights: NDArray[np.floating], shows: Bools) -> Singles:
    """Compute the share (N,) of the weights on the tiles of collages that show the class.

    The weight of a position that overlaps two tiles is divided between them by area, so average pooling always yields
    the area share of the tiles.

    Args:
        weights: Weights (N, h, w).
        shows: Boolean mask (N, T), T = grid x grid, True for tiles that show the class.
    """
    grid = isqrt(shows.shape[1])
    rows, columns = (_overlap(grid, count) for count in weights.shape[1:])
    tiles = np.einsum("nhw,gh,fw->ngf", weights.astype(np.float64), rows, columns).reshape(shows.shape)
    share: Singles = (tiles * shows).sum(1).astype(np.float32)
    return share


def _overlap(grid: int, positions: int) -> Floats:
    """Return the overlap (grid, positions) of each tile with each position along one axis, in units of a position."""
    cuts = np.arange(grid + 1) * positions / grid
    begin = np.arange(positions)
    inside = np.minimum(begin + 1, cuts[1:, None]) - np.maximum(begin, cuts[:-1, None])
    return inside.clip(min=0)


def write(run: Run) -> Path:
    """Compute the pooling weights of the test split with the best weights; return the path weights/<digest>.npz.

    Raises:
        RunError: The run has not been evaluated, or its inputs are not images.
    """
    import torch

    from dmlcore.storage import checkpoint
    from dmlcore.training import starts
    from dmlcore.training.batches import to_device
    from dmlcore.training.build import load_data
    from dmlcore.training.state import use_best

    source, saved = run.embeddings(), checkpoint.load(run.path)
    if source is None or saved is None:
        raise RunError(f"{run.id} has not been evaluated yet, so it has no pooling weights")
    # Use the network weights that were tested: the best by validation, if there are any.
    data = load_data(run.spec)
    if len(data.inputs.shape) != 4:
        raise RunError(f"{run.id} was not trained on images, so it has no maps of pooling weights")
    state = starts.load_for_evaluation(run, saved, dataset=data)
    use_best(state)
    model: Any = state.model.eval()
    # Collect the pooling weight of each position; the arrays are empty if the pooling has no weights.
    indices = data.splits["test"]
    parts: list[Singles] = []
    with torch.inference_mode():
        for start in range(0, len(indices), CHUNK):
            features = model.features(to_device(state.data, indices[start : start + CHUNK], state.device))
            model.head(features)
            chunk_weights = model.pool.weights
            if chunk_weights is None or not len(chunk_weights):
                parts.append(np.zeros((len(features), 0, 0), dtype=np.float32))
            else:
                parts.append(chunk_weights.float().cpu().numpy().reshape(len(features), *features.shape[2:]))
    weights = np.concatenate(parts)
    # For collages, the tiles that show the labelled class are known.
    share, places = np.full(len(indices), np.nan, np.float32), np.full(len(indices), -1)
    if "shows" in data.facts:
        shows = data.facts["shows"][indices]
        places = np.where(shows.sum(1) == 1, shows.argmax(1), -1)
        share = foreground_share(weights, shows) if weights.size else share
    path = run.path / "weights" / source.name
    path.parent.mkdir(exist_ok=True)
    atomic_files.replace(
        path,
        lambda file: np.savez_compressed(
            file, indices=indices, weights=weights.astype(np.float16), foreground=share, tile=places
        ),
    )
    return path
