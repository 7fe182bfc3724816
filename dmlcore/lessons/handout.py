"""A lesson on paper: one HTML file, or a PDF, with its figures as they open, its questions, and the answers."""

from __future__ import annotations

import base64
import html
import io
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any

from dmlcore.figures.fields import figure_style, save_figure
from dmlcore.lessons import text as texts
from dmlcore.lessons.checks import judge, shown_by
from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.lesson import Lesson, LessonStep
from dmlcore.lessons.stages import STAGES, Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("html", "pdf")
_A4 = (8.27, 11.69)  # inches
_LEFT, _RIGHT = 0.1, 0.9  # shares of the width of a page
_CHARACTERS = 92  # of a line of print at 10 points
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b2430; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } .claim { font-size: 1.2rem; }
img { width: 100%; max-width: 34rem; display: block; margin: auto; }
section { break-inside: avoid; border-top: 1px solid #ccd; margin-top: 2rem; } .ask { font-weight: 600; }
details { margin: 0.5rem 0; } footer { margin-top: 3rem; color: #5a6473; font-size: 0.85rem; }
"""


def handout(lesson: Lesson, format: str) -> bytes:
    """The lesson as "html" or "pdf"; equal lessons give equal bytes. ValueError for another format."""
    if format not in FORMATS:
        raise ValueError(f"a handout is written as {' or '.join(FORMATS)}, got {format!r}")
    return _as_html(lesson).encode() if format == "html" else _as_pdf(lesson)


def answer(step: LessonStep) -> tuple[str, Shown]:
    """The answer in words, as the library measures it, and the figure that gives it."""
    question, solved = step.question, step.solved()
    shown = shown_by(step, solved)
    measured = FACTS[question.fact].measure(shown)
    if question.kind == "do":
        words = f"For example {step.figure.control} = {question.solution}."
    elif question.kind == "choose":
        words = f"{str(measured.value)[:1].upper()}{str(measured.value)[1:]}."
    else:
        words = f"{float(measured.value):.2f}."
    return f"{words} {judge(question, shown, str(measured.value)).measured} {question.after}", shown


@cache
def _image(on: str, settings: tuple[tuple[str, str], ...], format: str) -> bytes:
    """The figure of a stage with these settings, drawn."""
    stage = STAGES[on]
    return save_figure(stage.draw(stage.read(dict(settings))), format=format, dpi=130)


def _drawn(step: LessonStep, format: str, *, solved: bool = False) -> bytes | None:
    """The figure as it opens, or as the solution leaves it where there is one."""
    settings = step.solved() if solved else step.figure.settings
    return None if settings is None else _image(step.figure.on, tuple(settings.items()), format)


def _as_html(lesson: Lesson) -> str:
    sections = "\n".join(_section(number, step) for number, step in enumerate(lesson.steps, 1))
    title, claim = html.escape(lesson.title), html.escape(lesson.claim)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>\n'
        f'<h1>{title}</h1>\n<p class="claim">{claim}</p>\n{sections}\n'
        f"<footer>DML Lab, lesson {lesson.order}, about {lesson.minutes} minutes. Every number under an answer was "
        "computed by dmlcore on the figure above it.</footer>\n</body></html>\n"
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

    file = io.BytesIO()
    with figure_style(), PdfPages(file, metadata={"Title": lesson.title, "CreationDate": None}) as pages:
        for number, step in enumerate(lesson.steps, 1):
            pages.savefig(_page(lesson, number, step))
        pages.savefig(_answers(lesson))
    return file.getvalue()


class _Paper:
    """An A4 page that is written from the top down."""

    def __init__(self) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=_A4, facecolor="white")
        self.y = 0.94

    def write(self, words: str, size: float = 10, *, bold: bool = False, gap: float = 0.012) -> None:
        """A paragraph; a formula is kept on its line."""
        width = round(_CHARACTERS * 10 / size)
        for line in textwrap.wrap(texts.FORMULA.sub(lambda m: m[0].replace(" ", "\u00a0"), words), width):
            style: dict[str, Any] = {"fontsize": size, "fontweight": "bold" if bold else "normal", "color": "#1b2430"}
            self.figure.text(_LEFT, self.y, line, va="top", **style)
            self.y -= 1.45 * size / 72 / _A4[1]
        self.y -= gap

    def image(self, data: bytes, most: float = 0.5) -> None:
        """A picture as wide as the text, `most` of the page high at most."""
        from matplotlib.image import imread

        pixels = imread(io.BytesIO(data), format="png")
        wide, high = _RIGHT - _LEFT, (_RIGHT - _LEFT) * pixels.shape[0] / pixels.shape[1] * _A4[0] / _A4[1]
        shrink = min(1.0, most / high)
        place = (_LEFT + wide * (1 - shrink) / 2, self.y - high * shrink, wide * shrink, high * shrink)
        axes = self.figure.add_axes(place)
        axes.imshow(pixels)
        axes.set_axis_off()
        self.y = place[1] - 0.02


def _page(lesson: Lesson, number: int, step: LessonStep) -> Figure:
    paper = _Paper()
    if number == 1:
        paper.write(lesson.title, 20, bold=True)
        paper.write(lesson.claim, 12, gap=0.03)
    paper.write(f"{number}. {step.title}", 14, bold=True)
    for paragraph in texts.paragraphs(step.text):
        paper.write(paragraph)
    opens = _drawn(step, "png")
    assert opens is not None  # a figure always opens
    paper.image(opens, paper.y - 0.16)
    paper.write(step.question.ask, 11, bold=True)
    if step.question.kind == "choose":
        paper.write("     ".join(f"\u25a1 {value}" for value in FACTS[step.question.fact].values), 10)
    return paper.figure


def _answers(lesson: Lesson) -> Figure:
    paper = _Paper()
    paper.write("Answers", 14, bold=True)
    for number, step in enumerate(lesson.steps, 1):
        paper.write(f"{number}. {answer(step)[0]}")
    paper.write("Every number here was computed by dmlcore on the figure of its step.", 8)
    return paper.figure
