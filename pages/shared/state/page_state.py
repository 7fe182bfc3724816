"""Page state declared as a dataclass: each field has a kind, which gives its allowed values and its name in a link.

    @dataclass(frozen=True)
    class Sinkhorn(PageState):
        mu: Annotated[float, NumberKind(0.01, 1.0)] = 0.2
        sweeps: Annotated[int, Whole(1, 400, key="k")] = 100

Parsing of links and messages (both untrusted) and writing of links and JSON are derived from the kinds:
Sinkhorn.from_query({"k": "7"}) returns Sinkhorn(sweeps=7), whose to_query() returns {"k": "7"}. Missing or invalid
values are replaced with those of the default state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, cast, get_type_hints
from urllib.parse import parse_qsl, urlencode

from dmlcore import losses
from pages.shared.state import untrusted

State = TypeVar("State")
Shown = TypeVar("Shown", bound="PageState")
Text = Callable[[float | str], str]  # formatter of a number in a link: untrusted.plain or untrusted.exact


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Kind of a state field: its allowed values, and how a value is read from and written to links.

    `key` is the name in a link, by default the name of the field. If `always` is True, every link contains the value,
    even if it equals the default. A page needs one field of this kind if its URL without parameters opens a state other
    than the default: a link to the default state would otherwise have no parameters and open that other state.
    """

    key: str = ""
    always: bool = False

    def read(self, value: Any, default: Any) -> Any:
        """Return `value`, from a link or message, converted to an allowed value; `default` if it is None or invalid."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Convert the text of a query parameter to the argument `value` of `read`."""
        return text

    def text(self, value: Any) -> str:
        """Return the value as the text of a query parameter."""
        return untrusted.plain(value)

    def json(self, value: Any) -> Any:
        """Return the value as JSON data that `read` accepts."""
        return value

    # Kinds that use several query parameters, or depend on another field, override the methods below.
    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> Any:
        """Return the value of field `name` from the message `data`.

        `fields` holds the values of the fields declared earlier, on which this value may depend.
        """
        return self.read(data.get(name), getattr(default, name))

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        """Return the value of field `name` in a link, in the form that `read` accepts; None if the link omits it."""
        key = self.key or name
        return self.parse(query[key]) if key in query else None

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        """Return the query parameters of this field for a link; empty if the value equals the default."""
        text = self.text(getattr(state, name))
        same = text == self.text(getattr(default, name))
        return {} if same and not self.always else {self.key or name: text}


@dataclass(frozen=True)
class NumberKind(Kind):
    """Number; values outside low..high are clipped."""

    low: float
    high: float

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.bounded(value, self.low, self.high, default)


@dataclass(frozen=True)
class Whole(NumberKind):
    """Integer; values outside low..high are clipped and fractions truncated."""

    def read(self, value: Any, default: Any) -> Any:
        return int(super().read(value, default))

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class ChoiceKind(Kind):
    """One of several names, listed directly or returned by a function; a mapping also gives their menu titles."""

    options: Iterable[str] | Callable[[], Iterable[str]]

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.one_of(value, tuple(self.options() if callable(self.options) else self.options), default)


@dataclass(frozen=True)
class Flag(Kind):
    """Boolean; a link contains 1 or 0."""

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.flag(value, default)

    def text(self, value: Any) -> str:
        return str(int(value))


@dataclass(frozen=True)
class Numbers(Kind):
    """Tuple of numbers with the length of the default, each clipped to [-reach, reach]; comma-separated in a link."""

    reach: float = untrusted.REACH
    number: Text = untrusted.plain

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.numbers(value, default, self.reach)

    def parse(self, text: str) -> Any:
        return text.split(",", 99)

    def text(self, value: Any) -> str:
        return ",".join(map(self.number, value))


@dataclass(frozen=True)
class WindowKind(Numbers):
    """Visible window of the plane: centre x, centre y and half width, which is clipped to 0.05..50."""

    def read(self, value: Any, default: Any) -> Any:
        x, y, half = super().read(value, default)
        return x, y, min(max(half, 0.05), 50.0)


@dataclass(frozen=True)
class Loss(Kind):
    """Name of a loss. `known` returns the allowed names, by default those of the losses with a force field."""

    known: Callable[[], Iterable[str]] = losses.names

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.loss_name(value, default, tuple(self.known()))


@dataclass(frozen=True)
class Hyper(Kind):
    """All hyper-parameters of the loss named in the field `loss`, each under its own name in a link.

    Missing values come from the default state if its loss is the same, else from the defaults of the loss.
    """

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> Any:
        given = data.get(name)
        known = getattr(default, name) if default.loss == fields["loss"] else {}
        return untrusted.hyper(fields["loss"], {**known, **(given if isinstance(given, Mapping) else {})})

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        return query

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        known = getattr(default, name) if state.loss == default.loss else losses.describe(state.loss).defaults
        texts = {k: untrusted.plain(v) for k, v in getattr(state, name).items()}
        return {k: text for k, text in texts.items() if text != untrusted.plain(known[k])}

    def json(self, value: Any) -> Any:
        return untrusted.jsonable(value)


# ---- functions that apply the kinds to the fields of any dataclass


def read(kinds: Mapping[str, Kind], data: Any, default: State) -> State:
    """Return a copy of the dataclass `default` with the fields in `kinds` replaced by the values in `data`.

    `data` is an untrusted message; missing or invalid values leave the default unchanged.
    """
    data = data if isinstance(data, Mapping) else {}
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        values[name] = kind.of(name, data, default, values)
    return cast(State, replace(cast(Any, default), **values))


def from_query(kinds: Mapping[str, Kind], query: Mapping[str, str]) -> dict[str, Any]:
    """Convert the query parameters of a link to the argument `data` of the function `read`."""
    return {name: kind.from_query(name, query) for name, kind in kinds.items()}


def to_query(kinds: Mapping[str, Kind], state: Any, default: Any) -> dict[str, str]:
    """Return the query parameters of a link for the values in `state` that differ from `default`."""
    return {k: text for name, kind in kinds.items() for k, text in kind.to_query(name, state, default).items()}


def to_json(kinds: Mapping[str, Kind], state: Any) -> dict[str, Any]:
    """Return the fields of a state as plain data that `read` accepts; infinity becomes None, because JSON lacks it."""
    return {name: kind.json(getattr(state, name)) for name, kind in kinds.items()}


@dataclass(frozen=True)
class PageState:
    """State of a page: a frozen dataclass whose fields have defaults and are annotated with kinds.

    Fields that are not annotated with a kind are never read from a link; they keep the value of the default state.
    """

    # kinds of the fields that links and messages can set, in order of declaration
    kinds: ClassVar[Mapping[str, Kind]] = {}

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        annotated = ((name, x) for name, hint in hints.items() for x in getattr(hint, "__metadata__", ()))
        cls.kinds = {name: x for name, x in annotated if isinstance(x, Kind)}

    @classmethod
    def limits(cls) -> dict[str, tuple[float, float]]:
        """Return {field: (low, high)} of the numeric fields, for the page's sliders."""
        return {name: (kind.low, kind.high) for name, kind in cls.kinds.items() if isinstance(kind, NumberKind)}

    @classmethod
    def menus(cls) -> dict[str, dict[str, str]]:
        """Return {field: {option: title}} of the fields with named options, for the page's menus."""
        choices = {name: kind.options for name, kind in cls.kinds.items() if isinstance(kind, ChoiceKind)}
        return {
            # a mapping to other values (e.g. from initial charges to functions) is not a menu and cannot be encoded as
            # JSON
            name: dict(titles)
            for name, titles in choices.items()
            if isinstance(titles, Mapping) and all(isinstance(title, str) for title in titles.values())
        }

    @classmethod
    def of(cls, data: Any, default: Self | None = None) -> Self:
        """Return a valid state from untrusted data; missing or invalid values come from the default."""
        return read(cls.kinds, data, cls() if default is None else default).settled()

    @classmethod
    def from_query(cls, query: Mapping[str, str], default: Self | None = None) -> Self:
        """Return the valid state in the query parameters of a link; missing or invalid values come from the default."""
        return cls.of(from_query(cls.kinds, query), default)

    def settled(self) -> Self:
        """Return a copy in which fields that depend on each other are consistent."""
        return self

    def default(self) -> Self:
        """Return the state that a link without parameters opens."""
        return type(self)()

    def to_query(self) -> dict[str, str]:
        """Return the values that differ from the default state as query parameters of a link."""
        return to_query(self.kinds, self, self.default())

    def link(self) -> str:
        """Return the parameters of `to_query` as a URL query string."""
        return urlencode(self.to_query(), safe=",:;")

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `of` accepts; infinity becomes None, because JSON lacks it."""
        return to_json(self.kinds, self)


@dataclass(frozen=True)
class Preset:
    """Example state with a title and a caption, stored as the query string of a link."""

    title: str
    caption: str
    query: str = ""

    def state(self, kind: type[Shown]) -> Shown:
        """Return the preset as a state of class `kind`, the state class of the page."""
        return kind.from_query(dict(parse_qsl(self.query)))

    def to_json(self, kind: type[PageState]) -> dict[str, Any]:
        """Return title, caption and state as JSON data for the page's component; `kind` is the page's state class."""
        return {"title": self.title, "caption": self.caption, "state": self.state(kind).to_json()}
