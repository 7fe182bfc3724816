"""Lesson, step, figure state and answer, parsed from untrusted URLs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from dmlcore.lessons.lesson import Lesson, LessonStep, lessons
from pages.shared.state.untrusted import bounded

# URL parameters that do not belong to the state of a figure
OWN = ("lesson", "step", "hide", "socket", "present", "embed")
LONGEST = 4000  # largest number of characters in an answer and its figure state together


@cache
def known() -> dict[str, Lesson]:
    """Return the shipped lessons by name, in the order in which they are listed."""
    return {lesson.name: lesson for lesson in lessons()}


@dataclass(frozen=True)
class LessonPlace:
    """A step of a lesson, numbered from 1."""

    lesson: Lesson
    number: int

    @property
    def step(self) -> LessonStep:
        """The lesson step with this number."""
        return self.lesson.steps[self.number - 1]

    @property
    def key(self) -> str:
        """Widget key that is unique to this lesson step."""
        return f"lesson-{self.lesson.name}-{self.number}"

    def to_query(self) -> dict[str, str]:
        """Return the URL query parameters of this lesson step."""
        return {"lesson": self.lesson.name, "step": str(self.number)}


def place_of(query: Mapping[str, str]) -> LessonPlace | None:
    """Return the lesson step named in the URL, by default the lesson's first; None if the lesson is unknown."""
    lesson = known().get(query.get("lesson", ""))
    if lesson is None:
        return None
    return LessonPlace(lesson, int(bounded(query.get("step"), 1, len(lesson.steps), 1)))


def figure_state(place: LessonPlace, query: Mapping[str, str]) -> dict[str, str]:
    """Return the state of a figure from the URL, or its initial state if the URL has none.

    In URLs `step` is the step of the lesson; the figure's own parameter `step` is therefore called `frame`.
    """
    given = {("step" if name == "frame" else name): value for name, value in query.items() if name not in OWN}
    return given or place.step.figure.settings


@dataclass(frozen=True)
class LessonAnswer:
    """Answer to check: message id, lesson step, state of the figure when it was given, and text of the answer."""

    id: int
    place: LessonPlace
    query: dict[str, str]
    given: str

    @classmethod
    def of(cls, message: Any, here: LessonPlace) -> LessonAnswer | None:
        """Parse an untrusted message from the browser; return None if it is malformed or belongs to another step."""
        if not isinstance(message, Mapping):
            return None
        text, given = message.get("query"), message.get("given")
        if not isinstance(text, str) or not isinstance(given, str) or len(text) + len(given) > LONGEST:
            return None
        query = dict(parse_qsl(text.removeprefix("?"), keep_blank_values=True))
        if place_of(query) != here:
            return None
        return cls(int(bounded(message.get("id"), 0, 1e9, 0)), here, figure_state(here, query), given)
