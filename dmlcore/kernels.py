"""Triton kernels of the triplet losses. Importing this module requires Triton; see `losses.engine.fused`.

Samples are sorted by class: the class of sample i is the range from first[i] to last[i] - 1, and its negatives are all
samples outside this range.
"""

from __future__ import annotations

import functools
import linecache
import types
from typing import Any

import triton
import triton.language as tl

POSITIVES, NEGATIVES, WARPS = 8, 128, 4  # shape of the tiles of triplets that a program evaluates at a time
ROWS, COLUMNS = 32, 64  # shape of a tile of distances


@triton.jit
def log1p_exp(x):
    """Compute log(1 + exp(x)) for x <= 0, accurate for results near 0."""
    small = tl.exp(x)
    one = 1.0 + small
    return tl.where(one == 1.0, small, tl.log(one) * (small / tl.where(one == 1.0, 1.0, one - 1.0)))


@triton.jit
def softplus(x):
    """Compute log(1 + exp(x))."""
    return tl.where(x > 0, x, 0.0) + log1p_exp(-tl.abs(x))


@triton.jit
def logaddexp(x, y):
    """Compute log(exp(x) + exp(y))."""
    return tl.where(x > y, x, y) + log1p_exp(-tl.abs(x - y))


@triton.jit
def sort_kernel(labels, order, inverse, first, last, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sort samples by label, stably: sample i goes to position inverse[i], and position k holds sample order[k].

    The class of position k occupies the positions first[k] to last[k] - 1. Each program compares some labels with all
    labels.
    """
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = tl.load(labels + i, mask=i < size, other=0)
    smaller = tl.zeros((ROWS,), tl.int32)
    earlier = tl.zeros((ROWS,), tl.int32)
    equal = tl.zeros((ROWS,), tl.int32)
    for tile in range(0, size, COLUMNS):
        j = tile + tl.arange(0, COLUMNS)
        other = tl.load(labels + j, mask=j < size, other=0)
        inside = (j < size)[None, :]
        same = inside & (other[None, :] == own[:, None])
        smaller += tl.sum((inside & (other[None, :] < own[:, None])).to(tl.int32), 1)
        earlier += tl.sum((same & (j[None, :] < i[:, None])).to(tl.int32), 1)
        equal += tl.sum(same.to(tl.int32), 1)
    place = smaller + earlier
    tl.store(inverse + i, place.to(tl.int64), mask=i < size)
    tl.store(order + place, i.to(tl.int64), mask=i < size)
    tl.store(first + place, smaller, mask=i < size)
    tl.store(last + place, smaller + equal, mask=i < size)


@triton.jit
def distance_kernel(
    left, right, out, rows, columns, left_stride, right_stride, dim, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Write the distances (rows, columns) between the points `left` (dim, rows) and `right` (dim, columns)."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(dim):
        x = tl.load(left + i, mask=i < rows, other=0.0)
        y = tl.load(right + j, mask=j < columns, other=0.0)
        difference = x[:, None] - y[None, :]
        squares += difference * difference
        left += left_stride
        right += right_stride
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    tl.store(out + i[:, None] * columns + j[None, :], tl.sqrt(squares), mask=inside)


energy: Any = None  # replaced by the generated function in each kernel


def _triplet_kernel(
    distances,
    norms,
    first,
    last,
    weights,
    vertices,
    anchors,
    sums,
    counts,
    start,
    size,
    margin,
    m2,
    GRADIENT: tl.constexpr,
    CLAMPED: tl.constexpr,
    READS_PN: tl.constexpr,
    READS_NORMS: tl.constexpr,
    POSITIVES: tl.constexpr,
    NEGATIVES: tl.constexpr,
):
    """Evaluate all triplets of one anchor per program; see `losses.engine.fused` for the arguments.

    `energy` is the function that `losses.engine.symbolic.energy_source` generates. If it reads d_pn, it must be
    symmetric in a and p: the derivatives with respect to d_pn of the triplets (p, a, n) equal those with respect to
    d_an of (a, p, n).
    """
    row = tl.program_id(0).to(tl.int64)
    i = start + row
    begin, end = tl.load(first + i), tl.load(last + i)
    here = distances + row * size
    total = tl.zeros((POSITIVES, NEGATIVES), tl.float32)
    by_aa = tl.zeros((POSITIVES, NEGATIVES), tl.float32)
    nonzero = tl.zeros((POSITIVES, NEGATIVES), tl.int32)
    active = tl.zeros((POSITIVES, NEGATIVES), tl.int32)
    aa = tl.load(norms + i) if READS_NORMS else 0.0
    for chunk in range(begin, end, POSITIVES):
        k = chunk + tl.arange(0, POSITIVES)
        is_positive = (k < end) & (k != i)
        ap = tl.load(here + k, mask=is_positive, other=1.0)
        pp = tl.load(norms + k, mask=is_positive, other=1.0)[:, None] if READS_NORMS else 0.0
        by_ap = tl.zeros((POSITIVES, NEGATIVES), tl.float32)
        by_pp = tl.zeros((POSITIVES, NEGATIVES), tl.float32)
        for tile in range(0, size, NEGATIVES):
            j = tile + tl.arange(0, NEGATIVES)
            is_negative = (j < size) & ((j < begin) | (j >= end))
            valid = is_positive[:, None] & is_negative[None, :]
            an = tl.load(here + j, mask=is_negative, other=1.0)
            others = distances + (k - start).to(tl.int64)[:, None] * size + j[None, :]
            pn = tl.load(others, mask=valid, other=1.0) if READS_PN else 1.0
            nn = tl.load(norms + j, mask=is_negative, other=1.0)[None, :] if READS_NORMS else 0.0
            value, d_ap, d_an, _, d_aa, d_pp, d_nn = energy(ap[:, None], an[None, :], pn, aa, pp, nn)
            raw = value + margin
            # comparisons that are False for NaN, so that NaN reaches the total
            above = valid & ((raw <= 0) == 0)
            inside = above & (raw > 0) & (raw < m2)
            nonzero += above.to(tl.int32)
            active += inside.to(tl.int32)
            if CLAMPED:
                total += tl.where(above, tl.where(raw >= m2, m2, raw), 0.0)
                chosen = inside
            else:
                total += tl.where(valid, raw, 0.0)
                chosen = valid
            if GRADIENT:
                by_ap += tl.where(chosen, d_ap, 0.0)
                by_an = tl.sum(tl.where(chosen, d_an, 0.0), 0)
                if READS_PN:
                    by_an *= 2.0
                old = tl.load(weights + row * size + j, mask=is_negative & (chunk > begin), other=0.0)
                weight = tl.where(an > 0, by_an / tl.where(an > 0, an, 1.0), 0.0)
                tl.store(weights + row * size + j, old + weight, mask=is_negative)
                if READS_NORMS:
                    by_aa += tl.where(chosen, d_aa, 0.0)
                    by_pp += tl.where(chosen, d_pp, 0.0)
                    by_nn = tl.sum(tl.where(chosen, d_nn, 0.0), 0)
                    old = tl.load(vertices + row * size + j, mask=is_negative & (chunk > begin), other=0.0)
                    tl.store(vertices + row * size + j, old + by_nn, mask=is_negative)
        if GRADIENT:
            weight = tl.where(ap > 0, tl.sum(by_ap, 1) / tl.where(ap > 0, ap, 1.0), 0.0)
            tl.store(weights + row * size + k, weight, mask=k < end)
            if READS_NORMS:
                tl.store(vertices + row * size + k, tl.sum(by_pp, 1), mask=k < end)
            tl.debug_barrier()  # the next chunk reads what other threads have stored
    tl.store(sums + i, tl.sum(tl.sum(total.to(tl.float64), 1), 0))
    if GRADIENT and READS_NORMS:
        tl.store(anchors + i, tl.sum(tl.sum(by_aa, 1), 0))
    own = (end - begin).to(tl.int64)
    tl.store(counts + 3 * i, (own - 1) * (size - own))
    tl.store(counts + 3 * i + 1, tl.sum(tl.sum(nonzero.to(tl.int64), 1), 0))
    tl.store(counts + 3 * i + 2, tl.sum(tl.sum(active.to(tl.int64), 1), 0))


@functools.lru_cache(maxsize=256)
def triplet_kernel(source: str) -> Any:
    """Return the kernel `_triplet_kernel` for the function `energy` that is defined by the given source code."""
    scope: dict[str, Any] = {"__name__": __name__, "tl": tl, "softplus": softplus, "logaddexp": logaddexp}
    name = f"<energy {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # Triton reads the source
    exec(compile(source, name, "exec"), scope)
    scope["energy"] = triton.jit(scope["energy"])
    kernel = types.FunctionType(_triplet_kernel.__code__, scope, _triplet_kernel.__name__)
    functools.update_wrapper(kernel, _triplet_kernel)
    del kernel.__dict__["__wrapped__"]
    return triton.jit(kernel, do_not_specialize=["start"])
