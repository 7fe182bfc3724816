"""Export route /api/lessons/handout.FORMAT?lesson=NAME, which returns a lesson as one HTML file or a PDF."""

from __future__ import annotations

from starlette.routing import BaseRoute

from dmlcore.lessons.handout import FORMATS, handout
from pages.lessons.state import known
from pages.shared.server.exports import Query, Refused, export_route


def _handout(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    lesson = known().get(query.get("lesson", ""))
    if lesson is None:
        raise Refused("This lesson does not exist. Open Lessons to choose one.")
    return handout(lesson, format), f"dml-lesson-{lesson.name}.{format}"


ROUTES: list[BaseRoute] = [export_route("/api/lessons/handout", _handout, FORMATS)]
