"""Search spaces: ranges and choices of the keys of a spec, parsed from the command line."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.training import objective

if TYPE_CHECKING:
    import optuna

Method = Literal["random", "grid", "each", "tpe", "gp"]
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
POINTS = 5  # default number of grid points of a range
CORNERS = 10_000  # maximum number of points whose specs are validated before the search starts


@dataclass(frozen=True)
class Dimension:
    """Dimension of the search space: a key of the spec with a numerical range or a list of values (TOML literals)."""

    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    points: int = POINTS  # in a grid
    choices: tuple[str, ...] = ()

    def distribution(self) -> optuna.distributions.BaseDistribution:
        """Return the Optuna distribution of this key."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def grid(self) -> list[Any]:
        """Return the grid values, including both ends, evenly spaced (on a logarithmic scale if `log`)."""
        if self.choices:
            return list(self.choices)
        space = np.geomspace if self.log else np.linspace
        values = [float(f"{value:.12g}") for value in space(self.low, self.high, self.points)]
        values[0], values[-1] = self.low, self.high  # exp(log(x)) may fall outside the range
        return list(dict.fromkeys(round(value) for value in values)) if self.whole else values


@dataclass(frozen=True)
class SearchSpace:
    """Search space: a base spec, dimensions, the method that chooses the next point, and the number of trials."""

    name: str
    base: RunSpec
    space: tuple[Dimension, ...]
    method: Method = "random"
    trials: int = 20
    seed: int = 0

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield every point of the grid as key -> value.

        With the method "each", first yield {} (the base), then one point per key and grid value; the other keys keep
        their values in the base.
        """
        if self.method == "each":
            yield {}
            yield from ({dimension.key: value} for dimension in self.space for value in dimension.grid())
        else:
            keys = [dimension.key for dimension in self.space]
            for values in itertools.product(*(dimension.grid() for dimension in self.space)):
                yield dict(zip(keys, values, strict=True))

    def spec(self, values: dict[str, Any]) -> RunSpec:
        """Return the spec at a point; raise SpecError if the spec or a parameter of its loss, miner or pooling is not
        valid.
        """
        spec = self.base.with_overrides(f"{key}={value}" for key, value in values.items())
        objective.refuse_unknown(spec)
        return spec


def parse(arguments: Iterable[str]) -> tuple[list[str], tuple[Dimension, ...]]:
    """Split `key=...` arguments into overrides that apply to every trial, and searched dimensions.

    `key=low..high` is a range; the suffix `:log` makes it logarithmic, `:7` gives it seven points in a grid.
    `key=a,b,c` is a choice. Anything else, including lists in brackets, is a single value and becomes an override.
    Raises SpecError for invalid arguments.
    """
    fixed: list[str] = []
    space: list[Dimension] = []
    for argument in arguments:
        key, equals, text = (part.strip() for part in argument.partition("="))
        if not equals or not key:
            raise SpecError(f"{argument}: expected key=low..high, key=a,b,c or key=value")
        if ".." in text:
            space.append(_range(key, text))
        elif "," in text and not text.startswith(("[", '"', "'")):
            choices = tuple(word.strip() for word in text.split(","))
            if not all(choices) or len(set(choices)) < len(choices):
                raise SpecError(f"{key}: choices must be distinct and not empty, got {text}")
            space.append(Dimension(key, choices=choices))
        else:
            fixed.append(argument)
    for key in (each.key for each in space):
        if [each.key for each in space].count(key) > 1:
            raise SpecError(f"{key}: is searched twice")
    return fixed, tuple(space)


def prepare(
    base: RunSpec,
    arguments: Iterable[str],
    name: str,
    *,
    method: str = "random",
    trials: int | None = None,
    seed: int = 0,
) -> SearchSpace:
    """Create a valid search space; raise SpecError if it is not valid.

    Args:
        base: Spec that the trials start from.
        arguments: Overrides and ranges; see `parse`.
        name: Name of the search.
        method: Method that chooses the next point; "each" varies one key at a time and finally combines the best
            values.
        trials: Number of trials; by default all points of a grid, else 20.
        seed: Seed of the method.
    """
    fixed, space = parse(arguments)
    if not NAME.fullmatch(name):
        raise SpecError(f"{name}: the name of a search must have at most 40 lower-case letters, digits and dashes")
    if not space:
        raise SpecError(
            "no key is searched; give a range such as loss.m=0.01..1:log or a choice as batch.samples=2,4,8"
        )
    if method not in get_args(Method):
        raise SpecError(f"method: {', '.join(get_args(Method))}, got {method!r}")
    for dimension in space:
        if dimension.key in ("name", "protocol", "device", "schedule.monitor_part", "data.validation"):
            raise SpecError(f"{dimension.key}: cannot be searched")
    lengths = [len(dimension.grid()) for dimension in space]
    points = {"grid": math.prod(lengths), "each": sum(lengths) + 2}.get(method, 20)
    prepared = SearchSpace(name, base.with_overrides(fixed), space, cast(Method, method), trials or points, seed)
    for point in itertools.islice(prepared.points(), CORNERS):
        prepared.spec(point)
    if prepared.base.schedule.monitor_part == "test" or prepared.base.data.validation == "none":
        raise SpecError(
            "a search needs scores of the validation split; set data.validation, and monitor_part to validation"
        )
    return prepared


def _range(key: str, text: str) -> Dimension:
    first, _, rest = text.partition("..")
    last, *options = rest.split(":")
    try:
        low, high = float(first), float(last)
        points = [int(word) for word in options if word != "log"]
    except ValueError:
        raise SpecError(f"{key}: expected low..high, low..high:log or low..high:log:7, got {text}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise SpecError(f"{key}: needs low < high, got {text}")
    if "log" in options and low <= 0:
        raise SpecError(f"{key}: a logarithmic range must start above 0, got {text}")
    if len(points) > 1 or (points and points[0] < 2):
        raise SpecError(f"{key}: a grid needs at least two points, got {text}")
    field = keys().get(key)
    whole = field is not None and field.annotation is int
    if whole and (low % 1 or high % 1):
        raise SpecError(f"{key}: expected whole numbers, got {text}")
    return Dimension(key, low, high, "log" in options, whole, points[0] if points else POINTS)
