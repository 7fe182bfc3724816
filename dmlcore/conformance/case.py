"""A case: what was printed, what dmlcore computes, what a library computes; and who of the last two is as printed."""

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
SINGLE = 1e-6  # what is left where a library keeps a float64 batch in float32 somewhere


@dataclass(frozen=True)
class Outcome:
    """What a computation came to: a number, and arrays (gradients, chosen tuples) that must be the same as well."""

    value: float
    arrays: Mapping[str, Tensor] = field(default_factory=dict)


Computation = Callable[[Vector], Outcome]


@dataclass(frozen=True)
class Case:
    """One thing that libraries compute.

    printed: the formula of `source`, written out in float64 and differentiated by autograd; it shares no code with
    dmlcore's losses nor with a library. ours: dmlcore's own, where there is one. variants: other readings, by what they
    do; the table says which of them a library follows where it is not as printed. tolerance: relative.
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
    """A library and what it calls each case: module to import, name to install, the call of each case by its name."""

    name: str
    module: str
    calls: Mapping[str, Computation]

    @property
    def version(self) -> str:
        """The version that is installed; raises LibraryMissing."""
        try:
            importlib.import_module(self.module)
            return metadata.version(self.name)
        except (ImportError, metadata.PackageNotFoundError) as error:
            raise LibraryMissing(
                f"{self.name} cannot be imported here ({error}): install it beside dmlcore with "
                f"'pip install {self.name}' and ask again"
            ) from error


class LibraryMissing(RuntimeError):
    """A library is not installed; the message says what to install."""


class NotRun(RuntimeError):
    """A case cannot be tried here, for a reason that is not the library's answer (a dependency is missing)."""


@dataclass(frozen=True)
class Row:
    """A case on a vector: outcomes, or why there is none, and how far library and dmlcore are from what was printed."""

    case: Case
    vector: str
    printed: Outcome
    theirs: Outcome | str
    theirs_off: float  # inf where the library raised; NaN where the case could not be tried
    ours_off: float | None  # None where dmlcore has none
    follows: str | None = None  # the variant that the library computes
    ours_follows: str | None = None  # the variant that dmlcore computes

    @property
    def agrees(self) -> bool:
        """Whether the library computes what was printed."""
        return self.theirs_off <= self.case.tolerance

    @property
    def as_printed(self) -> bool:
        """Whether there is nothing to tell: the library computes what was printed, and dmlcore does if it has it."""
        return self.verdict.startswith("agrees")

    @property
    def verdict(self) -> str:
        """Who is as printed, from the three numbers alone."""
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
    """Run a case three ways on a vector."""
    printed = case.printed(vector)
    ours = None if case.ours is None else case.ours(vector)
    ours_off = None if ours is None else deviation(ours, printed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = theirs(vector)
    except (NotRun, ImportError) as reason:
        return Row(case, vector.name, printed, _in_short(reason), float("nan"), ours_off)
    except Exception as error:  # whatever a library raises on a valid batch is its answer
        return Row(case, vector.name, printed, _in_short(error, type(error).__name__), float("inf"), ours_off)
    off = deviation(result, printed)
    followed = [
        None if far <= case.tolerance or it is None else _variant(it, case, vector)
        for it, far in ((result, off), (ours, ours_off or 0.0))
    ]
    return Row(case, vector.name, printed, result, off, ours_off, *followed)


def _variant(result: Outcome, case: Case, vector: Vector) -> str | None:
    """The name of the first variant that comes to the same."""
    near = max(case.tolerance, SINGLE)
    return next((name for name, other in case.variants.items() if deviation(result, other(vector)) <= near), None)


def run(cases: Sequence[Case], library: Library) -> list[Row]:
    """All cases that the library has a call for, in their order; raises LibraryMissing."""
    assert library.version
    return [
        compare(case, vector, library.calls[case.name])
        for case in cases
        if case.name in library.calls
        for vector in case.on
    ]


def deviation(result: Outcome, printed: Outcome) -> float:
    """Largest relative deviation of value and arrays, relative to max(1, |printed|); inf where a shape or name is off,
    or a number is not finite.
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


def differentiated(
    loss: Callable[..., Tensor], vector: Vector, *weights: Tensor, dtype: torch.dtype = torch.float64
) -> Outcome:
    """Value of loss(embeddings, *weights) and its gradients, by autograd."""
    leaves = [given.detach().to(dtype).clone().requires_grad_() for given in (vector.embeddings, *weights)]
    value = loss(*leaves)
    gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return Outcome(value.item(), dict(zip(("embeddings", "proxies"), gradients, strict=False)))


def of_module(
    module: nn.Module, vector: Vector, weights: str = "", given: Tensor | None = None, *more: object
) -> Outcome:
    """Value of module(embeddings, labels, *more) and its gradients; `weights` names the parameter that gets `given`,
    as it is or transposed, whichever fits.
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


def chosen(size: int, *tuples: Sequence[Tensor]) -> Outcome:
    """What a miner chose, as masks: each of `tuples` is a list of index arrays, of triplets or of pairs."""
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
