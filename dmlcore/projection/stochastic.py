"""t-SNE maps with exact nearest neighbours, initialised with PCA; placement of new points on a finished map."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dmlcore.metrics import nearest
from dmlcore.projection import interrupts, on_gpu
from dmlcore.projection.linear import pair, principal, standardised
from dmlcore.typing import Floats, Singles

FEWEST = 5  # minimum number of points for a map
SHORTEST = 100  # minimum number of iterations of `tsne`
MOMENTUM = 0.8
# Factor by which attractive forces are multiplied in the first HEAD share of the iterations. It decreases to 1 before
# the last TAIL share.
EXAGGERATION = 12.0
# HEAD and TAIL are the shares of the iterations with full and without exaggeration. In between, the factor decreases in
# STAIRS geometric steps.
HEAD, TAIL, STAIRS = 0.15, 0.4, 10
# With this many points or more, forces are computed on a grid (FFT, mostly one thread) instead of with a tree
# (Barnes-Hut, all threads), because the grid is faster for large sets.
TREE = 10_000
THETA = 0.7  # opening angle of the Barnes-Hut tree: larger values are faster and less accurate
REPORTS = 20  # iterations between two progress reports
START = 1e-4  # standard deviation of the initial map; at this size, forces are nearly linear (Kobak & Berens 2019)
PLACING = 250  # number of optimisation iterations when new points are placed on a map

Progress = Callable[[float], object]  # called with the completed fraction of the iterations, 0 to 1


def fitting_perplexity(points: int, perplexity: float = 30) -> float:
    """Return the perplexity that `tsne` uses for this number of points, which is at most (points - 1) / 3."""
    return min(perplexity, (points - 1) / 3)


def tsne(
    embeddings: Any,
    *,
    perplexity: float = 30,
    iterations: int = 400,
    seed: int = 0,
    start: Any = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> Singles:
    """Return a t-SNE map of embeddings; equal arguments give equal maps.

    The map does not depend on the offset or the scale of the embeddings, nor on the number of threads. During the first
    iterations, attractive forces are multiplied by an exaggeration factor of 12. This factor then decreases to 1 in
    several steps instead of one, which preserves more neighbours in fewer iterations.

    Args:
        embeddings: Embeddings, shape (N, D).
        perplexity: Effective number of neighbours, above 1; lowered to (N - 1) / 3 if it is larger.
        iterations: Number of iterations, at least 100.
        seed: Seed, 0..2^32 - 1.
        start: Initial map (N, 2) to use instead of PCA; the exaggeration factor is then always 1.
        progress: Callback that receives the completed fraction, 0 to 1.
        device: "cpu", or "cuda" for cuML, which has its own schedule of exaggeration and gives another map.

    Returns:
        The map, shape (N, 2), float32.

    Raises:
        ValueError: If an argument is invalid, there are fewer than 5 points, or all embeddings are equal.
        Missing: If cuML is not installed and a GPU was chosen.

    Example:
        >>> import numpy as np
        >>> from dmlcore import projection
        >>> projection.tsne(np.eye(12), iterations=100).shape
        (12, 2)

    Reference:
        van der Maaten & Hinton (2008); learning rate N / exaggeration: Belkina et al. (2019); forces by a tree: van der
        Maaten (2014), on a grid: Linderman et al. (2019).
    """
    points = spreadable(embeddings, "t-SNE")
    if not 1 < perplexity < np.inf:
        raise ValueError(f"perplexity must be finite and above 1, got {perplexity}")
    if iterations < SHORTEST:
        raise ValueError(f"iterations must be at least {SHORTEST}, got {iterations}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be 0 to 2^32 - 1, got {seed}")
    perplexity = fitting_perplexity(len(points), perplexity)
    if on_gpu.is_chosen(device, start):
        count = min(len(points) - 1, max(2, int(3 * perplexity)))
        settings = {"perplexity": perplexity, "n_neighbors": count, "max_iter": iterations, "random_state": seed}
        return on_gpu.draw("TSNE", points, init="pca", **settings)
    from openTSNE import TSNEEmbedding

    plane = TSNEEmbedding(
        _beginning(points, start, seed),
        _affinities(points, perplexity),
        negative_gradient_method="bh" if len(points) < TREE else "fft",
        theta=THETA,
        n_jobs=threads(),
        random_state=seed,
    )
    done = 0
    with interrupts.delay_signals() as run_handlers:
        for length, exaggeration in schedule(iterations) if start is None else [(iterations, 1.0)]:
            callback = _telling(progress, done, iterations, run_handlers)
            plane.optimize(length, exaggeration=exaggeration, momentum=MOMENTUM, inplace=True, **callback)
            done += length
    if progress:
        progress(1.0)
    return np.asarray(plane, dtype=np.float32)


def schedule(iterations: int) -> list[tuple[int, float]]:
    """Return the stages of the optimisation as pairs (number of iterations, exaggeration factor)."""
    head, tail = round(HEAD * iterations), round(TAIL * iterations)
    ends = np.linspace(head, iterations - tail, STAIRS + 1).round().astype(int)
    falling = EXAGGERATION ** (1 - np.arange(1, STAIRS + 1) / (STAIRS + 1))
    between = zip(np.diff(ends).tolist(), falling.tolist(), strict=True)
    return [(head, EXAGGERATION), *((length, value) for length, value in between if length), (tail, 1.0)]


def place_tsne(embeddings: Any, plane: Any, new: Any, *, perplexity: float = 30) -> Singles:
    """Place new embeddings (M, D) on the t-SNE map `plane` (N, 2) of `embeddings` (N, D).

    Each point starts at the median of its 25 nearest neighbours on the map and is moved by the gradient of t-SNE, while
    the map is fixed; new points do not interact.

    Returns:
        Positions, shape (M, 2), float32.

    Raises:
        ValueError: If an argument is invalid.

    Reference:
        Policar, Strazar & Zupan (2021), "Embedding to reference t-SNE space addresses batch effects".
    """
    known, fresh = pair(embeddings, new)
    known_plane = on_plane(plane, len(known))
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import Affinities, joint_probabilities_nn
    from openTSNE.tsne import PartialTSNEEmbedding
    from scipy.sparse import csr_matrix

    perplexity = fitting_perplexity(len(known), perplexity)
    distances, neighbours = nearest(fresh, known, k=min(len(known), max(1, int(3 * perplexity))))
    distances /= distances[distances > 0].min(initial=np.inf) if (distances > 0).any() else 1.0
    affinities = joint_probabilities_nn(
        neighbours,
        distances,
        [perplexity],
        symmetrize=False,
        normalization="point-wise",
        n_reference_samples=len(known),
        n_jobs=threads(),
    )
    settings = {"negative_gradient_method": "fft", "n_jobs": threads()}
    middle = (known_plane.max(axis=0) + known_plane.min(axis=0)) / 2
    # openTSNE requires affinities of the existing points, but does not use them, because those points are fixed.
    unused = Affinities()
    unused.P = csr_matrix((len(known), len(known)))
    reference = TSNEEmbedding(known_plane - middle, unused, **settings)  # the grid is centred at 0
    first = np.median(np.asarray(reference)[neighbours[:, :25]], axis=1)
    placed = PartialTSNEEmbedding(first, reference, P=affinities, **settings)
    placed.optimize(PLACING, learning_rate=0.1, exaggeration=1.5, momentum=0.8, inplace=True, max_grad_norm=0.25)
    return np.asarray(np.asarray(placed) + middle, dtype=np.float32)


def spreadable(embeddings: Any, method: str) -> Floats:
    """Return standardised embeddings; raise ValueError naming `method` if there are too few or all are equal."""
    points, _ = standardised(embeddings)
    if len(points) < FEWEST:
        raise ValueError(f"embeddings must hold at least {FEWEST} points for a {method} map, got {len(points)}")
    if not points.any():
        raise ValueError(f"embeddings are all equal (collapsed): there is nothing for {method} to spread out")
    return points


def on_plane(plane: Any, count: int) -> Floats:
    """Return the map `plane` as a float64 array (count, 2); raise ValueError for another shape or non-finite values."""
    points = np.array(plane, dtype=np.float64)
    if points.shape != (count, 2) or not np.isfinite(points).all():
        raise ValueError(f"the map must be {count} finite points on a plane, got {points.shape}")
    return points


def threads() -> int:
    """Return the number of threads for openTSNE: $OMP_NUM_THREADS if set, else the number of available CPU cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)))


def _beginning(points: Floats, start: Any, seed: int) -> Floats:
    if start is not None:
        return on_plane(start, len(points))
    plane = principal(points)
    plane *= START / plane[:, 0].std()
    # Without noise, equal points would never separate and collinear points would stay on a line.
    plane += np.random.default_rng(seed).normal(scale=START / 100, size=plane.shape)
    return plane


def _affinities(points: Floats, perplexity: float) -> Any:
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    distances, neighbours = nearest(points, k=min(len(points) - 1, max(2, int(3 * perplexity))))
    graph = PrecomputedNeighbors(neighbours, distances)
    return PerplexityBasedNN(knn_index=graph, perplexity=perplexity, n_jobs=threads())


def _telling(
    progress: Progress | None, before: int, iterations: int, run_handlers: Callable[[], None]
) -> dict[str, Any]:
    """Return keyword arguments that make openTSNE report to `progress` and run the handlers of delayed signals.

    `before` is the number of iterations, out of `iterations`, that earlier stages have completed.
    """

    def tell(iteration: int, _error: float, _plane: Floats) -> None:
        run_handlers()
        if progress:
            progress((before + iteration) / iterations)

    return {"callbacks": [tell], "callbacks_every_iters": REPORTS}
