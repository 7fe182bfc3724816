"""Which lesson and step an address names, what state of its figure it carries, and what a reader answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from dmlcore.lessons.lesson import Lesson, LessonStep, lessons
from pages.shared.state.untrusted import bounded

OWN = ("lesson", "step", "hide", "socket", "present", "embed")  # of an address: no part of the state of a figure
LONGEST = 4000  # characters of an answer


@cache
def known() -> dict[str, Lesson]:
    """The lessons that ship, in order, by name."""
    return {lesson.name: lesson for lesson in lessons()}


@dataclass(frozen=True)
class LessonPlace:
    """A step of a lesson, counted from 1; None: the list of all lessons."""

    lesson: Lesson
    number: int

    @property
    def step(self) -> LessonStep:
        """The step itself."""
        return self.lesson.steps[self.number - 1]

    @property
    def key(self) -> str:
        """A name for what belongs to this step alone."""
        return f"lesson-{self.lesson.name}-{self.number}"

    def to_query(self) -> dict[str, str]:
        """The address of the step."""
        return {"lesson": self.lesson.name, "step": str(self.number)}


def place_of(query: Mapping[str, str]) -> LessonPlace | None:
    """The step that an address names; the first of its lesson where it names none, None without a known lesson."""
    lesson = known().get(query.get("lesson", ""))
    if lesson is None:
        return None
    return LessonPlace(lesson, int(bounded(query.get("step"), 1, len(lesson.steps), 1)))


def of_figure(place: LessonPlace, query: Mapping[str, str]) -> dict[str, str]:
    """The state of the figure in an address, or the one that the lesson opens with; its own `step` is `frame` here."""
    given = {("step" if name == "frame" else name): value for name, value in query.items() if name not in OWN}
    return given or place.step.figure.settings


@dataclass(frozen=True)
class LessonAnswer:
    """An answer that is to be judged: its number, the place it is of, the address of that moment, what was given."""

    id: int
    place: LessonPlace
    query: dict[str, str]
    given: str

    @classmethod
    def of(cls, message: Any, here: LessonPlace) -> LessonAnswer | None:
        """From a message of the browser, never trusted; None if it is of another step."""
        if not isinstance(message, Mapping):
            return None
        text, given = message.get("query"), message.get("given")
        if not isinstance(text, str) or not isinstance(given, str) or len(text) + len(given) > LONGEST:
            return None
        query = dict(parse_qsl(text.removeprefix("?"), keep_blank_values=True))
        if place_of(query) != here:
            return None
        return cls(int(bounded(message.get("id"), 0, 1e9, 0)), here, of_figure(here, query), given)
