"""Specification of a simulation as validated plain data: placement, dynamics, and changes during the simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import torch

from dmlcore import eager, losses, mining
from dmlcore.simulation.placements import STARTS

NORMALISATIONS = {
    "none": "Points move freely in the plane.",
    "renormalise": "After every step each point is put back on the unit circle: x / |x|.",
    "project": "Only the part of the force along the unit circle acts, then x / |x|.",
}
SIDES = {
    "both": "Pull and push act.",
    "pull": "Only the forces along the edges anchor-positive act.",
    "push": "Only the forces along the edges to negatives act.",
}


@dataclass(frozen=True)
class Optimiser:
    """Optimiser from torch.optim, with its title in the settings panel and a function that creates it."""

    title: str
    create: Callable[..., torch.optim.Optimizer]


OPTIMISERS = {
    "sgd": Optimiser("SGD", partial(eager.uncompiled(torch.optim.SGD), foreach=False)),
    "momentum": Optimiser("SGD, momentum 0.9", partial(eager.uncompiled(torch.optim.SGD), momentum=0.9, foreach=False)),
    "rmsprop": Optimiser("RMSprop", partial(eager.uncompiled(torch.optim.RMSprop), foreach=False)),
    "adam": Optimiser("Adam", partial(eager.uncompiled(torch.optim.Adam), foreach=False)),
}
MOST_CLASSES, MOST_PER_CLASS, MOST_POINTS = 8, 100, 300
MOST_CHANGES = 24
MOST_STEPS = 1000
REACH = 10.0  # coordinates are clipped to [-REACH, REACH]
ALL = "all"  # value of `miner` that uses every valid triplet


@dataclass(frozen=True)
class Dynamics:
    """Rules by which the points move: loss, miner, forces, optimiser, step size and normalisation.

    `step_size` is the distance that a point moves per step of SGD under a force of length 1. The force on a point is N
    times the negative gradient of the mean loss over N points. `side` selects the forces that act: "pull", "push" or
    "both".

    Raises:
        KeyError, TypeError, ValueError: If a field is invalid; the message names it.
    """

    loss: str = "distance_sensitive"
    hyper: Mapping[str, float | str] = field(default_factory=dict)  # omitted hyper-parameters get their defaults
    optimiser: str = "sgd"
    step_size: float = 0.05
    miner: str = ALL
    side: str = "both"
    normalise: str = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hyper", losses.formula(self.loss).resolve(self.hyper))
        _one_of("optimiser", self.optimiser, OPTIMISERS)
        _one_of("side", self.side, SIDES)
        _one_of("normalise", self.normalise, NORMALISATIONS)
        _one_of("miner", self.miner, (ALL, *mining.on_distances()))
        if not (math.isfinite(self.step_size) and 0 < self.step_size <= 10):
            raise ValueError(f"step_size must be in (0, 10], got {self.step_size}")

    def __hash__(self) -> int:
        return hash((self.loss, *sorted(self.hyper.items()), self.optimiser, self.step_size, self.miner, self.side))

    def module(self) -> losses.TripletLoss:
        """Return the loss module with the hyper-parameters `hyper`."""
        return losses.create(self.loss, **self.hyper)


@dataclass(frozen=True)
class Change:
    """Change made by the user before step `at`.

    `law` holds the new dynamics, or None. `moved` holds the new positions of moved points as (index, x, y).
    """

    at: int
    law: Dynamics | None = None
    moved: tuple[tuple[int, float, float], ...] = ()

    @property
    def first(self) -> int:
        """Index of the first frame that shows the change."""
        return self.at


@dataclass(frozen=True)
class Spec:
    """All settings that determine a simulation; equal specs give bit-identical histories on one machine.

    A simulation has 2 to 8 classes, 2 to 100 points per class, and at most 300 points. `changes` holds at most 24
    changes, sorted by step.
    """

    start: str = "random"
    classes: int = 5
    per_class: int = 60
    seed: int = 0
    law: Dynamics = field(default_factory=Dynamics)
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        _one_of("start", self.start, STARTS)
        for name, low, high in (
            ("classes", 2, MOST_CLASSES),
            ("per_class", 2, MOST_PER_CLASS),
            ("seed", 0, 2**31 - 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be in {low}..{high}, got {getattr(self, name)}")
        if self.points > MOST_POINTS:
            raise ValueError(f"classes x per_class must be at most {MOST_POINTS} points, got {self.points}")
        steps = [change.at for change in self.changes]
        if len(steps) > MOST_CHANGES or steps != sorted(steps) or not all(0 <= at <= MOST_STEPS for at in steps):
            raise ValueError(f"changes must be at most {MOST_CHANGES}, in order, at steps 0..{MOST_STEPS}, got {steps}")
        for change in self.changes:
            for index, *at in change.moved:
                if not (0 <= index < self.points and all(abs(x) <= REACH for x in at)):
                    raise ValueError(f"moved: index must be below {self.points}, coordinates within {REACH:g}")

    @property
    def points(self) -> int:
        """Number of points N."""
        return self.classes * self.per_class

    def law_at(self, step: int) -> Dynamics:
        """Return the dynamics in effect at a step."""
        laws = [change.law for change in self.changes if change.at <= step and change.law]
        return laws[-1] if laws else self.law

    def to_python(self, steps: int) -> str:
        """Return a Python script that computes the simulation up to step `steps` with dmlcore."""
        return (
            "from dmlcore.simulation import Change, Dynamics, Simulation, Spec\n\n"
            f"spec = {_code(self)}\nsimulation = Simulation(spec)\nframe = simulation.frame({steps})\n"
            "print(frame.loss, frame.map_at_r, frame.positions[:3])\n"
        )


def _one_of(name: str, value: object, options: Any) -> None:
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}")


def _code(value: Any) -> str:
    """Return the Python source of a spec with its non-default fields; infinity is written as float("inf")."""
    if isinstance(value, (Spec, Dynamics, Change)):
        default = type(value)(at=-1) if isinstance(value, Change) else type(value)()
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        if isinstance(value, Dynamics):
            defaults = losses.formula(value.loss).defaults
            given["hyper"] = {k: v for k, v in value.hyper.items() if v != defaults[k]}
            default = Dynamics(value.loss)
            object.__setattr__(default, "hyper", {})
        shown = [f"{k}={_code(v)}" for k, v in given.items() if v != getattr(default, k) or k == "loss"]
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_code, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_code(v)}" for k, v in value.items()) + "}"
    return 'float("inf")' if value == math.inf else repr(value)
