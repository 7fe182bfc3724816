"""Calls of pytorch-metric-learning for the cases of `conformance.known`, some of which use two processes."""

from __future__ import annotations

from functools import cache

from torch import distributed

from dmlcore.conformance.adapters import pml_processes
from dmlcore.conformance.adapters.pml_choices import CALLS
from dmlcore.conformance.adapters.pytorch_metric_learning import LOSSES, learned, loss, parts
from dmlcore.conformance.case import Computation, Library, NotRun, Outcome, evaluate_module
from dmlcore.conformance.known import MEMORY_BATCHES, finite, of_table, steps
from dmlcore.conformance.vectors import Vector

# Cache the gradients, so that the processes start once for both modes.
_both = cache(lambda v: pml_processes.gradients(v.embeddings, v.labels))


def gathered(mode: str) -> Computation:
    """Return a function that evaluates the multi-similarity loss on two processes.

    `mode` is "all" or "efficient", a key of `pml_processes.MODES`.
    """

    def computed(v: Vector) -> Outcome:
        if not distributed.is_available() or not distributed.is_gloo_available():
            raise NotRun("torch is built without gloo")
        value, gradient = _both(v)[mode]
        return Outcome(value, {"embeddings": gradient})

    return computed


def memory(v: Vector) -> Outcome:
    """Compute the loss of the library's cross-batch memory on the last batch of `steps`, after it stored the others."""
    p = parts()
    inner = p.losses.ContrastiveLoss(0, 1.5, distance=p.distances.LpDistance(normalize_embeddings=False))
    module = p.losses.CrossBatchMemory(inner, 3, memory_size=MEMORY_BATCHES * len(v.labels))
    for batch in steps()[:-1]:
        module(batch, v.labels)
    return evaluate_module(module, v)


def distances(v: Vector) -> Outcome:
    """Compute the library's distance matrix in the dtype of the batch."""
    return of_table(parts().distances.LpDistance()(v.embeddings))


def value_only(computed: Computation) -> Computation:
    """Return a function that drops the gradient of `computed`, which is discontinuous on the batch."""
    return lambda v: Outcome(computed(v).value)


def is_finite(computed: Computation) -> Computation:
    """Return a function that returns 1 if the value and gradients of `computed` are finite, otherwise 0."""
    return lambda v: finite(computed(v))


KNOWN: dict[str, Computation] = {
    "gathered": gathered("all"),
    "gathered_efficiently": gathered("efficient"),
    "cross_batch_memory": memory,
    "cold_nt_xent": loss(lambda p: p.losses.NTXentLoss(0.01)),
    "far_from_its_proxy": learned("proxies", lambda p, c, d: p.losses.ProxyNCALoss(c, d, softmax_scale=32)),
    "collapsed": distances,
    "on_its_weight": is_finite(learned("W", lambda p, c, d: p.losses.ArcFaceLoss(c, d, margin=28.6, scale=8))),
    "equal_samples": value_only(loss(lambda p: p.losses.HistogramLoss(n_bins=20))),
}
LIBRARY = Library("pytorch-metric-learning", "pytorch_metric_learning", {**LOSSES, **CALLS, **KNOWN})
