"""Where a pooling looks: the weight of each position in the pooled vector, of every test image of a run.

Torch is imported only to make them, so that pages read them without it.
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

CHUNK = 256  # images at once
WEIGHTS = {
    "indices": ArraySpec(INTEGERS, ("N",)),
    "weights": ArraySpec(FLOATS, ("N", "h", "w")),
    "foreground": ArraySpec(FLOATS, ("N",), nan=True),
    "tile": ArraySpec(INTEGERS, ("N",), least=-1),
}


@dataclass(frozen=True, eq=False)
class WeightMaps:
    """Row i is sample `indices[i]` of the data set; weights (N, h, w) sum to 1, or have h = w = 0 without weights.

    foreground (N,): share of the weight on the tiles that show the class, NaN where none is known to; tile (N,): its
    place, row by row, where it is a single one, else -1.
    """

    indices: Ints
    weights: Singles
    foreground: Singles
    tile: Ints


def path_of(run: Run) -> Path | None:
    """The file of the newest evaluation's maps, or None as long as there is none."""
    source = run.embeddings()
    path = run.path / "weights" / source.name if source else None
    return path if path and path.is_file() else None


def read(path: Path) -> WeightMaps:
    """The maps in a file; raises RunError if it is damaged."""
    try:
        stored = arrays.read(path, WEIGHTS, remedy="Remove it and compute the weights again")
    except Unreadable as error:
        raise RunError(str(error)) from None
    return WeightMaps(stored["indices"], stored["weights"].astype(np.float32), stored["foreground"], stored["tile"])


def foreground_share(weights: NDArray[np.floating], shows: Bools) -> Singles:
    """Share (N,) of weights (N, h, w) on the tiles that show the class; shows (N, T) bool, T = grid x grid.

    A position on the border of two tiles counts for both by its area, so average pooling always has the tiles' share.
    """
    grid = isqrt(shows.shape[1])
    rows, columns = (_overlap(grid, count) for count in weights.shape[1:])
    tiles = np.einsum("nhw,gh,fw->ngf", weights.astype(np.float64), rows, columns).reshape(shows.shape)
    share: Singles = (tiles * shows).sum(1).astype(np.float32)
    return share


def _overlap(grid: int, positions: int) -> Floats:
    """(grid, positions): how much of the stretch of each position lies in the stretch of each tile."""
    cuts = np.arange(grid + 1) * positions / grid
    begin = np.arange(positions)
    inside = np.minimum(begin + 1, cuts[1:, None]) - np.maximum(begin, cuts[:-1, None])
    return inside.clip(min=0)


def write(run: Run) -> Path:
    """Pool the test split by the best weights and write weights/<digest>.npz; RunError before an evaluation."""
    import torch

    from dmlcore.storage import checkpoint
    from dmlcore.training import starts
    from dmlcore.training.batches import to_device
    from dmlcore.training.build import load_data
    from dmlcore.training.state import use_best

    source, saved = run.embeddings(), checkpoint.load(run.path)
    if source is None or saved is None:
        raise RunError(f"{run.id} has not been evaluated yet, so there is nothing to weigh")
    # The network as it was tested: its best weights by validation, if there are such.
    data = load_data(run.spec)
    if len(data.inputs.shape) != 4:
        raise RunError(f"{run.id} is no network for images, so there are no maps to lay over them")
    state = starts.load_for_evaluation(run, saved, dataset=data)
    use_best(state)
    model: Any = state.model.eval()
    # The share of each position in the pooled vector, chunk by chunk; empty where a pooling has no such shares.
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
    # Of collages it is known what each tile shows: the share that falls on what the label names.
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
