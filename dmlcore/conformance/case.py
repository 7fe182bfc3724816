"""Conformance cases, which compare a printed formula with the results of dmlcore and of another library."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

import torch
from torch import Tensor, nn

from dmlcore.conformance.vectors import BALANCED, UNEVEN, Vector

EXACT = 1e-9  # relative to max(1, |printed|), in float64
SINGLE = 1e-6  # deviation that remains if a library keeps a float64 batch in float32 somewhere


@dataclass(frozen=True)
class Outcome:
    """Result of a computation: a number, and arrays (gradients, selected tuples) that must also agree."""

    value: float
    arrays: Mapping[str, Tensor] = field(default_factory=dict)


Computation = Callable[[Vector], Outcome]


@dataclass(frozen=True)
class Case:
    """A computation that libraries offer, with its printed formula.

    Attributes:
        printed: Formula of `source`, written out in float64 and differentiated by autograd. It shares no code with the
            losses of dmlcore or of a library.
        ours: Computation of dmlcore, if it has one.
        variants: Other readings of the formula, keyed by description. The table of results names the variant that a
            library follows if it deviates from the printed formula.
        on: Batches on which the case is evaluated.
        tolerance: Relative tolerance.
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
    """External library: name of the package, module to import, and the computation of each case, keyed by case name."""

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
    """Error for a library that is not installed; the message says what to install."""


class NotRun(RuntimeError):
    """Error for a case that cannot run here, for example because a dependency of the library is missing."""


@dataclass(frozen=True)
class Row:
    """Result of a case on one batch: outcomes or reasons for their absence, and deviations from the formula."""

    case: Case
    vector: str
    printed: Outcome
    theirs: Outcome | str
    theirs_off: float  # deviation of the library; inf if it raised an error, NaN if the case could not run
    ours_off: float | None  # deviation of dmlcore; None if it has no such computation
    follows: str | None = None  # variant that the library computes, if known
    ours_follows: str | None = None  # variant that dmlcore computes, if known

    @property
    def agrees(self) -> bool:
        """True if the library computes the printed formula."""
        return self.theirs_off <= self.case.tolerance

    @property
    def as_printed(self) -> bool:
        """True if the library and, if it has the computation, dmlcore compute the printed formula."""
        return self.verdict.startswith("agrees")

    @property
    def verdict(self) -> str:
        """One-line verdict on which computations match the printed formula."""
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
    """Evaluate a case by the printed formula, by dmlcore and by the library, on one batch."""
    printed = case.printed(vector)
    ours = None if case.ours is None else case.ours(vector)
    ours_off = None if ours is None else deviation(ours, printed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = theirs(vector)
    except (NotRun, ImportError) as reason:
        return Row(case, vector.name, printed, _in_short(reason), float("nan"), ours_off)
    except Exception as error:  # an error that a library raises on a valid batch is its result
        return Row(case, vector.name, printed, _in_short(error, type(error).__name__), float("inf"), ours_off)
    off = deviation(result, printed)
    followed = [
        None if far <= case.tolerance or it is None else _variant(it, case, vector)
        for it, far in ((result, off), (ours, ours_off or 0.0))
    ]
    return Row(case, vector.name, printed, result, off, ours_off, *followed)


def _variant(result: Outcome, case: Case, vector: Vector) -> str | None:
    """Return the first variant of the case that gives `result`; None if no variant does."""
    near = max(case.tolerance, SINGLE)
    return next((name for name, other in case.variants.items() if deviation(result, other(vector)) <= near), None)


def run(cases: Sequence[Case], library: Library) -> list[Row]:
    """Compare all cases for which the library has a call, each on all of its batches, in order.

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
    """Return the largest deviation of value and arrays, relative to max(1, |printed|).

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
    """Return the value of loss(embeddings, *weights) and its gradients with respect to all arguments, by autograd."""
    leaves = [given.detach().to(dtype).clone().requires_grad_() for given in (vector.embeddings, *weights)]
    value = loss(*leaves)
    gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return Outcome(value.item(), dict(zip(("embeddings", "proxies"), gradients, strict=False)))


def evaluate_module(
    module: nn.Module, vector: Vector, weights: str = "", given: Tensor | None = None, *more: object
) -> Outcome:
    """Return the value of module(embeddings, labels, *more) and its gradients.

    `weights` names the parameter of the module that is set to `given`, transposed if necessary.
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
    """Return the selection of a miner as masks. Each of `tuples` is a list of index arrays, for triplets or pairs."""
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
