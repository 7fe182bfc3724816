"""UMAP maps with exact nearest neighbours, initialised with PCA; placement of new points on a finished map."""

from __future__ import annotations

import contextlib
import warnings
from functools import cache
from typing import Any

import numpy as np

from dmlcore.metrics import nearest
from dmlcore.projection import on_gpu
from dmlcore.projection.linear import pair, principal
from dmlcore.projection.on_gpu import Missing
from dmlcore.projection.stochastic import Progress, on_plane, spreadable
from dmlcore.typing import Floats, Singles

SIDE = 10.0  # largest absolute coordinate of the initial map, as in umap-learn
SHARES = 100  # maximum number of progress reports per map


def umap(
    embeddings: Any,
    *,
    neighbours: int = 15,
    min_dist: float = 0.1,
    iterations: int = 400,
    seed: int = 0,
    start: Any = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> Singles:
    """Return a UMAP map of embeddings; equal arguments give equal maps.

    The map does not depend on the offset or the scale of the embeddings.

    Args:
        embeddings: Embeddings, shape (N, D).
        neighbours: Number of neighbours including the point itself, as in umap-learn; at least 2, lowered to N - 1 if
            it is larger.
        min_dist: Minimum distance between points on the map, 0 to 1.
        iterations: Number of optimisation epochs.
        seed: Seed of the random generator.
        start: Initial map (N, 2) to use instead of PCA; umap-learn rescales each axis to 0..10.
        progress: Callback that receives the completed fraction, 0 to 1.
        device: "cpu", or "cuda" for cuML, which starts from its spectral layout and gives another map.

    Returns:
        The map, shape (N, 2), float32.

    Raises:
        ValueError: If an argument is invalid, there are fewer than 5 points, or all embeddings are equal.
        Missing: If umap-learn or, for a GPU, cuML is not installed.

    Reference:
        McInnes, Healy & Melville (2018).
    """
    points = spreadable(embeddings, "UMAP")
    if neighbours < 2:
        raise ValueError(f"neighbours must be at least 2, got {neighbours}")
    if not 0 <= min_dist <= 1:
        raise ValueError(f"min_dist must be 0 to 1, got {min_dist}")
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    count = min(neighbours, len(points) - 1)
    if on_gpu.is_chosen(device, start):
        settings = {"n_neighbors": count, "min_dist": min_dist, "n_epochs": iterations, "random_state": seed}
        return on_gpu.draw("UMAP", points, **settings)
    model = _library()
    distances, indices = nearest(points, k=count, exclude_self=False)
    with warnings.catch_warnings():
        # umap-learn warns that a fixed seed disables multithreading, and that without a search index it cannot add new
        # points.
        warnings.simplefilter("ignore")
        reducer = model(
            n_neighbors=count,
            min_dist=min_dist,
            n_epochs=iterations,
            init=_beginning(points, start, seed),
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(indices, distances.astype(np.float32), None),
            tqdm_kwds=_telling(progress, iterations),
        ).fit_transform(points.astype(np.float32))
    return np.asarray(reducer, dtype=np.float32)


def place_umap(embeddings: Any, plane: Any, new: Any, *, neighbours: int = 15) -> Singles:
    """Place new embeddings (M, D) on the UMAP map `plane` (N, 2) of `embeddings` (N, D).

    Each position is the weighted mean of the nearest neighbours' positions on the map. The weights are the membership
    strengths exp(-(d - d_1) / sigma), where d_1 is the distance to the nearest neighbour and sigma is chosen such that
    the strengths sum to log2(neighbours). umap-learn's `transform` starts from the same positions, but then refines
    them at random, which is omitted here. A new embedding that equals one of `embeddings` gets the position of that
    embedding.

    Returns:
        Positions, shape (M, 2), float32.

    Raises:
        ValueError: If an argument is invalid.
    """
    known, fresh = pair(embeddings, new)
    known_plane = on_plane(plane, len(known))
    count = min(max(2, neighbours), len(known))
    distances, indices = nearest(fresh, known, k=count)
    strengths = _strengths(distances)
    placed = (strengths[..., None] * known_plane[indices]).sum(axis=1) / strengths.sum(axis=1, keepdims=True)
    same = distances[:, 0] == 0
    placed[same] = known_plane[indices[same, 0]]
    return np.asarray(placed, dtype=np.float32)


def _strengths(distances: Floats) -> Floats:
    """Return membership strengths exp(-(d - d_1) / sigma) for sorted distances (M, k); each row sums to log2(k)."""
    beyond = distances - distances[:, :1]
    wanted = np.log2(max(2, distances.shape[1]))
    low = np.zeros(len(distances))
    high = np.full(len(distances), max(1e-300, float(beyond.max()) * 1e3))
    for _ in range(64):
        sigma = (low + high) / 2
        with np.errstate(under="ignore"):
            total = np.exp(-beyond / np.maximum(sigma, 1e-300)[:, None]).sum(axis=1)
        low, high = np.where(total < wanted, sigma, low), np.where(total < wanted, high, sigma)
    with np.errstate(under="ignore"):
        strengths: Floats = np.exp(-beyond / np.maximum(high, 1e-300)[:, None])
    return strengths


def _library() -> Any:
    try:
        from umap import UMAP
    except ImportError as error:
        raise Missing(
            f"UMAP needs the package umap-learn, which cannot be imported ({error}); install it with "
            "`pip install 'dml-lab[cluster]'`, or take t-SNE or PCA"
        ) from None
    _keep_compiled()
    return UMAP


@cache
def _keep_compiled() -> None:
    """Enable numba's on-disk cache for umap-learn; otherwise each process spends seconds compiling its functions."""
    from numba.core.dispatcher import Dispatcher
    from umap import layouts, umap_, utils

    with contextlib.suppress(RuntimeError):  # no directory is writable
        for module in (layouts, umap_, utils):
            for function in vars(module).values():
                if isinstance(function, Dispatcher):
                    function.enable_caching()


def _beginning(points: Floats, start: Any, seed: int) -> Any:
    """Return the initial map: `start`, or PCA scaled to coordinates of at most SIDE, with slight noise."""
    plane = principal(points) if start is None else on_plane(start, len(points))
    if start is None:
        plane *= SIDE / np.abs(plane).max()
        plane += np.random.default_rng(seed).normal(scale=1e-4, size=plane.shape)
    return plane.astype(np.float32)


class _Listener:
    """Output stream for tqdm that reports the completed fraction of the epochs to `progress`."""

    def __init__(self, progress: Progress, iterations: int) -> None:
        self.progress, self.iterations = progress, iterations

    def write(self, text: str) -> None:
        done = text.strip()
        if done.isdecimal():
            self.progress(min(1.0, int(done) / self.iterations))

    def flush(self) -> None: ...


def _telling(progress: Progress | None, iterations: int) -> dict[str, Any]:
    if progress is None:
        return {"disable": True}
    every = max(1, iterations // SHARES)
    return {
        "disable": False,
        "file": _Listener(progress, iterations),
        "bar_format": "{n}",
        "miniters": every,
        "mininterval": 0,
        "ascii": True,
    }
