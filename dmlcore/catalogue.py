"""Registries of named members whose hyper-parameters are declared in their signatures and validate their values."""

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

FROM_DATA = "data"  # value of a margin that is chosen from the distances of the first batch of a run
MAX_MAGNITUDE = 3.4e38  # largest magnitude of a hyper-parameter: the float32 maximum, because losses compute in float32
MAX_INTEGER = 65_536  # largest integer hyper-parameter; integers determine the size of tensors


@dataclass(frozen=True)
class Slider:
    """A numerical hyper-parameter, shown as a slider.

    Attributes:
        low: Left end of the slider. Values outside the slider are still valid, because papers use some.
        high: Right end of the slider.
        symbol: LaTeX symbol in formulas.
        help: Explanation.
        step: Step of the slider.
        log: Use a logarithmic slider.
        above: Exclusive lower bound of valid values.
        optional: Accept None, stored as +infinity, to switch the parameter off, for example an upper clamp.
        least: Inclusive lower bound of valid values.
        most: Inclusive upper bound of valid values.
        whole: Accept integers only; set for parameters annotated as int.
        words: Names that are accepted instead of a number, for values that are chosen later.
        tuned_on: Data set on which the source of the default tuned it, or for which it states this value, by its name
            in `dmlcore.data`; empty if there is none. Studies do not compare such a default with untuned losses on
            other data.
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
    words: tuple[str, ...] = ()
    tuned_on: str = ""

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.step > 0 and self.holds(self.low) and self.holds(self.high)):
            raise ValueError(
                f"slider {self.symbol}: needs above < low < high <= most, least <= low and step > 0, got {self}"
            )
        if self.log and self.low <= 0:
            raise ValueError(f"slider {self.symbol}: a logarithmic slider needs low > 0, got {self.low}")

    def holds(self, number: float) -> bool:
        """Return True if `number` is a valid value, that is within `above`, `least` and `most`."""
        return self.above < number and self.least <= number <= self.most

    def check(self, name: str, value: object) -> float | str:
        """Return `value` as a float, or int if `whole`, or unchanged if it is one of `words`.

        Raises TypeError or ValueError with the parameter's `name` and the violated bound.
        """
        if value is None and self.optional:
            return math.inf
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, bool) or not isinstance(value, Real):  # Real includes NumPy scalars
            also = "".join(f" or {word}" for word in self.words)
            raise TypeError(f"{name} must be a number{also}, got {value!r}")
        number = float(value)
        if math.isnan(number) or (math.isinf(number) and not (self.optional and number > 0)):
            raise ValueError(f"{name} must be finite, got {number}")
        if MAX_MAGNITUDE < abs(number) < math.inf:
            raise ValueError(f"{name} must lie within {MAX_MAGNITUDE:.1e} of 0, got {number:g}")
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
    """A hyper-parameter whose value is one of several names."""

    options: tuple[str, ...]
    symbol: str
    help: str

    def check(self, name: str, value: object) -> str:
        """Return `value`; raise ValueError with the parameter's `name` and its options if it is not an option."""
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{name} must be one of {', '.join(self.options)}, got {value!r}")
        return value


Parameter = Slider | Choice
Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Description of a registry member and its hyper-parameters.

    Attributes:
        name: Key in the registry.
        title: Title on pages.
        source: Reference.
        parameters: Hyper-parameters by name.
        defaults: Default values by name.
        rule: Checks a combination of individually valid values, together with the `surroundings` given to `complete`,
            such as `embedding_dim`; returns the conflict as text, or "". It must not construct the member.
    """

    name: str
    title: str
    source: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    rule: Callable[[Values], str] | None = None

    def resolve(self, given: Values) -> dict[str, Any]:
        """Return the defaults, updated with the checked values of `given`; `complete` also checks combinations of
        values.

        Raises TypeError for unknown names and for non-numeric values of numerical parameters, and ValueError for other
        invalid values.
        """
        if unknown := set(given) - set(self.parameters):
            known = ", ".join(self.parameters) or "none"
            raise TypeError(f"{self.name} has no hyper-parameter {', '.join(sorted(unknown))}; it has: {known}")
        return {**self.defaults, **{k: self.parameters[k].check(f"{self.name}: {k}", v) for k, v in given.items()}}

    def complete(self, given: Values, **surroundings: Any) -> dict[str, Any]:
        """Return the result of `resolve`; raise ValueError if `rule` finds a conflict with `surroundings`."""
        values = self.resolve(given)
        if self.rule is not None and (misfit := self.rule(surroundings | values)):
            raise ValueError(f"{self.name}: {misfit}")
        return values


Member = TypeVar("Member")


class Catalogue(dict[str, Member]):
    """Registry of members of one kind by name, in display order.

    An unknown key raises KeyError, which lists the known names.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, name: object) -> Member:
        raise KeyError(f"unknown {self.kind} {name!r}; known: {', '.join(self)}")

    def enter(self, name: str, member: Member) -> None:
        """Add a member; raise ValueError if the name is taken."""
        if name in self:
            raise ValueError(f"there is a {self.kind} named {name} already; choose another name")
        self[name] = member

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Restore the registered members when the context exits."""
        before = dict(self)
        try:
            yield
        finally:
            self.clear()
            self.update(before)


def discover(*packages: str, first: Sequence[str] = ()) -> None:
    """Import all modules of packages, so that their members are registered without a list of modules.

    Modules named in `first` are imported first, in that order, which is also the order on pages; the others follow by
    name.
    """
    place = {name: number for number, name in enumerate(first)}
    modules = [
        module.name
        for package in packages
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    ]
    for module in sorted(modules, key=lambda name: place.get(name.rpartition(".")[2], len(place))):
        importlib.import_module(module)


PLUGINS = "DML_PLUGINS"  # environment variable with module names, separated by commas
PLUGIN_GROUP = "dml_lab.plugins"  # entry point group
_loaded: set[str] = set()


class PluginError(RuntimeError):
    """Error for a plug-in that cannot be imported; the message names the plug-in and the source that requests it."""


def load_plugins() -> None:
    """Import the plug-in modules named in $DML_PLUGINS and in entry points of the group "dml_lab.plugins", each once.

    Every package with a registry calls this function at its end, so that all processes that use a registry have the
    plug-ins: the app, workers, the command line and all ranks. Plug-ins register members as modules of this library do.

    Raises:
        PluginError: If a plug-in cannot be imported.
    """
    listed = (name.strip() for name in os.environ.get(PLUGINS, "").split(","))
    for module, where in {**_entry_points(), **{name: f"${PLUGINS}" for name in listed if name}}.items():
        if module in _loaded:
            continue
        _loaded.add(module)  # before the import, because the module may call this function again
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
    """Return the modules named in entry points of installed packages, each with a description of its entry point."""
    return {
        entry.module: f"the entry point {entry.name} of {entry.dist.name if entry.dist else 'a package'}"
        for entry in metadata.entry_points(group=PLUGIN_GROUP)
    }


def declared(made_by: Callable[..., Any]) -> dict[str, Any]:
    """Return `parameters` and `defaults` for an Entry, read from the signature of a function or class.

    They are the arguments annotated with a Slider or Choice. Raises TypeError or ValueError if such an argument has no
    valid default.
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
                parameter = replace(parameter, whole=True, most=min(parameter.most, MAX_INTEGER))
            parameters[name] = parameter
            defaults[name] = parameter.check(f"{made_by.__name__}: {name}", argument.default)
    return {"parameters": parameters, "defaults": defaults}
