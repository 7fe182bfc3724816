"""A triplet loss as data: the pure formula with its title, LaTeX, source and annotated hyper-parameters."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor

from dmlcore.catalogue import Choice, Parameter, Slider
from dmlcore.geometry import Triplet


@dataclass(frozen=True)
class Margin:
    """The additive margin of a loss, applied outside its formula: raw = core + margin."""

    default: float
    low: float
    high: float
    name: str = "m"
    help: str = "margin, in the units of the energy: larger keeps more triplets active"
    above: float = -math.inf

    @property
    def slider(self) -> Slider:
        """The margin as a slider."""
        return Slider(self.low, self.high, self.name.replace("1", "_1"), self.help, step=0.005, above=self.above)


@dataclass(frozen=True)
class Clamp:
    """The upper end m2 of the clamp window [0, m2], applied outside the formula.

    `to` names the parameter m2 is tied to; `slider` is False where m2 is a generic extra rather than the source's.
    """

    default: float = math.inf
    to: str = ""
    slider: bool = False


UPPER = Slider(0.1, 50.0, "m_2", "upper clamp: triplets above it are dropped", log=True, above=0.0, optional=True)

Core = Callable[..., Tensor]


@dataclass(frozen=True)
class TripletFormula:
    """One triplet loss of the catalogue; call it with anchor, positive, negative (..., D) for its core (...)."""

    name: str
    title: str
    latex: str
    source: str
    sentence: str
    core: Core
    margin: Margin | None
    clamp: Clamp
    parameters: Mapping[str, Parameter]  # every hyper-parameter: the formula's own, then margin and m2
    defaults: Mapping[str, float | str]
    own: tuple[str, ...]  # names of the formula's own hyper-parameters

    def __post_init__(self) -> None:
        """Write the docstring of this loss from what it declares."""
        lines = [self.sentence, "", f"Core: {self.latex}", f"Source: {self.source}", ""]
        for name, parameter in self.parameters.items():
            span = f"{parameter.low:g}..{parameter.high:g}" if isinstance(parameter, Slider) else parameter.options
            lines.append(f"{name} = {self.defaults[name]} ({span}): {parameter.help}")
        object.__setattr__(self, "__doc__", "\n".join(lines))  # the dataclass is frozen

    def __reduce__(self) -> tuple[Callable[[str], TripletFormula], tuple[str]]:
        """Pickle by name: in its module the name of `core` means this object, not the bare function."""
        return _entered, (self.name,)

    def __call__(self, anchor: Tensor, positive: Tensor, negative: Tensor, **hyper: float | str) -> Tensor:
        """Core energy without margin or clamp; hyper: the formula's own parameters."""
        unknown = set(hyper) - set(self.own)
        if unknown:
            raise TypeError(f"{self.name}() has no hyper-parameter {', '.join(sorted(unknown))}")
        return self.core(Triplet.of_points(*check_points(anchor, positive, negative)), **hyper)

    @property
    def energy_latex(self) -> str:
        """LaTeX of the energy before the clamp: the formula with its margin."""
        if self.margin is None:
            return self.latex
        core, comma, condition = self.latex.partition(r",\quad")
        return f"{core} + {self.parameters[self.margin.name].symbol}{comma}{condition}"

    @property
    def sliders(self) -> dict[str, Parameter]:
        """The parameters a panel offers: all but a generic upper clamp."""
        return {k: v for k, v in self.parameters.items() if k != "m2" or self.clamp.slider}

    def resolve(self, hyper: Mapping[str, Any]) -> dict[str, float | str]:
        """Defaults overlaid with checked `hyper`; TypeError names an unknown one, ValueError an invalid one."""
        unknown = set(hyper) - set(self.parameters)
        if unknown:
            known = ", ".join(self.parameters) or "none"
            raise TypeError(f"{self.name} has no hyper-parameter {', '.join(sorted(unknown))}; it has: {known}")
        given = {k: self.parameters[k].check(f"{self.name}: {k}", v) for k, v in hyper.items()}
        return {**self.defaults, **given}


CATALOGUE: dict[str, TripletFormula] = {}


def _entered(name: str) -> TripletFormula:
    return CATALOGUE[name]


def triplet_loss(
    *,
    title: str,
    latex: str,
    source: str,
    sentence: str,
    margin: Margin | None = None,
    clamp: Clamp | None = None,
) -> Callable[[Core], TripletFormula]:
    """Enter a pure function of a `Triplet` and keyword hyper-parameters into the catalogue under its own name.

    Each hyper-parameter is `Annotated` with its Slider or Choice and has a default.
    """
    clamp = clamp or Clamp()

    def enter(core: Core) -> TripletFormula:
        name = core.__name__
        own = _annotated(core)
        defaults: dict[str, float | str] = {
            k: p.default for k, p in inspect.signature(core).parameters.items() if k in own
        }
        parameters = dict(own)
        if margin:
            parameters[margin.name] = margin.slider
            defaults[margin.name] = margin.default
        if not clamp.to:
            parameters["m2"] = UPPER
            defaults["m2"] = clamp.default
        formula = TripletFormula(
            name, title, latex, source, sentence, core, margin, clamp, parameters, defaults, tuple(own)
        )
        CATALOGUE[name] = formula
        return formula

    return enter


def _annotated(core: Core) -> dict[str, Parameter]:
    hints = get_type_hints(core, include_extras=True)
    own: dict[str, Parameter] = {}
    for name, hint in hints.items():
        if typing.get_origin(hint) is Annotated:
            own[name] = next(x for x in get_args(hint)[1:] if isinstance(x, (Slider, Choice)))
    return own


def check_points(anchor: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three points, or an error that names the one that is no finite floating tensor (..., D) of the same D."""
    points = {"anchor": anchor, "positive": positive, "negative": negative}
    for name, x in points.items():
        check_finite(name, x)
        if x.ndim < 1 or x.shape[-1] != anchor.shape[-1]:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; needs (..., {anchor.shape[-1]}) like anchor")
    try:
        np.broadcast_shapes(*(x.shape for x in points.values()))  # torch's own loads half of torch first
    except ValueError:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in points.items())
        raise ValueError(f"anchor, positive and negative do not broadcast: {shapes}") from None
    return anchor, positive, negative


def check_finite(name: str, x: Tensor, squares: bool = True) -> None:
    """TypeError unless `x` is a floating tensor, ValueError unless its values (and their squares) are finite."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; needs at least one dimension of size 1 or more")
    if x.numel() == 0:
        return
    largest = float(x.detach().abs().max())
    if not math.isfinite(largest):
        raise ValueError(f"{name} contains NaN or infinity")
    if squares and largest > math.sqrt(torch.finfo(x.dtype).max / x.shape[-1]) / 4:
        raise ValueError(f"{name} reaches {largest:g}: its squares overflow {x.dtype}; normalise it first")
