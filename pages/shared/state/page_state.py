"""The state of a page, from one table: what may be set, within which bounds, and under which name in a link.

    @dataclass(frozen=True)
    class Sinkhorn(PageState):
        mu: Annotated[float, Number(0.01, 1.0)] = 0.2
        sweeps: Annotated[int, Whole(1, 400, key="k")] = 100

From the table follow reading a link or a message, which are never trusted, the link, and JSON:
Sinkhorn.from_query({"k": "7"}) is Sinkhorn(sweeps=7), whose to_query() is {"k": "7"}; what is missing or senseless is
as in the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, cast, get_type_hints
from urllib.parse import parse_qsl, urlencode

from dmlcore import losses
from pages.shared.state import untrusted
from pages.shared.state.panel import Panel

State = TypeVar("State")
Shown = TypeVar("Shown", bound="PageState")
Text = Callable[[float | str], str]  # a number in a link: untrusted.plain or untrusted.exact


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a field may hold.

    key: its name in a link, where that is not the field's own; always: a link says it even of the default. Where a bare
    address opens a first picture that is not the default, one field is such, and no link is bare.
    """

    key: str = ""
    always: bool = False

    def read(self, value: Any, default: Any) -> Any:
        """A valid value from what a link or message says (None: nothing); the default if that makes no sense."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """What `read` is given for the text of a link."""
        return text

    def text(self, value: Any) -> str:
        """The value in a link."""
        return untrusted.plain(value)

    def json(self, value: Any) -> Any:
        """The value as plain data that `read` takes."""
        return value

    # What follows spans several keys of a link, or looks at another field, in a few kinds only.
    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> Any:
        """The value of field `name` from a message; fields: those before it."""
        return self.read(data.get(name), getattr(default, name))

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        """What `read` is given for a link."""
        key = self.key or name
        return self.parse(query[key]) if key in query else None

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        """What a link says, nothing where it would say the same of the default."""
        text = self.text(getattr(state, name))
        same = text == self.text(getattr(default, name))
        return {} if same and not self.always else {self.key or name: text}


@dataclass(frozen=True)
class NumberKind(Kind):
    """A number from low to high."""

    low: float
    high: float

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.bounded(value, self.low, self.high, default)


@dataclass(frozen=True)
class Whole(NumberKind):
    """A whole number from low to high."""

    def read(self, value: Any, default: Any) -> Any:
        return int(super().read(value, default))

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class ChoiceKind(Kind):
    """One of some names, or of what a function gives; a mapping says what each is called in the page's menu."""

    options: Iterable[str] | Callable[[], Iterable[str]]

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.one_of(value, tuple(self.options() if callable(self.options) else self.options), default)


@dataclass(frozen=True)
class Flag(Kind):
    """Yes or no, in a link 1 or 0."""

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.flag(value, default)

    def text(self, value: Any) -> str:
        return str(int(value))


@dataclass(frozen=True)
class Numbers(Kind):
    """As many numbers as the default has, each within +-reach, in a link with commas."""

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
    """Centre x, centre y and half width of what is seen of a plane."""

    def read(self, value: Any, default: Any) -> Any:
        x, y, half = super().read(value, default)
        return x, y, min(max(half, 0.05), 50.0)


@dataclass(frozen=True)
class Loss(Kind):
    """A loss; known: those to choose from, without which it is one that has a force field."""

    known: Callable[[], Iterable[str]] = losses.names

    def read(self, value: Any, default: Any) -> Any:
        return untrusted.loss_name(value, default, tuple(self.known()))


@dataclass(frozen=True)
class Hyper(Kind):
    """Every hyper-parameter of the loss in the field `loss`, each under its own name in a link.

    What is missing is as in the default where that has the same loss, else as in the loss.
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


@dataclass(frozen=True)
class Panels(Kind):
    """Losses side by side, in a link l1=ranking,m:0.2 to l4; defaults: of each place; fewest: how many there are."""

    defaults: tuple[Panel, ...]
    fewest: int = 2

    def read(self, value: Any, default: Any) -> Any:
        given = value if isinstance(value, (list, tuple)) else ()
        panels = tuple(Panel.of(p, d) for p, d in zip(given, self.defaults, strict=False))
        return panels + self.defaults[len(panels) : self.fewest]

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        texts = [query.get(f"l{i + 1}") for i in range(len(self.defaults))]
        places = zip(texts, self.defaults, strict=True)
        read = [t if t is None else vars(Panel.from_text(t, d)) for t, d in places]
        return read[: self.fewest] + [p for p in read[self.fewest :] if p]

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        texts = {f"l{i + 1}": panel.to_text() for i, panel in enumerate(getattr(state, name))}
        known = [panel.to_text() for panel in self.defaults[: self.fewest]]
        return {k: text for i, (k, text) in enumerate(texts.items()) if i >= self.fewest or text != known[i]}

    def json(self, value: Any) -> Any:
        return [{"loss": p.loss, "hyper": untrusted.jsonable(p.hyper)} for p in value]


# ---- what follows from the kinds of the fields of any dataclass


def read(kinds: Mapping[str, Kind], data: Any, default: State) -> State:
    """The default with what a message says of its fields."""
    data = data if isinstance(data, Mapping) else {}
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        values[name] = kind.of(name, data, default, values)
    return cast(State, replace(cast(Any, default), **values))


def from_query(kinds: Mapping[str, Kind], query: Mapping[str, str]) -> dict[str, Any]:
    """What `read` is given for a link."""
    return {name: kind.from_query(name, query) for name, kind in kinds.items()}


def to_query(kinds: Mapping[str, Kind], state: Any, default: Any) -> dict[str, str]:
    """What differs from the default, as readable query parameters."""
    return {k: text for name, kind in kinds.items() for k, text in kind.to_query(name, state, default).items()}


def to_json(kinds: Mapping[str, Kind], state: Any) -> dict[str, Any]:
    """Plain data that `read` takes; infinity, which JSON lacks, is None."""
    return {name: kind.json(getattr(state, name)) for name, kind in kinds.items()}


@dataclass(frozen=True)
class PageState:
    """What a page shows: a frozen dataclass whose fields, each with a default, are annotated with their kinds.

    Fields without a kind belong to the default and come from no link.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {}  # of the fields that a link or message can set, as they are declared

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        annotated = ((name, x) for name, hint in hints.items() for x in getattr(hint, "__metadata__", ()))
        cls.kinds = {name: x for name, x in annotated if isinstance(x, Kind)}

    @classmethod
    def limits(cls) -> dict[str, tuple[float, float]]:
        """From where to where each number goes, for the page's sliders."""
        return {name: (kind.low, kind.high) for name, kind in cls.kinds.items() if isinstance(kind, NumberKind)}

    @classmethod
    def menus(cls) -> dict[str, dict[str, str]]:
        """What each choice is called, for the page's menus."""
        choices = {name: kind.options for name, kind in cls.kinds.items() if isinstance(kind, ChoiceKind)}
        return {
            name: dict(titles)  # a mapping to anything else (starts of charges to their makers) is no menu, and no JSON
            for name, titles in choices.items()
            if isinstance(titles, Mapping) and all(isinstance(title, str) for title in titles.values())
        }

    @classmethod
    def of(cls, data: Any, default: Self | None = None) -> Self:
        """A valid state from untrusted data: what is missing or senseless is as in the default."""
        return read(cls.kinds, data, cls() if default is None else default).settled()

    @classmethod
    def from_query(cls, query: Mapping[str, str], default: Self | None = None) -> Self:
        """The state of a link."""
        return cls.of(from_query(cls.kinds, query), default)

    def settled(self) -> Self:
        """The same with fields that depend on each other in agreement."""
        return self

    def default(self) -> Self:
        """The state that a link says nothing of."""
        return type(self)()

    def to_query(self) -> dict[str, str]:
        """What differs from the default, as readable query parameters."""
        return to_query(self.kinds, self, self.default())

    def link(self) -> str:
        """`to_query` as the text of an address."""
        return urlencode(self.to_query(), safe=",:;")

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, is None."""
        return to_json(self.kinds, self)


@dataclass(frozen=True)
class Preset:
    """A state worth a look, as the query of its link."""

    title: str
    caption: str
    query: str = ""

    def state(self, kind: type[Shown]) -> Shown:
        """The state of a page of this kind."""
        return kind.from_query(dict(parse_qsl(self.query)))

    def to_json(self, kind: type[PageState]) -> dict[str, Any]:
        """What the page's component offers."""
        return {"title": self.title, "caption": self.caption, "state": self.state(kind).to_json()}
