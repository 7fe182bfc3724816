"""t-SNE: neighbours from an exact search, a start from PCA, optimised by openTSNE; and new points on a finished map."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dmlcore.metrics import nearest
from dmlcore.projection.linear import pair, principal, standardised
from dmlcore.typing import Floats, Singles

FEWEST = 5  # points that a t-SNE map needs
SHORTEST = 100  # iterations
MOMENTUM = 0.8
EXAGGERATION = 12.0  # of the attraction, for the first HEAD of the iterations; for the last TAIL of them it is 1
HEAD, TAIL, STAIRS = 0.15, 0.4, 10  # between them it falls by the same factor STAIRS times
TREE = 10_000  # points from which a grid (FFT, mostly one thread) is faster than a tree (Barnes-Hut, all threads)
THETA = 0.7  # of the tree: larger is faster and less exact
REPORTS = 20  # iterations from one report of the progress to the next
START = 1e-4  # spread of the start: forces between all points are then nearly linear (Kobak and Berens, 2019)
PLACING = 250  # iterations that move a new point

Progress = Callable[[float], object]  # is told the share done, 0..1


def fitting_perplexity(points: int, perplexity: float = 30) -> float:
    """The perplexity that `tsne` takes for so many points: at most (points - 1) / 3."""
    return min(perplexity, (points - 1) / 3)


def tsne(
    embeddings: Any,
    *,
    perplexity: float = 30,
    iterations: int = 400,
    seed: int = 0,
    start: Any = None,
    progress: Progress | None = None,
) -> Singles:
    """Return a t-SNE map, a function of its arguments only.

    `perplexity` (above 1) is lowered to (N - 1) / 3 for few points; `iterations` is at least 100; `seed` 0..2^32 - 1.
    `start` (N, 2): a map to go on from, without exaggeration, in place of PCA. The map does not depend on the offset or
    the scale of the embeddings, nor on the number of threads.

    The attraction is exaggerated 12 times at first, as is usual, and then less and less rather than not at all, which
    keeps more neighbours in fewer iterations (`benchmarks/map.py`).

    Shapes: (N, D) -> (N, 2) float32.
    Raises: ValueError naming the argument, also for fewer than 5 points and for embeddings that are all equal.
    Source: van der Maaten and Hinton (2008); learning rate N / exaggeration: Belkina et al. (2019); forces by a tree:
    van der Maaten (2014), on a grid: Linderman et al. (2019).

    Example:
        >>> import numpy as np
        >>> from dmlcore import projection
        >>> projection.tsne(np.eye(12), iterations=100).shape
        (12, 2)
    """
    points = spreadable(embeddings, "t-SNE")
    if not 1 < perplexity < np.inf:
        raise ValueError(f"perplexity must be finite and above 1, got {perplexity}")
    if iterations < SHORTEST:
        raise ValueError(f"iterations must be at least {SHORTEST}, got {iterations}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be 0 to 2^32 - 1, got {seed}")
    from openTSNE import TSNEEmbedding

    plane = TSNEEmbedding(
        _beginning(points, start, seed),
        _affinities(points, fitting_perplexity(len(points), perplexity)),
        negative_gradient_method="bh" if len(points) < TREE else "fft",
        theta=THETA,
        n_jobs=threads(),
        random_state=seed,
    )
    done = 0
    for length, exaggeration in schedule(iterations) if start is None else [(iterations, 1.0)]:
        callback = _telling(progress, done, iterations)
        plane.optimize(length, exaggeration=exaggeration, momentum=MOMENTUM, inplace=True, **callback)
        done += length
    if progress:
        progress(1.0)
    return np.asarray(plane, dtype=np.float32)


def schedule(iterations: int) -> list[tuple[int, float]]:
    """How many iterations at which exaggeration, in order."""
    head, tail = round(HEAD * iterations), round(TAIL * iterations)
    ends = np.linspace(head, iterations - tail, STAIRS + 1).round().astype(int)
    falling = EXAGGERATION ** (1 - np.arange(1, STAIRS + 1) / (STAIRS + 1))
    between = zip(np.diff(ends).tolist(), falling.tolist(), strict=True)
    return [(head, EXAGGERATION), *((length, value) for length, value in between if length), (tail, 1.0)]


def place_tsne(embeddings: Any, plane: Any, new: Any, *, perplexity: float = 30) -> Singles:
    """Where new embeddings (M, D) belong on the t-SNE map `plane` (N, 2) of `embeddings` (N, D): (M, 2) float32.

    Each starts at the median of its 25 nearest neighbours on the map and is moved by the gradient of t-SNE while the
    map stands still; new points do not see each other. Raises ValueError naming the argument.

    Source: Policar, Strazar and Zupan (2021), "Embedding to reference t-SNE space addresses batch effects".
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
    unused = Affinities()  # of the map's own points, which stand still
    unused.P = csr_matrix((len(known), len(known)))
    reference = TSNEEmbedding(known_plane - middle, unused, **settings)  # the grid is laid around 0
    first = np.median(np.asarray(reference)[neighbours[:, :25]], axis=1)
    placed = PartialTSNEEmbedding(first, reference, P=affinities, **settings)
    placed.optimize(PLACING, learning_rate=0.1, exaggeration=1.5, momentum=0.8, inplace=True, max_grad_norm=0.25)
    return np.asarray(np.asarray(placed) + middle, dtype=np.float32)


def spreadable(embeddings: Any, method: str) -> Floats:
    """Standardised embeddings that `method` can spread out; raises ValueError for too few or collapsed ones."""
    points, _ = standardised(embeddings)
    if len(points) < FEWEST:
        raise ValueError(f"embeddings must hold at least {FEWEST} points for a {method} map, got {len(points)}")
    if not points.any():
        raise ValueError(f"embeddings are all equal (collapsed): there is nothing for {method} to spread out")
    return points


def on_plane(plane: Any, count: int) -> Floats:
    """A map as float64 (count, 2); raises ValueError."""
    points = np.array(plane, dtype=np.float64)
    if points.shape != (count, 2) or not np.isfinite(points).all():
        raise ValueError(f"the map must be {count} finite points on a plane, got {points.shape}")
    return points


def threads() -> int:
    """Cores that this process may use, or $OMP_NUM_THREADS."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)))


def _beginning(points: Floats, start: Any, seed: int) -> Floats:
    if start is not None:
        return on_plane(start, len(points))
    plane = principal(points)
    plane *= START / plane[:, 0].std()
    # Copies of a point would stay together for ever, at distance 0, as would all points of a line on their line.
    plane += np.random.default_rng(seed).normal(scale=START / 100, size=plane.shape)
    return plane


def _affinities(points: Floats, perplexity: float) -> Any:
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    distances, neighbours = nearest(points, k=min(len(points) - 1, max(2, int(3 * perplexity))))
    graph = PrecomputedNeighbors(neighbours, distances)
    return PerplexityBasedNN(knn_index=graph, perplexity=perplexity, n_jobs=threads())


def _telling(progress: Progress | None, before: int, iterations: int) -> dict[str, Any]:
    """What makes openTSNE report the share of all iterations that is done."""
    if progress is None:
        return {}

    def tell(iteration: int, _error: float, _plane: Floats) -> None:
        progress((before + iteration) / iterations)

    return {"callbacks": [tell], "callbacks_every_iters": REPORTS}
