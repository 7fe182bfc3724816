"""Catalogues of what is chosen by name, and self-validating hyper-parameters: declared once, where they are used."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from numbers import Real
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

LARGEST = 3.4e38  # float32 holds no more, and losses compute in it
MOST = 65_536  # of a whole number, as weights have its size


@dataclass(frozen=True)
class Slider:
    """A real hyper-parameter.

    `low` and `high` bound the slider a visitor moves; values outside them are still valid (papers use them) as
    long as they exceed `above` and lie in `least`..`most`. `optional` adds "off", that is +infinity (an open upper
    clamp, for example). `whole` is that of parameters annotated as int.
    """

    low: float
    high: float
    symbol: str
    help: str
    step: float = 0.01
    log: bool = False
    above: float = -math.inf
    optional: bool = False
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.step > 0 and self.holds(self.low) and self.holds(self.high)):
            raise ValueError(
                f"slider {self.symbol}: needs above < low < high <= most, least <= low and step > 0, got {self}"
            )
        if self.log and self.low <= 0:
            raise ValueError(f"slider {self.symbol}: a logarithmic slider needs low > 0, got {self.low}")

    def holds(self, number: float) -> bool:
        """Whether a number lies within the bounds that every value must."""
        return self.above < number and self.least <= number <= self.most

    def check(self, name: str, value: object) -> float:
        """Return `value` as a float, or int if whole; raise ValueError or TypeError naming `name` and its range."""
        if value is None and self.optional:
            return math.inf
        if isinstance(value, bool) or not isinstance(value, Real):  # Real: numpy scalars too
            raise TypeError(f"{name} must be a number, got {value!r}")
        number = float(value)
        if math.isnan(number) or (math.isinf(number) and not (self.optional and number > 0)):
            raise ValueError(f"{name} must be finite, got {number}")
        if LARGEST < abs(number) < math.inf:
            raise ValueError(f"{name} must lie within {LARGEST:.1e} of 0, got {number:g}")
        if self.whole and number != int(number):
            raise ValueError(f"{name} must be a whole number, got {number:g}")
        for fits, bound in (
            (number > self.above, f"greater than {self.above:g}"),
            (number >= self.least, f"at least {self.least:g}"),
            (number <= self.most, f"{self.most:,g} at most"),
        ):
            if not fits:
                raise ValueError(f"{name} must be {bound}, got {number:g}")
        return int(number) if self.whole else number


@dataclass(frozen=True)
class Choice:
    """A hyper-parameter with named values."""

    options: tuple[str, ...]
    symbol: str
    help: str

    def check(self, name: str, value: object) -> str:
        """Return `value`; raise ValueError naming the parameter `name` and its options."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{name} must be one of {', '.join(self.options)}, got {value!r}")
        return value


Parameter = Slider | Choice
Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a member of a catalogue says of itself, and what its hyper-parameters may be.

    rule: of values that are valid each by itself, and of what is known of their surroundings (`embedding_dim`, for
    example), what does not go together, in words; "" if they fit. It builds nothing.
    """

    name: str
    title: str
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    rule: Callable[[Values], str] | None = None

    def resolve(self, given: Values) -> dict[str, Any]:
        """Defaults overlaid with checked values; TypeError names an unknown parameter, ValueError an invalid value."""
        if unknown := set(given) - set(self.parameters):
            known = ", ".join(self.parameters) or "none"
            raise TypeError(f"{self.name} has no hyper-parameter {', '.join(sorted(unknown))}; it has: {known}")
        return {**self.defaults, **{k: self.parameters[k].check(f"{self.name}: {k}", v) for k, v in given.items()}}

    def complete(self, given: Values, **surroundings: Any) -> dict[str, Any]:
        """`resolve`, and ValueError where its rule finds that values do not fit each other or their surroundings."""
        values = self.resolve(given)
        if self.rule is not None and (misfit := self.rule(surroundings | values)):
            raise ValueError(f"{self.name}: {misfit}")
        return values


Member = TypeVar("Member")


class Catalogue(dict[str, Member]):
    """The members of one kind by name, in the order in which they are offered; KeyError lists the known names."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, name: object) -> Member:
        raise KeyError(f"unknown {self.kind} {name!r}; known: {', '.join(self)}")

    def enter(self, name: str, member: Member) -> None:
        """Add a member; ValueError if the name is taken."""
        if name in self:
            raise ValueError(f"there is a {self.kind} named {name} already; choose another name")
        self[name] = member

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Forget at the end what has been entered meanwhile."""
        before = dict(self)
        try:
            yield
        finally:
            self.clear()
            self.update(before)


def discover(*packages: str, first: Sequence[str] = ()) -> None:
    """Import all modules of packages, so that what they declare enters its catalogue: those of `first` in that order,
    which is that of the pages, then the others by name. A new module needs no line anywhere.
    """
    place = {name: number for number, name in enumerate(first)}
    modules = [
        module.name
        for package in packages
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    ]
    for module in sorted(modules, key=lambda name: place.get(name.rpartition(".")[2], len(place))):
        importlib.import_module(module)


PLUGINS = "DML_PLUGINS"  # environment variable: modules, separated by commas
PLUGIN_GROUP = "dml_lab.plugins"  # of entry points
_loaded: set[str] = set()


class PluginError(RuntimeError):
    """A plug-in cannot be imported; the message names it and says where it was asked for."""


def load_plugins() -> None:
    """Import the modules that $DML_PLUGINS and entry points of the group "dml_lab.plugins" name, each once.

    Every package with a catalogue calls this at its end, so each process that uses a catalogue has the plug-ins: the
    app, workers, the command line, ranks. The modules enter what they declare, as the modules of this library do.

    Raises:
        PluginError: A plug-in cannot be imported.
    """
    listed = (name.strip() for name in os.environ.get(PLUGINS, "").split(","))
    for module, where in {**_entry_points(), **{name: f"${PLUGINS}" for name in listed if name}}.items():
        if module in _loaded:
            continue
        _loaded.add(module)  # before its import, which may come back here
        try:
            importlib.import_module(module)
        except Exception as error:
            _loaded.discard(module)
            missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
            remedy = "install it or put its folder on PYTHONPATH" if missing else "correct it"
            raise PluginError(
                f"plug-in {module!r}, named by {where}, cannot be imported: {type(error).__name__}: {error}; "
                f"{remedy}, or remove it from {where}"
            ) from error


@cache
def _entry_points() -> dict[str, str]:
    """Return the modules that installed packages name, and where each is named."""
    return {
        entry.module: f"the entry point {entry.name} of {entry.dist.name if entry.dist else 'a package'}"
        for entry in metadata.entry_points(group=PLUGIN_GROUP)
    }


def declared(made_by: Callable[..., Any]) -> dict[str, Any]:
    """`parameters` and `defaults` of an Entry: the arguments of a function, or of a class, that are Annotated with a
    Slider or Choice. TypeError or ValueError names one without a valid default.
    """
    maker: Any = made_by
    hints = get_type_hints(maker.__init__ if isinstance(made_by, type) else made_by, include_extras=True)
    parameters: dict[str, Parameter] = {}
    defaults: dict[str, Any] = {}
    for name, argument in inspect.signature(made_by).parameters.items():
        if get_origin(hints.get(name)) is Annotated:
            kind, *extras = get_args(hints[name])
            parameter: Parameter = next(x for x in extras if isinstance(x, (Slider, Choice)))
            if kind is int and isinstance(parameter, Slider):
                parameter = replace(parameter, whole=True, most=min(parameter.most, MOST))
            parameters[name] = parameter
            defaults[name] = parameter.check(f"{made_by.__name__}: {name}", argument.default)
    return {"parameters": parameters, "defaults": defaults}
