"""Cases in which the formula is known to be correct but its computation may fail.

They use float32, several processes, a memory of embeddings, or inputs at which a result may not be finite.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.conformance.case import Case, Computation, Outcome, evaluate_loss, evaluate_module
from dmlcore.conformance.printed import pairs, proxies, ranking
from dmlcore.conformance.vectors import FOUR_EACH, TWO_EACH, Vector, single
from dmlcore.losses.engine.distances import euclidean
from dmlcore.losses.memory import CrossBatchMemory

PROCESSES = 2
MEMORY_BATCHES = 2  # number of batches that the memory of embeddings holds
SINGLES = 1e-4  # relative tolerance of cases that are computed in float32


def _in_single(name: str, **hyper: Any) -> Computation:
    """Return a function that evaluates the dmlcore loss `name` in the dtype of the batch."""

    def computed(v: Vector) -> Outcome:
        loss = losses.for_training(name, classes=v.classes, embedding_dim=v.embeddings.shape[1], **hyper)
        return evaluate_module(loss.to(v.embeddings.dtype), v, "proxies" if hasattr(loss, "proxies") else "")

    return computed


# ---- a batch on two processes: even samples on the first, odd samples on the second


def rows_of(process: int, v: Vector) -> Tensor:
    """Return the indices of the batch samples that are assigned to a process."""
    return torch.arange(process, len(v.labels), PROCESSES)


def _whole(v: Vector) -> Outcome:
    return evaluate_loss(lambda x: pairs.multi_similarity(x, v.names, 2.0, 50.0, 0.5), v)


def _apart(v: Vector) -> Outcome:
    """Compute the multi-similarity loss of each process over its own samples as anchors.

    The samples of the other process are constants. The value is the mean over the processes, the gradient the sum.
    """
    gradient, value = torch.zeros_like(v.embeddings), 0.0
    for process in range(PROCESSES):
        own = rows_of(process, v)
        mine = torch.zeros(len(v.labels), 1, dtype=torch.bool)
        mine[own] = True

        def loss(x: Tensor, mine: Tensor = mine, own: Tensor = own) -> Tensor:
            held = torch.where(mine, x, x.detach())
            return pairs.multi_similarity(held, v.names, 2.0, 50.0, 0.5, anchors=own.tolist())

        result = evaluate_loss(loss, v)
        gradient, value = gradient + result.arrays["embeddings"], value + result.value / PROCESSES
    return Outcome(value, {"embeddings": gradient})


# ---- float32


def _cold(v: Vector) -> Outcome:
    return evaluate_loss(lambda x: pairs.nt_xent(x, v.names, 0.01), v)


def opposite() -> Vector:
    """Return a batch of three samples; the first is opposite its proxy and close to the proxy of another class."""
    x = torch.tensor([[1.0, 0.1], [0.2, 1.0], [-1.0, 0.3]], dtype=torch.float64)
    w = torch.tensor([[-1.0, 0.0], [0.1, 1.0], [1.0, 0.0]], dtype=torch.float64)
    return single(Vector("a sample opposite its proxy", x, torch.tensor([0, 1, 0]), w))


def near() -> Vector:
    """Return a batch of 30 nearly equal embeddings of three classes, 10^-4 apart, as after a collapse."""
    i, d = torch.arange(30, dtype=torch.float64)[:, None], torch.arange(8, dtype=torch.float64)
    x = F.normalize((0.3 + 0.5 * d).cos() + 5e-5 * (1.1 * i + 0.7 * d + 0.4 * i * d).sin())
    return single(Vector("30 samples 10^-4 apart", x, torch.arange(30) % 3, x[:3]))


def _distances(v: Vector) -> Outcome:
    x = v.embeddings.double()
    x = x / x.norm(dim=1, keepdim=True)
    return of_table((x[:, None] - x).square().sum(2).sqrt())


def _own_distances(v: Vector) -> Outcome:
    unit = F.normalize(v.embeddings)
    return of_table(euclidean(unit, unit))


def of_table(distances: Tensor) -> Outcome:
    """Return a distance matrix times 10^4 as an outcome, whose value is its mean.

    The diagonal is set to 0, because it holds only rounding errors.
    """
    table = 1e4 * distances.double().fill_diagonal_(0.0)
    return Outcome(table.mean().item(), {"distances": table})


# ---- results that must be finite


def own_weight() -> Vector:
    """Return a batch of two samples that coincide with the weights of their classes."""
    x = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.9, 0.1]], dtype=torch.float64)
    return Vector("a sample on its own weight", x, torch.tensor([0, 1]), x.clone())


def finite(computed: Outcome) -> Outcome:
    """Return an outcome with value 1 if the value and the gradients of `computed` are finite, otherwise 0."""
    arrays = [torch.tensor(computed.value), *computed.arrays.values()]
    return Outcome(float(all(bool(array.isfinite().all()) for array in arrays)))


def equal() -> Vector:
    """Return a batch of two classes in which the two samples of the first class are equal."""
    x = torch.eye(4, dtype=torch.float64)[[0, 0, 1, 2]]
    return Vector("two equal samples", x, torch.tensor([0, 0, 1, 1]), x)


def _histogram(v: Vector) -> Outcome:
    return Outcome(ranking.histogram(v.embeddings, v.names, 20).item())


# ---- a memory


def steps() -> list[Tensor]:
    """Return the three successive batches for the cases with a memory, each with four embeddings, shape (4, 3)."""
    i, d = torch.arange(4, dtype=torch.float64)[:, None], torch.arange(3, dtype=torch.float64)
    return [(0.5 + 0.9 * t + 1.1 * i + 0.7 * d + 0.4 * i * d).sin() for t in range(3)]


def last_step() -> Vector:
    """Return the last of the batches of `steps`, with its labels."""
    return Vector("the third batch", steps()[-1], torch.tensor([0, 0, 1, 1]), torch.eye(3, dtype=torch.float64)[:2])


def _memory(v: Vector) -> Outcome:
    held = torch.cat(steps()[-MEMORY_BATCHES:])
    labels = v.names * MEMORY_BATCHES
    return evaluate_loss(lambda x: pairs.cross_batch(x, v.names, held, labels, 1.5), v)


def _own_memory(v: Vector) -> Outcome:
    loss = losses.for_training("contrastive", classes=2, embedding_dim=3, m_pos=0.0, m_neg=1.5)
    memory: nn.Module = CrossBatchMemory(loss, MEMORY_BATCHES, len(v.labels), 3, start=0).double()
    for batch in steps()[:-1]:
        memory(batch, v.labels)
    return evaluate_loss(lambda x: memory(x, v.labels) - loss(x, v.labels), v)


def case(name: str, title: str, source: str, printed: Computation, on: Vector, **rest: Any) -> Case:
    """Create a conformance case of the kind "known case", which is evaluated only on the batch `on`."""
    return Case(name, "known case", title, source, printed, on=(on,), **rest)


EFFICIENT = "samples of other processes are held constant, so that pairs within a process count twice"
CASES = (
    case(
        "gathered",
        "Multi-similarity over two processes, all gathered",
        "the gradient of the whole batch",
        _whole,
        FOUR_EACH,
        variants={EFFICIENT: _apart},
    ),
    case(
        "gathered_efficiently",
        "Multi-similarity over two processes, gathered efficiently",
        "the gradient of the whole batch",
        _whole,
        FOUR_EACH,
        variants={EFFICIENT: _apart},
    ),
    case(
        "cross_batch_memory",
        "Contrastive against a memory of two batches",
        "Wang et al. 2020 (XBM), without self matches",
        _memory,
        last_step(),
        ours=_own_memory,
    ),
    case(
        "cold_nt_xent",
        "NT-Xent at temperature 0.01",
        "Chen et al. 2020, Eq. 1",
        _cold,
        single(TWO_EACH),
        ours=_in_single("nt_xent", temperature=0.01),
        tolerance=SINGLES,
    ),
    case(
        "far_from_its_proxy",
        "Soft-max over proxies, scale 32 on squared distances",
        "Teh et al. 2020",
        lambda v: evaluate_loss(lambda x, w: proxies.proxy_nca(x, v.names, w, 32.0, own_below=True), v, v.proxies),
        opposite(),
        ours=_in_single("proxy_nca", temperature=1 / 64),
        tolerance=SINGLES,
    ),
    case(
        "collapsed",
        "Distances of unit vectors, times 10^4",
        "|x - y|",
        _distances,
        near(),
        ours=_own_distances,
        tolerance=0.01,
    ),
    case(
        "on_its_weight",
        "ArcFace: value and gradient are finite",
        "a step of training needs it",
        lambda v: Outcome(1.0),
        own_weight(),
        ours=lambda v: finite(_in_single("arcface", margin=math.degrees(0.5))(v)),
    ),
    case(
        "equal_samples",
        "Histogram, value",
        "Ustinova & Lempitsky 2016",
        _histogram,
        equal(),
    ),
)
