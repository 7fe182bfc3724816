"""Conformance cases, each of which compares a printed formula with the results of dmlcore and of another library."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

import torch
from torch import Tensor, nn

from dmlcore.conformance.vectors import BALANCED, UNEVEN, Vector

EXACT = 1e-9  # tolerance relative to max(1, |printed result|) up to which a float64 result counts as exact
# Relative deviation up to which a result counts as exact to float32. A library may convert a float64 batch to float32.
SINGLE = 1e-6


@dataclass(frozen=True)
class Outcome:
    """Result of a computation: a number, and named arrays such as gradients or masks of selected tuples."""

    value: float
    arrays: Mapping[str, Tensor] = field(default_factory=dict)


Computation = Callable[[Vector], Outcome]


@dataclass(frozen=True)
class Case:
    """Computation that libraries offer, with the formula as printed in its source.

    Attributes:
        printed: Formula of `source`, written out in float64 and differentiated by autograd. It shares no code with the
            losses of dmlcore or of a library.
        ours: Computation of dmlcore; None if dmlcore does not offer it.
        variants: Other readings of the formula, keyed by description. If a library deviates from the printed formula,
            the table of results names the variant that the library computes.
        on: Batches on which the case is evaluated.
        tolerance: Tolerance relative to max(1, |printed result|).
    """

    name: str
    kind: str
    title: str
    source: str
    printed: Computation
    ours: Computation | None = None
    variants: Mapping[str, Computation] = field(default_factory=dict)
    on: Sequence[Vector] = (BALANCED, UNEVEN)
    tolerance: float = EXACT


@dataclass(frozen=True)
class Library:
    """External library: package name, module to import, and the computations that it offers, keyed by case name."""

    name: str
    module: str
    calls: Mapping[str, Computation]

    @property
    def version(self) -> str:
        """Installed version. Raises LibraryMissing if the library cannot be imported."""
        try:
            importlib.import_module(self.module)
            return metadata.version(self.name)
        except (ImportError, metadata.PackageNotFoundError) as error:
            raise LibraryMissing(
                f"{self.name} cannot be imported here ({error}): install it with "
                f"'pip install {self.name}' and try again"
            ) from error


class LibraryMissing(RuntimeError):
    """Error raised if a library is not installed; the message contains the install command."""


class NotRun(RuntimeError):
    """Error raised if a case cannot run here, for example because a dependency of the library is missing."""


@dataclass(frozen=True)
class Row:
    """Result of a case on one batch.

    `theirs` is the outcome of the library, or a string with the reason why there is none. The deviations `theirs_off`
    and `ours_off` are relative to the printed formula.
    """

    case: Case
    vector: str
    printed: Outcome
    theirs: Outcome | str
    theirs_off: float  # deviation of the library; inf if it raised an error, NaN if the case could not be run
    ours_off: float | None  # deviation of dmlcore; None if dmlcore does not offer the computation
    follows: str | None = None  # name of the variant that the library computes instead of the printed formula, if known
    # name of the variant that dmlcore computes instead of the printed formula, if known
    ours_follows: str | None = None

    @property
    def agrees(self) -> bool:
        """True if the library's result equals that of the printed formula up to the case's tolerance."""
        return self.theirs_off <= self.case.tolerance

    @property
    def as_printed(self) -> bool:
        """True if the library, and dmlcore if it offers the computation, agree with the printed formula."""
        return self.verdict.startswith("agrees")

    @property
    def verdict(self) -> str:
        """One-line verdict that states which of dmlcore and the library match the printed formula."""
        if isinstance(self.theirs, str) and self.theirs_off != self.theirs_off:
            return f"not run: {self.theirs}"
        ours = None if self.ours_off is None else self.ours_off <= self.case.tolerance
        if self.agrees:
            if ours is not False:
                return "agrees"
            also = f"; dmlcore computes: {self.ours_follows}" if self.ours_follows else ""
            return f"**the library is right**, dmlcore is not{also}"
        if self.theirs_off <= SINGLE and ours is not False:
            return "agrees, to float32"
        if isinstance(self.theirs, str):
            result = f"the library raises {self.theirs}"
        else:
            result = {True: "**dmlcore is right**", False: "neither is as printed", None: "not as printed"}[ours]
        return f"{result}; it computes: {self.follows}" if self.follows else result


def compare(case: Case, vector: Vector, theirs: Computation) -> Row:
    """Evaluate the printed formula, dmlcore and the library on one batch of a case, and return the compared results."""
    printed = case.printed(vector)
    ours = None if case.ours is None else case.ours(vector)
    ours_off = None if ours is None else deviation(ours, printed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = theirs(vector)
    except (NotRun, ImportError) as reason:
        return Row(case, vector.name, printed, _in_short(reason), float("nan"), ours_off)
    except Exception as error:  # an error on a valid batch counts as the library's result
        return Row(case, vector.name, printed, _in_short(error, type(error).__name__), float("inf"), ours_off)
    off = deviation(result, printed)
    followed = [
        None if far <= case.tolerance or it is None else _variant(it, case, vector)
        for it, far in ((result, off), (ours, ours_off or 0.0))
    ]
    return Row(case, vector.name, printed, result, off, ours_off, *followed)


def _variant(result: Outcome, case: Case, vector: Vector) -> str | None:
    """Return the name of the first variant of the case with the outcome `result`; None if no variant matches."""
    near = max(case.tolerance, SINGLE)
    return next((name for name, other in case.variants.items() if deviation(result, other(vector)) <= near), None)


def run(cases: Sequence[Case], library: Library) -> list[Row]:
    """Compare all cases that the library implements, each on all of its batches, and return one row per comparison.

    Raises:
        LibraryMissing: If the library is not installed.
    """
    assert library.version
    return [
        compare(case, vector, library.calls[case.name])
        for case in cases
        if case.name in library.calls
        for vector in case.on
    ]


def deviation(result: Outcome, printed: Outcome) -> float:
    """Return the largest deviation of the value and the arrays from the printed ones, relative to max(1, |printed|).

    The deviation is inf if a shape or name differs, or if a number is not finite.
    """
    if result.arrays.keys() != printed.arrays.keys():
        return float("inf")
    pairs = [tuple(torch.tensor(of.value, dtype=torch.float64) for of in (result, printed))]
    pairs += [(result.arrays[name], printed.arrays[name]) for name in printed.arrays]
    far = 0.0
    for a, b in pairs:
        a, b = a.double(), b.double()
        if a.shape != b.shape or not bool(a.isfinite().all()):
            return float("inf")
        if b.numel():
            far = max(far, float((a - b).abs().max() / b.abs().max().clamp(min=1)))
    return far


def evaluate_loss(
    loss: Callable[..., Tensor], vector: Vector, *weights: Tensor, dtype: torch.dtype = torch.float64
) -> Outcome:
    """Return the value of loss(embeddings, *weights) and its gradients with respect to all of these arguments."""
    leaves = [given.detach().to(dtype).clone().requires_grad_() for given in (vector.embeddings, *weights)]
    value = loss(*leaves)
    gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return Outcome(value.item(), dict(zip(("embeddings", "proxies"), gradients, strict=False)))


def evaluate_module(
    module: nn.Module, vector: Vector, weights: str = "", given: Tensor | None = None, *more: object
) -> Outcome:
    """Return the value of module(embeddings, labels, *more) and its gradients with respect to embeddings and weights.

    `weights` is the name of the module parameter that is set to `given` (the batch's proxies if None), transposed if
    necessary. If it is "", only the gradient with respect to the embeddings is computed.
    """
    embeddings = vector.embeddings.detach().clone().requires_grad_()
    if not weights:
        value = module(embeddings, vector.labels, *more).sum()
        (gradient,) = torch.autograd.grad(value, embeddings, allow_unused=True, materialize_grads=True)
        return Outcome(value.item(), {"embeddings": gradient})
    given = vector.proxies if given is None else given
    parameter = getattr(module.double(), weights)
    turned = parameter.shape != given.shape
    parameter.data = (given.T if turned else given).detach().to(embeddings.dtype).clone()
    value = module(embeddings, vector.labels, *more).sum()
    gradients = torch.autograd.grad(value, (embeddings, parameter))
    return Outcome(value.item(), {"embeddings": gradients[0], "proxies": gradients[1].T if turned else gradients[1]})


def selection_masks(size: int, *tuples: Sequence[Tensor]) -> Outcome:
    """Return the number of tuples that a miner selected, and the selection as masks.

    Each of `tuples` is a list of index arrays: three for triplets, two for pairs.
    """
    masks, count = {}, 0
    for place, indices in enumerate(tuples):
        mask = torch.zeros((size,) * len(indices), dtype=torch.float64)
        if len(indices[0]):
            mask[tuple(torch.as_tensor(index).long() for index in indices)] = 1.0
        masks["triplets" if len(indices) == 3 else ("positives", "negatives")[place]] = mask
        count += int(mask.sum())
    return Outcome(float(count), masks)


def _in_short(error: Exception, kind: str = "") -> str:
    words = ": ".join(filter(None, (kind, " ".join(str(error).split()))))
    return words if len(words) <= 90 else words[:89] + "…"
