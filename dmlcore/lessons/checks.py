"""Evaluation of answers from the state of a figure, and a linter for lessons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dmlcore import losses
from dmlcore.lessons import text as texts
from dmlcore.lessons.facts import FACTS, Measurement, facts_of
from dmlcore.lessons.lesson import Lesson, LessonError, LessonQuestion, LessonStep, paths, read
from dmlcore.lessons.recordings import Recorded
from dmlcore.lessons.stages import STAGES, ChargesShown, Shown, TransportShown, TripletShown
from dmlcore.presets import LESSONS

STEPS = (3, 6)  # minimum and maximum number of steps in a lesson of three to five minutes
WORDS = (15, 110)  # minimum and maximum number of words in the text of a step
TITLE, CLAIM = 40, 160  # maximum number of characters of title and claim


@dataclass(frozen=True)
class LessonVerdict:
    """Verdict on an answer: True if it is correct, a sentence on the measured value, and the explanation or a hint."""

    right: bool
    measured: str
    words: str


def judge(question: LessonQuestion, shown: Shown, given: str = "") -> LessonVerdict:
    """Judge an answer from the figure's current state and, if the question asks for one, the chosen or entered value.

    Raises:
        ValueError: If `given` is not one of the choices or not a number.
    """
    measured = FACTS[question.fact].measure(shown)
    right = _right(question, measured, given)
    return LessonVerdict(right, measured.words, question.after if right else _hint(question, measured))


def _hint(question: LessonQuestion, measured: Measurement) -> str:
    """Return the hint for the measured value, or the question's general hint."""
    value = measured.value
    if not isinstance(value, str):
        value = "too low" if question.above is not None and value <= question.above else "too high"
    return question.hints.get(value, question.hint)


def _right(question: LessonQuestion, measured: Measurement, given: str) -> bool:
    if question.kind == "choose":
        if given not in FACTS[question.fact].values:
            raise ValueError("Choose one of the answers.")
        return given == measured.value
    if question.kind == "number":
        try:
            number = float(given.replace(",", ".").removesuffix("%"))
        except ValueError:
            raise ValueError("Write a number.") from None
        assert question.within is not None
        assert isinstance(measured.value, float)
        return abs(number - measured.value) <= question.within
    if question.goal is not None:
        return measured.value == question.goal
    low = -math.inf if question.above is None else question.above
    high = math.inf if question.below is None else question.below
    return low < float(measured.value) < high


# ---- controls
def controls(shown: Shown) -> tuple[str, ...]:
    """Return the names of the settings that a reader can change on a figure: points, loss, parameters, step."""
    if isinstance(shown, TripletShown):
        return ("n", "p", "a", "loss", *shown.loss.formula.parameters)
    if isinstance(shown, ChargesShown):
        return ("step", "loss", *losses.formula(shown.spec.law.loss).parameters)
    if isinstance(shown, Recorded):
        return ("step",)
    return ("mu", "epsilon") if isinstance(shown, TransportShown) else ("study",)


def shown_by(step: LessonStep, settings: Mapping[str, str] | None = None) -> Shown:
    """Return the figure of a step in its initial state, or with other settings.

    Raises:
        ValueError: If a setting is invalid; the message names it.
    """
    return STAGES[step.figure.on].read(step.figure.settings if settings is None else settings)


# ---- the linter
def check(folder: Path = LESSONS) -> list[str]:
    """Return all linter messages for the lessons in a folder, as FILE:LINE with the error and its remedy."""
    return [complaint for path in paths(folder) for complaint in check_file(path)]


def check_file(path: Path) -> list[str]:
    """Return all linter messages for one lesson, including a conflict of its `order` with another lesson."""
    try:
        lesson = read(path)
    except LessonError as error:
        return [str(error)]
    complaints = [f"{path}:{line}: {message}" for line, message in _complaints(lesson)]
    orders = _orders(other for other in paths(path.parent) if other.resolve() != path.resolve())
    if lesson.order in orders:
        free = max(orders) + 1
        complaints.append(f"{path}:1: order {lesson.order} is that of {orders[lesson.order]}, too: {free} is free")
    return complaints


def _orders(files: Iterable[Path]) -> dict[int, str]:
    """Return the file names of lessons by their `order`; skip unreadable files, which `check_file` reports."""
    orders: dict[int, str] = {}
    for path in files:
        with suppress(LessonError):
            orders[read(path).order] = path.name
    return orders


def _complaints(lesson: Lesson) -> Iterator[tuple[int, str]]:
    if len(lesson.title) > TITLE:
        yield 1, f"the title has {len(lesson.title)} characters: {TITLE} at most"
    if len(lesson.claim) > CLAIM:
        yield 1, f"the claim has {len(lesson.claim)} characters: one sentence, {CLAIM} at most"
    if not STEPS[0] <= len(lesson.steps) <= STEPS[1]:
        yield 1, f"{len(lesson.steps)} steps: {STEPS[0]} to {STEPS[1]} fill three to five minutes"
    for step in lesson.steps:
        yield from _of_step(step)


def _of_step(step: LessonStep) -> Iterator[tuple[int, str]]:
    words = len(step.text.split())
    if not WORDS[0] <= words <= WORDS[1]:
        yield step.line, f"the text has {words} words: {WORDS[0]} to {WORDS[1]} are read before the figure is"
    for message in texts.complaints(step.text):
        yield step.line, message
    figure, at = step.figure, step.figure_line
    if figure.on not in STAGES:
        yield at, f"there is no figure {figure.on}; there are: {', '.join(STAGES)}"
        return
    try:
        shown = shown_by(step)
    except (ValueError, TypeError) as error:
        yield at, f"state: {error}"
        return
    if figure.control not in controls(shown):
        yield at, f"nobody can move {figure.control} on this figure; control is one of {', '.join(controls(shown))}"
    yield from ((step.question_line, message) for message in _of_question(step, shown))


def _of_question(step: LessonStep, shown: Shown) -> Iterator[str]:
    question = step.question
    known = facts_of(type(shown))
    if question.fact not in known:
        known_facts = (
            f"{name} ({' | '.join(each.values) or 'a number'}: {each.sentence})" for name, each in known.items()
        )
        yield f"this figure has no fact {question.fact!r}; it has: {', '.join(known_facts)}"
        return
    values = known[question.fact].values
    ways = [question.goal is not None, question.choose, question.within is not None]
    ways.append(question.above is not None or question.below is not None)
    if sum(ways) != 1:
        yield "say how it is answered, in one way: goal, above and below, choose, or within"
        return
    if (question.goal is not None or question.choose) and not values:
        yield f"{question.fact} is a number: ask for it with above, below or within"
        return
    if values and (question.above is not None or question.below is not None or question.within is not None):
        yield f"{question.fact} is no number but one of {', '.join(values)}: ask for it with goal or choose"
        return
    possible = values or ("too low", "too high")
    if question.kind != "do" and question.hints:
        yield "hints belong to goal, above and below: they say what to move"
    elif unknown := sorted(set(question.hints) - set(possible)):
        yield f"hints: {unknown[0]!r} is not one of {', '.join(possible)}"
    if question.goal is not None and question.goal not in values:
        yield f"goal: {question.fact} is one of {', '.join(values)}"
        return
    if question.kind == "do":
        yield from _reachable(step, shown)
    elif question.solution is not None:
        yield "solution belongs to goal, above and below: here the app itself knows the answer"


def _reachable(step: LessonStep, shown: Shown) -> Iterator[str]:
    """Yield an error unless the initial figure misses the goal and the figure with the solution meets it."""
    question, solved = step.question, step.solved()
    if judge(question, shown).right:
        yield f"the figure opens with the goal already met ({FACTS[question.fact].measure(shown).words}): move it away"
    if solved is None:
        yield f'add solution = "...": a value of {step.figure.control} that meets the goal, so that it can be checked'
        return
    try:
        there = shown_by(step, solved)
    except (ValueError, TypeError) as error:
        yield f"solution: {error}"
        return
    if not (verdict := judge(question, there)).right:
        yield f"the solution does not meet the goal: {verdict.measured}"
