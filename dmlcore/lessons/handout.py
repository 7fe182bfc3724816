"""Handout of a lesson as one HTML file or a PDF: figures in their initial state, questions and answers."""

from __future__ import annotations

import base64
import html
import io
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from dmlcore import losses
from dmlcore.experiments import studies
from dmlcore.figures.fields import embed_glyphs_alone, figure_style, save_figure
from dmlcore.figures.palette import INK, custom_properties
from dmlcore.lessons import text as texts
from dmlcore.lessons.checks import judge, shown_by
from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.lesson import Lesson, LessonStep
from dmlcore.lessons.recordings import EnsembleShown, ProjectionsShown
from dmlcore.lessons.stages import STAGES, Shown, draw_studies_offered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("html", "pdf")
_A4 = (8.27, 11.69)  # inches
POINTS = ("a", "p", "n")
_LEFT, _MIDDLE, _RIGHT = 0.1, 0.52, 0.9  # shares of the page width
_CHARACTERS = 92  # characters per line at 10 points
_COMPUTED = "Every number of an answer was computed on the figure of its step."
_HOW = "Here figures stand still: mark or write down what you would do. In DML Lab, under Lessons, they move."
_TEXT, _MUTED = INK[False]["text"], INK[False]["muted"]
_STYLE = f"""
{custom_properties()}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--text); max-width: 46rem; margin: 2rem auto;
  padding: 0 1rem; }}
h1 {{ margin-bottom: 0; }} .claim {{ font-size: 1.2rem; }}
img {{ width: 100%; max-width: 34rem; display: block; margin: auto; }}
section {{ break-inside: avoid; border-top: 1px solid var(--line); margin-top: 2rem; }} .ask {{ font-weight: 600; }}
details {{ margin: 0.5rem 0; }} footer {{ margin-top: 3rem; color: var(--muted); font-size: 0.85rem; }}
@media print {{ img {{ width: auto; max-width: 100%; max-height: 13cm; }} .ask + p {{ margin-bottom: 2cm; }} }}
"""


def handout(lesson: Lesson, format: str) -> bytes:
    """Return a lesson as "html" or "pdf" bytes; equal lessons give equal bytes.

    Raises:
        ValueError: If the format is unknown.
    """
    if format not in FORMATS:
        raise ValueError(f"a handout is written as {' or '.join(FORMATS)}, got {format!r}")
    return _as_html(lesson).encode() if format == "html" else _as_pdf(lesson)


def answer(step: LessonStep) -> tuple[str, Shown]:
    """Return the answer to the question of a step as text, computed from the figure, and the state of that figure."""
    question, solved = step.question, step.solved()
    shown = shown_by(step, solved)
    measured = FACTS[question.fact].measure(shown)
    if question.kind == "do":
        words = f"For example {_solution(step)}."
    elif question.kind == "choose":
        words = f"{str(measured.value)[:1].upper()}{str(measured.value)[1:]}."
    else:
        words = f"{float(measured.value):.2f}."
    return f"{words} {judge(question, shown, str(measured.value)).measured} {question.after}", shown


_SYMBOLS = {"mu": "μ", "epsilon": "ε", "rho": "ρ", "m1": "m₁", "m2": "m₂"}


def _solution(step: LessonStep) -> str:
    """Return the solution of a question in words, for example "μ = 0.3", without internal names of settings."""
    control, value = step.figure.control, str(step.question.solution)
    if control in POINTS:
        x, y = [*value.split(","), "0"][:2]
        return f"{control.upper()} at {f'{x}°, {y}°' if step.figure.on == 'sphere' else f'({x}, {y})'}"
    if control == "loss":
        return f"the loss “{losses.describe(value).title}”"
    if control == "study":
        return f"“{studies.read(value).title}”"
    if control == "step":
        shown = shown_by(step, step.solved())
        return f"step {shown.now.step if isinstance(shown, (ProjectionsShown, EnsembleShown)) else value}"
    name = _SYMBOLS.get(control, control)
    return f"{name} open, no clamp" if value == "inf" else f"{name} = {value}"


def _compares(step: LessonStep) -> bool:
    """Return True if the reader chooses among studies; the handout then shows all of them."""
    return step.figure.control == "study" and step.question.kind == "do"


@cache
def _image(on: str, settings: tuple[tuple[str, str], ...], format: str) -> bytes:
    """Return an image of a figure of the kind `on` with the given settings."""
    stage = STAGES[on]
    return save_figure(stage.draw(stage.read(dict(settings))), format=format, dpi=130)


@cache
def _studies(format: str) -> bytes:
    return save_figure(draw_studies_offered(), format=format, dpi=130)


def _drawn(step: LessonStep, format: str, *, solved: bool = False) -> bytes | None:
    """Return an image of the initial figure of a step or, if `solved`, of its solution; None if it has no solution."""
    if _compares(step) and not solved:
        return _studies(format)
    settings = step.solved() if solved else step.figure.settings
    return None if settings is None else _image(step.figure.on, tuple(settings.items()), format)


def _as_html(lesson: Lesson) -> str:
    sections = "\n".join(_section(number, step) for number, step in enumerate(lesson.steps, 1))
    title, claim = html.escape(lesson.title), html.escape(lesson.claim)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>\n'
        f'<h1>{title}</h1>\n<p class="claim">{claim}</p>\n<p>{_HOW}</p>\n{sections}\n'
        f"<footer>DML Lab, lesson {lesson.order}, about {lesson.minutes} minutes. {_COMPUTED}</footer>\n"
        "</body></html>\n"
    )


def _section(number: int, step: LessonStep) -> str:
    words, _ = answer(step)
    end = _drawn(step, "png", solved=True)
    return (
        f"<section><h2>{number}. {html.escape(step.title)}</h2>\n{texts.as_html(step.text)}"
        f"{_img(_drawn(step, 'png'), f'The figure of step {number} as it opens')}\n"
        f'<p class="ask">{html.escape(step.question.ask)}</p>{_offered(step)}\n'
        f"<details><summary>Answer</summary><p>{html.escape(words)}</p>"
        f"{_img(end, f'The figure of step {number} with the answer')}</details></section>"
    )


def _offered(step: LessonStep) -> str:
    values = FACTS[step.question.fact].values if step.question.kind == "choose" else ()
    return f"<p>{html.escape(' · '.join(values))}</p>" if values else ""


def _img(data: bytes | None, alt: str) -> str:
    if data is None:
        return ""
    return f'<img alt="{html.escape(alt, quote=True)}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'


# ---- for print
def _as_pdf(lesson: Lesson) -> bytes:
    from matplotlib.backends.backend_pdf import PdfPages

    embed_glyphs_alone()
    file = io.BytesIO()
    with figure_style(), PdfPages(file, metadata={"Title": lesson.title, "CreationDate": None}) as pages:
        for number, step in enumerate(lesson.steps, 1):
            pages.savefig(_page(lesson, number, step))
        for page in _answers(lesson):
            pages.savefig(page)
    return file.getvalue()


class _Paper:
    """An A4 page, filled from top to bottom; `y` is the next free position as a share of the page height."""

    def __init__(self, lesson: Lesson) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=_A4, facecolor="white")
        self.figure.text(
            _LEFT, 0.04, f"DML Lab, lesson {lesson.order}: {lesson.title}", fontsize=8, color=INK[False]["muted"]
        )
        self.y = 0.94

    def write(
        self, words: str, size: float = 10, *, bold: bool = False, gap: float = 0.012, right: float = _RIGHT
    ) -> None:
        """Write a paragraph up to the position `right` (share of the page width) without breaking formulas across
        lines.
        """
        width = round(_CHARACTERS * 10 / size * (right - _LEFT) / (_RIGHT - _LEFT))
        for line in textwrap.wrap(texts.FORMULA.sub(lambda m: m[0].replace(" ", "\u00a0"), words), width):
            style: dict[str, Any] = {
                "fontsize": size,
                "fontweight": "bold" if bold else "normal",
                "color": INK[False]["text"],
            }
            self.figure.text(_LEFT, self.y, line, va="top", **style)
            self.y -= 1.45 * size / 72 / _A4[1]
        self.y -= gap

    def image(self, data: bytes, most: float = 0.5, *, left: float = _LEFT, top: float | None = None) -> None:
        """Draw an image between `left` and the right margin, at most `most` of the page high, and move `y` below it."""
        from matplotlib.image import imread

        top = self.y if top is None else top
        pixels = imread(io.BytesIO(data), format="png")
        wide, high = _RIGHT - left, (_RIGHT - left) * pixels.shape[0] / pixels.shape[1] * _A4[0] / _A4[1]
        shrink = min(1.0, most / high)
        place = (left + wide * (1 - shrink) / 2, top - high * shrink, wide * shrink, high * shrink)
        axes = self.figure.add_axes(place)
        axes.imshow(pixels, interpolation="none")  # store every pixel in the file, without interpolation
        axes.set_axis_off()
        self.y = min(self.y, place[1]) - 0.02


def _page(lesson: Lesson, number: int, step: LessonStep) -> Figure:
    paper = _Paper(lesson)
    if number == 1:
        paper.write(lesson.title, 20, bold=True)
        paper.write(lesson.claim, 12)
        paper.write(_HOW, 9, gap=0.03)
    paper.write(f"{number}. {step.title}", 14, bold=True)
    for paragraph in texts.paragraphs(step.text):
        paper.write(paragraph)
    opens = _drawn(step, "png")
    assert opens is not None  # None is returned only for a missing solution
    paper.image(opens, paper.y - 0.18)
    paper.write(step.question.ask, 11, bold=True)
    if step.question.kind == "choose":
        paper.write("     ".join(f"\u25a1 {value}" for value in FACTS[step.question.fact].values), 10)
    # answers that are points are marked in the figure
    elif step.question.kind == "number" or step.figure.control not in POINTS:
        paper.write("Answer: " + 30 * "_", 10)
    return paper.figure


def _answers(lesson: Lesson) -> Iterator[Figure]:
    """Yield the pages with the answers, each next to the figure that shows it."""
    paper = _Paper(lesson)
    paper.write("Answers", 14, bold=True)
    for number, step in enumerate(lesson.steps, 1):
        if paper.y < 0.3:
            yield paper.figure
            paper = _Paper(lesson)
        top, solved = paper.y, None if _compares(step) else _drawn(step, "png", solved=True)
        paper.write(f"{number}. {answer(step)[0]}", right=_RIGHT if solved is None else _MIDDLE)
        if solved:
            paper.image(solved, 0.2, left=_MIDDLE + 0.04, top=top)
    paper.write(_COMPUTED, 8)
    yield paper.figure
