"""Statistics of a batch of embeddings during training: distances, triplets, singular values, and pair gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.losses.engine.table import pair_tables
from dmlcore.typing import Floats

BINS = 20  # bins of each histogram
SPHERE = 2.0  # largest distance between two unit vectors
UNIT = 1e-3  # tolerance on the length of an embedding that counts as a unit vector

Measured = dict[str, float | list[int]]


def measure(
    embeddings: Tensor, labels: Tensor, clamp: tuple[float, float] | None = None, *, loss: nn.Module | None = None
) -> Measured:
    """Compute statistics of a batch of embeddings.

    The result has the entries below, except those that are undefined or not finite. All values are computed on the
    device of the embeddings and transferred once at the end.

        triplets: number of valid triplets
        violating: share of the triplets with d_ap > d_an
        active: share of the triplets inside the window that `clamp` defines
        positive_distance, negative_distance: means over pairs
        positive_histogram, negative_histogram: 20 counts of ordered pairs, for distances from 0 to histogram_to
        histogram_to: 2 for unit vectors, else the power of two above the largest distance
        norm: mean length of the embeddings
        spread: root mean square distance from the mean over the root mean square length, in 0..1
        effective_rank: exp of the entropy of the normalised singular values of the centred batch, in 1..D (Roy &
            Vetterli 2007)
        largest_share: largest of the normalised singular values
        alignment: mean squared distance of positives on the unit sphere (Wang & Isola 2020, alpha = 2)
        uniformity: log mean exp(-2 d^2) over all pairs on the unit sphere (Wang & Isola 2020, t = 2)
        covering_radius: radius of the smallest ball around one of its samples that contains a class, averaged over
            classes
        pull: mean length, over samples, of the part of the loss gradient that same-class pairs cause
        push: mean length, over samples, of the part that pairs from different classes cause

    `pull` and `push` exist only for losses that are computed from distances (those with the method `of_tables`, such as
    TripletLoss).

    Args:
        embeddings: Embeddings, (B, D), on any device.
        labels: Integer labels, (B,).
        clamp: (m, m2): a triplet is active while 0 < d_ap - d_an + m < m2.
        loss: Loss from which pull and push are computed, at the cost of evaluating it again.
    """
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1] or not len(labels):
        raise ValueError(
            f"embeddings must be (B, D) and labels (B,), got {tuple(embeddings.shape)} and {tuple(labels.shape)}"
        )
    forces = {} if loss is None else _forces(loss, embeddings.detach().float(), labels)
    with torch.no_grad():
        # Products of centred vectors in double precision give distances to about 1e-7 of the spread of the batch, at a
        # tenth of the cost of the direct computation.
        x = embeddings.detach().double()
        centred = x - x.mean(0)
        gram = centred @ centred.T
        lengths = gram.diagonal()
        distances = (lengths[:, None] + lengths - 2 * gram).clamp(min=0).sqrt().fill_diagonal_(0).float()
        numbers, counts = _numbers(x, centred, distances, labels, clamp)
        if len(x) > x.shape[1]:
            gram = centred.T @ centred
    parts = (*numbers.values(), *forces.values(), counts, gram)
    host = torch.cat([part.reshape(-1).double() for part in parts]).cpu().numpy()

    names = [*numbers, *forces]
    measured: Measured = {name: float(value) for name, value in zip(names, host, strict=False) if np.isfinite(value)}
    rest = host[len(names) :]
    if "histogram_to" in measured:
        measured["positive_histogram"] = rest[:BINS].astype(int).tolist()
        measured["negative_histogram"] = rest[BINS : 2 * BINS].astype(int).tolist()
    return measured | _spectrum(rest[2 * BINS :].reshape(gram.shape))


def _numbers(
    x: Tensor, centred: Tensor, distances: Tensor, labels: Tensor, clamp: tuple[float, float] | None
) -> tuple[dict[str, Tensor], Tensor]:
    """Return scalar statistics by name (NaN if there is nothing to average), and the counts of both histograms."""
    same = labels[:, None] == labels
    other = ~same
    same = same & ~torch.eye(len(x), dtype=torch.bool, device=x.device)
    positives, negatives, squares = same.sum(), other.sum(), x.square().sum(1)
    numbers = _triplets(distances, same, other, clamp)
    numbers["positive_distance"] = distances.where(same, 0).sum() / positives
    numbers["negative_distance"] = distances.where(other, 0).sum() / negatives
    norms = squares.sqrt()
    unit = ((norms - 1).abs() <= UNIT).all()
    # rounded up to a power of two, so that histograms of different steps remain comparable while distances grow
    largest = torch.exp2(torch.log2(distances.max()).ceil())
    numbers["histogram_to"] = torch.where(unit, SPHERE, largest.where(largest > 0, 1.0))
    numbers["norm"] = norms.mean()
    numbers["spread"] = (centred.square().sum() / squares.sum()).sqrt()

    sphere = F.normalize(x).float()
    near = (2 - 2 * sphere @ sphere.T).clamp(min=0)
    pairs = same | other
    numbers["alignment"] = near.where(same, 0).sum() / positives
    numbers["uniformity"] = ((-2 * near).exp().where(pairs, 0).sum() / pairs.sum()).log()

    # For each sample, the radius of the ball around it that contains its class; then the smallest such radius in the
    # class. Dividing by the class size gives every class the same weight.
    size = same.sum(1) + 1
    reach = distances.where(same, 0).amax(1)
    radius = reach.expand_as(distances).where(same, torch.inf).amin(1).minimum(reach)
    numbers["covering_radius"] = (radius / size).where(size > 1, 0).sum() / (1 / size).where(size > 1, 0).sum()
    return numbers, _histograms(distances, numbers["histogram_to"], same, other)


def _triplets(distances: Tensor, same: Tensor, other: Tensor, clamp: tuple[float, float] | None) -> dict[str, Tensor]:
    """Return the number of triplets, and the shares of violating triplets and of those in the window `clamp`."""
    positives = same.sum(1, keepdim=True)
    count = (positives * other.sum(1, keepdim=True)).sum()
    shifts = [0.0] if clamp is None else [0.0, clamp[0]] + [clamp[0] - clamp[1]] * (clamp[1] < torch.inf)

    # For each anchor, sort the positives and count by binary search how many are farther than each negative, shifted by
    # the limits of the window. On the CPU the size of the largest class is known at no cost; on other devices all
    # columns are sorted.
    most = max(1, int(positives.max())) if distances.is_cpu else len(distances)
    ordered = distances.where(same, torch.inf).topk(most, largest=False).values
    shifted = torch.cat([distances - shift for shift in shifts], dim=1)
    farther = positives - torch.searchsorted(ordered, shifted, right=True).minimum(positives)
    violating, *active = farther.view(len(ordered), len(shifts), -1).where(other[:, None], 0).sum((0, 2)) / count
    counts = {"triplets": count, "violating": violating}
    return counts | ({"active": active[0] - sum(active[1:])} if active else {})


def _histograms(distances: Tensor, top: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """Return the histogram counts (2 * BINS,) of distances: those of positive pairs, then those of negative pairs."""
    bins = (distances / top * BINS).nan_to_num(0.0).clamp(0, BINS - 1).long()
    # bincount would read the largest entry from the device, and histc is not deterministic on a GPU.
    place = torch.where(same, bins, torch.where(other, BINS + bins, 2 * BINS)).flatten()
    counts = torch.zeros(2 * BINS + 1, dtype=torch.int64, device=distances.device)
    return counts.scatter_add_(0, place, torch.ones_like(place))[: 2 * BINS]


def _spectrum(gram: Floats) -> Measured:
    if not np.isfinite(gram).all():
        return {}
    # Singular values are the square roots of the eigenvalues of a scaled Gram matrix; rounding makes some slightly
    # negative.
    total = float(np.trace(gram))
    if total <= 0:
        return {}
    squares = np.linalg.eigvalsh(gram / total)
    # smaller eigenvalues are rounding errors of the matrix product
    sizes = np.sqrt(squares.clip(min=0.0) * (squares > 1e-14))
    shares = sizes / sizes.sum()
    entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    return {"effective_rank": float(np.exp(entropy)), "largest_share": float(shares.max())}


def _forces(loss: Any, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return the mean length, over samples, of the loss gradients from same-class pairs (pull) and others (push).

    Returns {} for a loss that does not depend on distances alone.
    """
    if not hasattr(loss, "of_tables"):
        return {}
    counts = loss.counts
    with torch.enable_grad():
        distances, squares = (table.detach().requires_grad_() for table in pair_tables(x))
        (by,) = torch.autograd.grad(
            loss.of_tables(distances, squares, labels), distances, allow_unused=True, materialize_grads=True
        )
    loss.counts = counts  # restore the counts that the loss computed in the training step
    with torch.no_grad():
        weights = (by + by.T) / distances.where(distances > 0, torch.inf)
        same = labels[:, None] == labels

        def force(pairs: Tensor) -> Tensor:
            w = weights.where(pairs, 0)
            mean: Tensor = (w.sum(1, keepdim=True) * x - w @ x).norm(dim=1).mean()
            return mean

        return {"pull": force(same), "push": force(~same)}
