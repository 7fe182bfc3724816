"""Field of a page state that lists the settings a user changed while a history played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from pages.shared.state import page_state, untrusted
from pages.shared.state.page_state import Kind, Whole


@dataclass(frozen=True)
class Changes(Kind):
    """Kind of a field that lists changes of settings, each at a step; in a URL then=40:m=0.5;60:rate=0.01.

    Each change is relative to the settings in force before it. Changes without effect are dropped.

    Attributes:
        start: Function that returns the initial settings, given the other fields of the state.
        kinds: Kinds of the settings that can change, by name.
        most: Maximum number of changes.
        most_steps: Largest step at which a change may occur.
    """

    start: Callable[[Any], Any]
    kinds: Mapping[str, Kind]
    most: int
    most_steps: int

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        given, changes = data.get(name), dict[int, Any]()
        before = first = self.start(SimpleNamespace(**fields))
        kinds = {"at": Whole(0, self.most_steps), **self.kinds}
        for each in given[: self.most] if isinstance(given, list) else []:
            before = page_state.read(kinds, each, before)
            changes[before.at] = before
        ordered = [changes[at] for at in sorted(changes)]
        pairs = zip([first, *ordered], ordered, strict=False)
        return tuple(change for before, change in pairs if replace(change, at=before.at) != before)

    def after(self, before: Any, change: Any) -> Any:
        """Return the settings in force after `change`; `before` holds the settings in force before it."""
        return change

    def parse(self, text: str) -> Any:
        changes = []
        for part in text[:6000].split(";")[: self.most]:
            at, _, settings = part.partition(":")
            named: dict[str, str] = {}
            for key, value in (setting.split("=", 1) for setting in settings.split(",") if "=" in setting):
                named[key] = f"{named[key]}&{value}" if key in named else value
            if named and untrusted.finite(at) is not None:
                changes.append({"at": at} | page_state.from_query(self.kinds, named))
        return changes

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        before, parts = self.start(state), []
        for change in getattr(state, name):
            texts = page_state.to_query(self.kinds, change, before).items()
            if settings := [f"{key}={value}" for key, text in texts for value in text.split("&")]:
                parts.append(f"{change.at}:{','.join(settings)}")
            before = self.after(before, change)
        return {self.key: ";".join(parts)} if parts else {}

    def json(self, value: Any) -> Any:
        return [{"at": change.at} | page_state.to_json(self.kinds, change) for change in value]
