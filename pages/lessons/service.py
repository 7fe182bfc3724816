"""Evaluation of answers to lesson questions, and the data of the lessons component."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dmlcore.lessons.checks import LessonVerdict, judge
from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.stages import Shown
from pages.lessons.state import LessonAnswer, LessonPlace, known


def verdict(answer: LessonAnswer, shown: Shown) -> dict[str, Any]:
    """Check an answer against the figure `shown`; return message ID, verdict, measurement and explanation.

    `shown` is the figure in the state in which the question was answered.
    """
    question = answer.place.step.question
    try:
        judged = judge(question, shown, answer.given)
    except ValueError as error:
        judged = LessonVerdict(False, "", str(error))
    return {"id": answer.id} | asdict(judged)


def data_of(place: LessonPlace | None) -> dict[str, Any]:
    """Return the list of lessons and, unless `place` is None, the question of that lesson step."""
    rows = [
        {
            "name": lesson.name,
            "title": lesson.title,
            "claim": lesson.claim,
            "minutes": lesson.minutes,
            "steps": [step.title for step in lesson.steps],
        }
        for lesson in known().values()
    ]
    if place is None:
        return {"lessons": rows, "lesson": None, "step": 0, "question": None}
    question = place.step.question
    return {
        "lessons": rows,
        "lesson": place.lesson.name,
        "step": place.number,
        "question": {
            "ask": question.ask,
            "kind": question.kind,
            "values": list(FACTS[question.fact].values) if question.kind == "choose" else [],
        },
    }
