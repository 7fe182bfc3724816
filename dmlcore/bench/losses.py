"""Losses on a GPU, forward and backward, compared with pytorch-metric-learning (PML) and `torch.cdist`.

Unit embeddings in float32, 128 dimensions, 8 samples per class. Prints, as Markdown tables: every triplet loss with its
time and memory; one loss over a memory bank, whose gradient is checked in float64 for a few samples; the largest errors
of 1,000 random batches against float64 on the CPU; and every other loss with its counterpart in PML.
Times are medians from an idle to an idle device. `--small` tries the code on a CPU, with the tables instead of kernels.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dmlcore import losses
from dmlcore.bench.measuring import DEVICE, heading, idle, peak_mebibytes, row, seconds
from dmlcore.geometry import Triplet
from dmlcore.losses.engine import table

try:
    from pytorch_metric_learning import losses as pml
    from pytorch_metric_learning.regularizers import SparseCentersRegularizer
except ImportError:
    pml = None

DIM, PER_CLASS = 128, 8
Loss = Callable[[Tensor, Tensor], Tensor]

# counterparts in PML of the losses that are no triplet losses, as functions of (library, classes, dimension)
COUNTERPARTS: dict[str, Callable[[Any, int, int], Any]] = {
    "contrastive": lambda p, c, d: p.ContrastiveLoss(0.0, 0.3841),
    "margin": lambda p, c, d: p.MarginLoss(0.5, beta=1.2),
    "multi_similarity": lambda p, c, d: p.MultiSimilarityLoss(2, 50, 0.5),
    "triplet": lambda p, c, d: p.TripletMarginLoss(0.1),
    "lifted_structure": lambda p, c, d: p.LiftedStructureLoss(neg_margin=1),
    "n_pair": lambda p, c, d: p.NPairsLoss(),
    "nt_xent": lambda p, c, d: p.NTXentLoss(0.1),
    "supervised_contrastive": lambda p, c, d: p.SupConLoss(0.1),
    "circle": lambda p, c, d: p.CircleLoss(0.25, 256),
    "tuplet": lambda p, c, d: p.TupletMarginLoss(),
    "proxy_nca": lambda p, c, d: p.ProxyNCALoss(c, d),
    "proxy_anchor": lambda p, c, d: p.ProxyAnchorLoss(c, d),
    "soft_triple": lambda p, c, d: p.SoftTripleLoss(
        *(c, d, 2, 20, 0.1, 0.1),
        weight_regularizer=SparseCentersRegularizer(c, 2),
        weight_reg_weight=0.2,
    ),
    "cross_entropy": lambda p, c, d: p.NormalizedSoftmaxLoss(c, d),
    "arcface": lambda p, c, d: p.ArcFaceLoss(c, d),
    "sub_centre_arcface": lambda p, c, d: p.SubCenterArcFaceLoss(num_classes=c, embedding_size=d),
    "cosface": lambda p, c, d: p.CosFaceLoss(c, d),
}


def main() -> None:
    """Run all parts one after another; a part that fails prints its traceback."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="small sizes, for a machine without a GPU")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--compile", nargs="*", help="only compile the kernels of these losses")
    arguments = parser.parse_args()
    if DEVICE.type == "cpu" and not arguments.small:
        print("this machine has no usable CUDA device: nothing was measured (--small tries the code)")
        return
    torch.set_num_threads(min(8, torch.get_num_threads()))
    torch.backends.cuda.matmul.allow_tf32 = False
    if arguments.compile:
        compile_kernels(arguments.compile)
        return
    failed = False
    for name in arguments.only:
        began = time.perf_counter()
        try:
            PARTS[name](arguments.small)
        except Exception:
            failed = True
            traceback.print_exc()
        torch.cuda.empty_cache()
        print(f"\n({name}: {time.perf_counter() - began:.1f} s)", flush=True)
    sys.exit(failed)


# ---- compilation: the disk cache of Triton hands the kernels to this process

PROCESSES = 14


def compile_in_processes() -> None:
    """Compile the kernels of all triplet losses, in parallel."""
    command = [sys.executable, "-m", "dmlcore.bench.losses", "--compile"]
    started = [subprocess.Popen([*command, *losses.names()[start::PROCESSES]]) for start in range(PROCESSES)]
    for process in started:
        process.wait(90)


def compile_kernels(names: Sequence[str]) -> None:
    """Compile the kernels of some losses, for batches whose size is a multiple of 16 and for other ones."""
    for name in names:
        for size in (64, 50):
            run(losses.create(name), *batch(size))


# ---- tables


def time_triplet_losses(small: bool) -> None:
    """Compare every triplet loss with PML's TripletMarginLoss and `torch.cdist`, in time and memory."""
    first = {name: losses.create(name).to(DEVICE) for name in losses.names()}
    if not small:
        began = idle()
        run(first["ranking"], *batch(64))
        print(f"\nfirst call of one loss, compilation included: {idle() - began:.1f} s", flush=True)
        compile_in_processes()
        print(f"first call of all triplet losses, in {PROCESSES} processes: {idle() - began:.1f} s", flush=True)
    for size in (32, 64) if small else (128, 512, 2048):
        heading(f"batch {size}", "ms", "of PML", "of cdist", "MiB", "of PML", "host waits")
        points, labels = batch(size)
        rivals: dict[str, Loss] = {"torch.cdist": lambda x, _: torch.cdist(x, x).sum()}
        rivals |= {"PML TripletMarginLoss": pml.TripletMarginLoss(margin=0.1)} if pml else {}
        rivals |= first | {f"{name}, tables": Tables(name) for name in ("ranking", "distance_sensitive")}
        measured: dict[str, tuple[float, float]] = {}
        for name, loss in rivals.items():
            measured[name] = measure(loss, points, labels)
            (ms, mebibytes), floor = measured[name], measured["torch.cdist"][0]
            rival, most = measured.get("PML TripletMarginLoss", (math.nan, math.nan))
            waits = count_waits(loss, points, labels)
            row(
                name,
                f"{ms:.3f}",
                f"{ms / rival:.2f}",
                f"{ms / floor:.1f}",
                f"{mebibytes:.1f}",
                f"{mebibytes / most:.3f}",
                waits,
            )


def time_other_losses(small: bool) -> None:
    """Compare the losses that are no triplet losses with their counterparts in PML."""
    for size in (32,) if small else (512, 2048):
        points, labels = batch(size)
        classes = int(labels.max()) + 1
        heading(f"batch {size}", "ms", "PML, ms", "ratio", "MiB", "PML, MiB")
        for name in losses.batch_names():
            if size > 512 and name in ("facility_location", "wel", "wedl"):
                continue
            loss = losses.for_training(name, classes=classes, embedding_dim=DIM).to(DEVICE)
            repeats = 15 if size <= 512 else 5
            ms, mebibytes = measure(loss, points, labels, repeats)
            make = COUNTERPARTS.get(name) if pml else None
            rival, most = (
                measure(make(pml, classes, DIM).to(DEVICE), points, labels, repeats) if make else (math.nan, math.nan)
            )
            row(name, f"{ms:.3f}", f"{rival:.3f}", f"{ms / rival:.2f}", f"{mebibytes:.1f}", f"{most:.1f}")


def check_random_batches(small: bool) -> None:
    """Compare values and gradients of random and degenerate batches with float64 on the CPU."""
    heading(
        "1,000 random batches",
        "batches",
        "value",
        "gradient",
        "the same, float32 on the CPU",
        "other counts",
        "above 1e-5",
    )
    draw, count = random.Random(0), 4 if small else 77
    for name in losses.names():
        errors: list[tuple[float, float, float, str]] = []
        differ = 0
        for _ in range(count):
            kind, points, labels = random_batch(draw)
            reduction = draw.choice(("mean_valid", "mean_nonzero"))
            value, gradient, counts = results(name, reduction, points.to(DEVICE), labels.to(DEVICE))
            right, slope, expected = results(name, reduction, points.double(), labels)
            plain = results(name, reduction, points, labels)[:2]
            if counts != expected and kind != "NaN":
                differ += 1  # a triplet lies on an edge of its window up to rounding
                continue
            error = relative(value, right), relative(gradient, slope)
            errors.append((*error, max(relative(plain[0], right), relative(plain[1], slope)), kind))
        worst = [max(column) for column in list(zip(*errors, strict=True))[:3]]
        bad = [f"{kind} {max(a, b):.0e}" for a, b, _, kind in errors if max(a, b) > 1e-5]
        row(name, len(errors), *(f"{x:.1e}" for x in worst), differ, f"{len(bad)} {', '.join(bad[:3])}")


def check_bank(small: bool) -> None:
    """Time the mean over all triplets of a memory bank, and check the gradients of four samples in float64."""
    heading("memory bank", "triplets", "seconds", "GiB", "largest error of a gradient")
    names, sizes = ("ranking", "distance_sensitive", "moving"), (64,) if small else (1 << 12, 1 << 16)
    for name, size in [*itertools.product(names, sizes), *([] if small else [("ranking", 1 << 18)])]:
        points, labels = batch(size)
        loss = losses.create(name).to(DEVICE)
        call = functools.partial(run, loss, points, labels)
        spent, gibibytes, gradient = seconds(call, 1), peak_mebibytes(call) / 1024, call()
        error = 0.0
        for i in (0, size // 2, size - 3):
            right = sample_gradient(loss, points.double(), i) / loss.counts.valid
            error = max(error, relative(gradient[i], right))
        row(
            f"{name}, {size} x {DIM}",
            f"{loss.counts.valid:.3g}",
            f"{spent:.3f}",
            f"{gibibytes:.2f}",
            f"{error:.1e}",
        )


# ---- inputs and references


def batch(size: int, per_class: int = PER_CLASS) -> tuple[Tensor, Tensor]:
    """Return random unit embeddings (size, DIM) and labels (size,) on the device."""
    points = normalize(torch.randn(size, DIM, generator=torch.Generator().manual_seed(0)))
    return points.to(DEVICE), (torch.arange(size) // per_class).to(DEVICE)


def random_batch(draw: random.Random) -> tuple[str, Tensor, Tensor]:
    """Return the kind of a random batch, its embeddings and its labels, on the CPU."""
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    kind = draw.choice(("random",) * 6 + ("one class", "no positives", "one sample", "coincident", "ties", "NaN"))
    size, dim = 1 if kind == "one sample" else draw.randint(4, 60), draw.choice((2, 16, 64, 128))
    points = normalize(torch.randn(size, dim, generator=generator))
    labels = torch.randint(0, draw.choice((2, 4, 12)), (size,), generator=generator)
    if kind == "one class":
        labels.zero_()
    elif kind == "no positives":
        labels = torch.randperm(size, generator=generator)
    elif kind == "coincident":
        points = points[torch.randint(0, max(1, size // 3), (size,), generator=generator)]
    elif kind == "ties":
        points = torch.randint(-1, 2, (size, dim), generator=generator).float()
    elif kind == "NaN":
        points[0, 0] = math.nan
        labels = torch.arange(size) // (size // 2 + 1)  # two classes, so that some triplet contains the sample
    return kind, points, labels


def results(name: str, reduction: str, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, object]:
    """Return value, gradient and counts of a triplet loss, the first two in float64 on the CPU."""
    loss = losses.create(name, reduction=reduction)
    x = points.clone().requires_grad_()
    if points.isnan().any() and not points.is_cuda:  # refused on the CPU; the result on a GPU must be NaN
        return torch.tensor(math.nan), torch.full_like(points, math.nan), None
    value = loss(x, labels)
    (gradient,) = torch.autograd.grad(value, x)
    return value.detach().double().cpu(), gradient.double().cpu(), loss.counts


def relative(value: Tensor, right: Tensor) -> float:
    """Return |value - right| / |right|, or |value - right| if |right| is below 1e-6; 0 for NaN where NaN is right."""
    value, right = value.detach().double().cpu(), right.detach().double().cpu()
    if right.isnan().all():
        return 0.0 if value.ndim else (0.0 if value.isnan() else math.inf)
    size = float(right.norm())
    return float((value - right).norm()) / (size if size > 1e-6 else 1.0)


def sample_gradient(loss: losses.TripletLoss, points: Tensor, i: int) -> Tensor:
    """Return the gradient of the sum of all energies with respect to sample i, from all triplets that contain it.

    `points` (B, D) holds classes of PER_CLASS consecutive samples.
    """
    x = points[i].clone().requires_grad_()
    rows = torch.arange(len(points), device=points.device)
    own = rows // PER_CLASS == i // PER_CLASS
    positives, negatives = rows[own & (rows != i)], rows[~own]
    squares = points.square().sum(1)
    to = torch.linalg.vector_norm(x - points, dim=1)
    between = torch.cdist(points[positives], points[negatives])
    a, p = (
        rows[~own].view(-1, PER_CLASS)[:, index]
        for index in torch.tensor(list(itertools.permutations(range(PER_CLASS), 2))).T
    )
    inside = torch.linalg.vector_norm(points[a] - points[p], dim=2)
    pull, push, norm = to[positives][:, None], to[negatives][None], x.square().sum()
    near, far = squares[positives][:, None], squares[negatives][None]
    cases = (
        {"ap": pull, "an": push, "pn": between, "a": norm, "p": near, "n": far},
        {"ap": pull, "an": between, "pn": push, "a": near, "p": norm, "n": far},
        {"ap": inside, "an": to[a], "pn": to[p], "a": squares[a], "p": squares[p], "n": norm},
    )
    total = torch.zeros((), dtype=torch.float64, device=points.device)
    for case in cases:
        raw = loss.raw_of(Triplet(case.__getitem__, case.__getitem__, loss.floor))
        total = total + torch.where((raw > 0) & (raw < loss.m2), raw, 0.0).sum()
    return torch.autograd.grad(total, x)[0]


class Tables:
    """A triplet loss without kernels, evaluated in blocks."""

    def __init__(self, name: str) -> None:
        self.loss = losses.create(name)

    def __call__(self, points: Tensor, labels: Tensor) -> Tensor:
        loss = self.loss
        energy, counts = table.table_energy(
            *table.pair_tables(points),
            lambda _: table.valid_blocks(labels, loss.formula.symmetric, points.device, False),
            loss._energy,
            loss._window(),
            loss.floor,
        )
        return energy / counts.tally[0]


# ---- clocks


def run(loss: Loss, points: Tensor, labels: Tensor) -> Tensor:
    """Compute a loss and return its gradient with respect to the embeddings."""
    x = points.clone().requires_grad_()
    return torch.autograd.grad(loss(x, labels), x)[0]


def measure(loss: Loss, points: Tensor, labels: Tensor, repeats: int = 15) -> tuple[float, float]:
    """Return the median milliseconds of forward and backward, and the peak memory in MiB above the inputs."""
    call = functools.partial(run, loss, points, labels)
    return 1e3 * seconds(call, repeats), peak_mebibytes(call)


def count_waits(loss: Loss, points: Tensor, labels: Tensor) -> str:
    """Return "no" if the host never waits for the device, otherwise the first reason."""
    if DEVICE.type == "cpu":
        return ""
    torch.cuda.set_sync_debug_mode("error")
    try:
        run(loss, points, labels)
        return "no"
    except RuntimeError:
        return "yes"
    finally:
        torch.cuda.set_sync_debug_mode("default")


PARTS = {
    "triplets": time_triplet_losses,
    "bank": check_bank,
    "random": check_random_batches,
    "others": time_other_losses,
}

if __name__ == "__main__":
    main()
