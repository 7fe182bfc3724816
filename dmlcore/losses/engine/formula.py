"""Catalogue entries of triplet losses: formula, title, LaTeX, source and annotated hyper-parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from torch import Tensor

from dmlcore.catalogue import FROM_DATA, Catalogue, Entry, Parameter, Slider, declared
from dmlcore.geometry import Triplet
from dmlcore.geometry.batches import check_finite

Exponents = Callable[[Mapping[str, float | str]], tuple[float, float, float]]


@dataclass(frozen=True)
class Margin:
    """Additive margin of a triplet loss. It is added to the value of the formula: raw = core + margin.

    `exponents` maps the hyper-parameters to (s, r, rho) if the formula is the distance-sensitive loss with these
    values; the margin may then be "data" (`geometry.margin_from_data`).
    `tuned_on` names the data set on which the source tuned the default, see `Slider`.
    """

    default: float
    low: float
    high: float
    name: str = "m"
    help: str = "margin, in the units of the energy: larger keeps more triplets active"
    above: float = -math.inf
    exponents: Exponents | None = None
    tuned_on: str = ""

    @property
    def slider(self) -> Slider:
        """Slider that sets the margin in a settings panel."""
        return Slider(
            *(self.low, self.high, self.name.replace("1", "_1"), self.help),
            step=0.005,
            above=self.above,
            words=(FROM_DATA,) if self.exponents else (),
            tuned_on=self.tuned_on,
        )


@dataclass(frozen=True)
class Clamp:
    """Upper end m2 of the window [0, m2] to which the energy of a triplet loss is clamped.

    `default` is the value of m2. `to` names the hyper-parameter that m2 always equals, or is empty. `slider` is False
    if m2 is not part of the published loss but an addition that every triplet loss has; settings panels then hide it.
    `tuned_on` names the data set on which the source tuned the default, see `Slider`.
    """

    default: float = math.inf
    to: str = ""
    slider: bool = False
    tuned_on: str = ""


UPPER = Slider(0.1, 50.0, "m_2", "upper clamp: triplets above it are dropped", log=True, above=0.0, optional=True)

Core = Callable[..., Tensor]
CoreT = TypeVar("CoreT", bound=Core)


@dataclass(frozen=True, kw_only=True)
class LossEntry(Entry):
    """Catalogue entry of a loss of any kind, with its formula in LaTeX and a one-sentence description."""

    latex: str
    sentence: str

    @property
    def energy_latex(self) -> str:
        """Formula in LaTeX of the energy that is minimised, before any clamp."""
        return self.latex

    @property
    def sliders(self) -> Mapping[str, Parameter]:
        """Hyper-parameters that a settings panel offers."""
        return self.parameters


LOSSES: Catalogue[LossEntry] = Catalogue("loss")


@dataclass(frozen=True, kw_only=True)
class TripletFormula(LossEntry):
    """Catalogue entry of a triplet loss. Calling it with points (..., D) returns the value of its formula (...).

    The formula is called the core of the loss: its energy without margin and clamp. The contract tests detect wrong or
    missing values of `symmetric`, `separable` and `difference`.

    Attributes:
        core: Formula as a function of a `Triplet`, without margin and clamp.
        margin: Additive margin, or None.
        clamp: Upper end of the clamp window.
        own: Names of the hyper-parameters of `core`.
        symmetric: True if E(a, p, n) = E(p, a, n), so that a batch evaluates only half of the triplets.
        separable: True if the energy depends on d_ap and d_an alone, has the form A(d_ap) + S(d_ap) B(d_an) and
            decreases with d_an, so that a batch sorts the negatives (see `ranked`).
        difference: True if the core is d_ap - d_an, so that margin and clamp select a range of d_ap - d_an.
    """

    core: Core
    margin: Margin | None
    clamp: Clamp
    own: tuple[str, ...]
    symmetric: bool
    separable: bool
    difference: bool

    def __post_init__(self) -> None:
        """Generate the docstring of this loss from its title, formula, source and hyper-parameters."""
        lines = [self.sentence, "", f"Core: {self.latex}", f"Source: {self.source}", ""]
        for name, parameter in self.parameters.items():
            span = f"{parameter.low:g}..{parameter.high:g}" if isinstance(parameter, Slider) else parameter.options
            lines.append(f"{name} = {self.defaults[name]} ({span}): {parameter.help}")
        object.__setattr__(self, "__doc__", "\n".join(lines))

    def __reduce__(self) -> tuple[Callable[[str], LossEntry], tuple[str]]:
        """Pickle the entry by name, so that a worker process looks it up in its own catalogue."""
        return _entered, (self.name,)

    def __call__(self, anchor: Tensor, positive: Tensor, negative: Tensor, **hyper: float | str) -> Tensor:
        """Compute the energy without margin or clamp, with the batch shape of the points.

        `hyper` holds hyper-parameters of the formula.
        """
        unknown = set(hyper) - set(self.own)
        if unknown:
            raise TypeError(f"{self.name}() has no hyper-parameter {', '.join(sorted(unknown))}")
        return self.core(Triplet.of_points(*check_points(anchor, positive, negative)), **hyper)

    @property
    def energy_latex(self) -> str:
        """Formula in LaTeX of the energy before the clamp, including the margin."""
        if self.margin is None:
            return self.latex
        core, comma, condition = self.latex.partition(r",\quad")
        return f"{core} + {self.parameters[self.margin.name].symbol}{comma}{condition}"

    @property
    def sliders(self) -> Mapping[str, Parameter]:
        """Hyper-parameters that a settings panel offers, without m2 if it is not part of the published loss."""
        return {k: v for k, v in self.parameters.items() if k != "m2" or self.clamp.slider}


def _entered(name: str) -> LossEntry:
    return LOSSES[name]


def triplet_loss(
    *,
    title: str,
    latex: str,
    source: str,
    sentence: str,
    margin: Margin | None = None,
    clamp: Clamp | None = None,
    symmetric: bool = False,
    separable: bool = False,
    difference: bool = False,
) -> Callable[[CoreT], CoreT]:
    """Register a pure function of a `Triplet` and keyword hyper-parameters as a triplet loss under its own name.

    Each hyper-parameter is `Annotated` with its Slider or Choice and has a default. The function is returned unchanged
    except for its docstring, which becomes that of the catalogue entry `losses.formula(name)`.

    Args:
        title: Title on screen.
        latex: Formula in LaTeX.
        source: Citation.
        sentence: One-sentence description.
        margin: Additive margin, or None.
        clamp: Upper end of the clamp window. None means m2 = inf by default.
        symmetric: See `TripletFormula`.
        separable: See `TripletFormula`.
        difference: See `TripletFormula`.
    """
    clamp = clamp or Clamp()

    def enter(core: CoreT) -> CoreT:
        parameters = declared(core)
        own = tuple(parameters["parameters"])
        if margin:
            parameters["parameters"][margin.name] = margin.slider
            parameters["defaults"][margin.name] = margin.default
        if not clamp.to:
            parameters["parameters"]["m2"] = replace(UPPER, tuned_on=clamp.tuned_on)
            parameters["defaults"]["m2"] = clamp.default
        formula = TripletFormula(
            name=core.__name__,
            title=title,
            latex=latex,
            source=source,
            sentence=sentence,
            core=core,
            margin=margin,
            clamp=clamp,
            own=own,
            symmetric=symmetric,
            separable=separable,
            difference=difference,
            **parameters,
        )
        core.__doc__ = formula.__doc__
        LOSSES.enter(formula.name, formula)
        return core

    return enter


def check_points(anchor: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the three points if all are finite floating-point tensors (..., D) whose shapes broadcast.

    Raises:
        TypeError: If a point is not a floating-point tensor; the message names it.
        ValueError: If a value is not finite or the shapes do not broadcast; the message names the point.
    """
    points = {"anchor": anchor, "positive": positive, "negative": negative}
    for name, x in points.items():
        check_finite(name, x)
        if x.ndim < 1 or x.shape[-1] != anchor.shape[-1]:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; needs (..., {anchor.shape[-1]}) like anchor")
    try:
        # avoids torch.broadcast_shapes, which imports a large part of torch
        np.broadcast_shapes(*(x.shape for x in points.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in points.items())
        raise ValueError(f"anchor, positive and negative do not broadcast: {shapes}") from None
    return anchor, positive, negative
