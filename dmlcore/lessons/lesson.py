"""Lesson as data: front matter, and one section per step with its text, its figure and its question.

+++
title = "Easy, semi-hard, hard"
order = 2
minutes = 4
claim = "A triplet's effect depends on the position of its negative."
+++

## A distant negative

Text in Markdown.

```figure
on = "plane"
state = "loss=ranking&m=0.4&n=0.5,1.35"
control = "n"
```

```question
ask = "Drag N until the triplet is semi-hard."
fact = "hardness"
goal = "semi-hard"
solution = "0.5,0.6"
```
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.presets import LESSONS

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
Line = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(strict=False)]


class LessonError(ValueError):
    """Error in a lesson file; the message gives file, line and remedy."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FrontMatter(_Block):
    """Front matter of a lesson: title, position among the lessons, duration and claim."""

    title: Line
    order: int = Field(ge=1, description="Its place among the lessons, from 1")
    minutes: int = Field(ge=3, le=5)
    claim: Line = Field(description="The one sentence that the lesson makes true")


class FigureBlock(_Block):
    """Figure of a step: its kind, its state as in the URL query string of its page, and the control that the reader
    moves.
    """

    on: Line
    state: str = ""
    control: Line

    @property
    def settings(self) -> dict[str, str]:
        """Settings in `state`, as a dictionary of values by name."""
        return dict(parse_qsl(self.state, keep_blank_values=True))


class LessonQuestion(_Block):
    """Question that is answered with the figure.

    Attributes:
        goal: Value of the fact that the reader has to reach.
        above: Exclusive lower bound of the fact that the reader has to reach.
        below: Exclusive upper bound of the fact that the reader has to reach.
        solution: Value of the control that meets the goal or the bounds.
        hint: Instruction after a wrong answer.
        hints: Instructions that replace `hint` for certain measured values.
        choose: True if the reader chooses the current value of the fact from a list.
        within: Absolute tolerance if the reader enters the fact as a number.
    """

    ask: Line
    fact: Line
    goal: str | None = None
    above: Number | None = None
    below: Number | None = None
    choose: bool = False
    within: Number | None = None
    solution: str | None = None
    hint: str = ""
    hints: Mapping[str, Line] = Field(
        default={}, description='Hints for single values of the fact; "too low" and "too high" where it is a number'
    )
    after: Line = Field(description="Text shown after a correct answer")

    @property
    def kind(self) -> str:
        """Kind of answer: "do" (change the figure), "choose" or "number"."""
        return "choose" if self.choose else "number" if self.within is not None else "do"


@dataclass(frozen=True)
class LessonStep:
    """Step of a lesson; `line`, `figure_line` and `question_line` locate its heading and its two blocks."""

    title: str
    text: str
    figure: FigureBlock
    question: LessonQuestion
    line: int
    figure_line: int
    question_line: int

    def solved(self) -> dict[str, str] | None:
        """Return the settings of the figure with the control at the solution; None if the question has no solution."""
        if self.question.solution is None:
            return None
        return self.figure.settings | {self.figure.control: self.question.solution}


@dataclass(frozen=True)
class Lesson:
    """Lesson: its file, front matter and steps."""

    name: str
    path: Path
    title: str
    order: int
    minutes: int
    claim: str
    steps: tuple[LessonStep, ...]


def paths(folder: Path = LESSONS) -> list[Path]:
    """Return the lesson files of a folder, sorted by name."""
    return sorted(folder.glob("*.md"))


def lessons() -> list[Lesson]:
    """Return the shipped lessons, sorted by `order`; raise LessonError if one is not valid."""
    return sorted(map(read, paths()), key=lambda lesson: (lesson.order, lesson.name))


def read(path: Path) -> Lesson:
    """Read a lesson file.

    Raises:
        LessonError: If the lesson is not valid; the message gives the line and the remedy.
        OSError: If there is no such file.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise LessonError(path, 1, "is not UTF-8 text: save it as UTF-8") from None
    if not NAME.fullmatch(path.stem):
        raise LessonError(path, 1, "small letters, digits and hyphens make the name of a file, as in its address")
    if not lines or lines[0] != "+++" or "+++" not in lines[1:]:
        raise LessonError(path, 1, "begin with the front matter: a line +++, its settings, a line +++")
    end = lines.index("+++", 1)
    head = _parsed(path, lines[1:end], 2, FrontMatter)
    steps = tuple(_step(path, lines[first:last], first + 1) for first, last in _sections(path, lines, end + 1))
    return Lesson(path.stem, path, **dict(head), steps=steps)


def _sections(path: Path, lines: list[str], begin: int) -> Iterator[tuple[int, int]]:
    """Yield the first line index and the end index (exclusive) of each step."""
    starts = [i for i in range(begin, len(lines)) if lines[i].startswith("## ")]
    if not starts:
        raise LessonError(path, begin + 1, "there is no step: a line `## Title` begins one")
    if stray := next((i for i in range(begin, starts[0]) if lines[i].strip()), None):
        raise LessonError(path, stray + 1, "this stands in no step: begin one above it with a line `## Title`")
    yield from zip(starts, [*starts[1:], len(lines)], strict=True)


def _step(path: Path, lines: list[str], begin: int) -> LessonStep:
    """Parse the lines of a step; `begin` is the line number of its heading in the file."""
    text, blocks, i = [], {}, 1
    while i < len(lines):
        if not lines[i].startswith("```"):
            text.append(lines[i])
            i += 1
            continue
        kind = lines[i][3:].strip()
        if kind not in ("figure", "question") or kind in blocks:
            again = "a second " if kind in blocks else "there is no "
            raise LessonError(path, begin + i, f"{again}block ```{kind}: a step has one ```figure and one ```question")
        close = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")), None)
        if close is None:
            raise LessonError(path, begin + i, f"the block ```{kind} does not end: close it with a line ```")
        blocks[kind] = begin + i, lines[i + 1 : close]
        i = close + 1
    for kind in ("figure", "question"):
        if kind not in blocks:
            raise LessonError(path, begin, f"this step has no ```{kind} block: give it one")
    figure, question = blocks["figure"], blocks["question"]
    return LessonStep(
        title=lines[0][3:].strip(),
        text="\n".join(text).strip(),
        figure=_parsed(path, figure[1], figure[0] + 1, FigureBlock),
        question=_parsed(path, question[1], question[0] + 1, LessonQuestion),
        line=begin,
        figure_line=figure[0],
        question_line=question[0],
    )


Block = TypeVar("Block", bound=_Block)


def _parsed(path: Path, lines: list[str], begin: int, kind: type[Block]) -> Block:
    """Parse the lines of a TOML block; `begin` is the line number in the file at which the block starts."""
    try:
        values: Mapping[str, Any] = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = begin + int(at[1]) - 1 if at else begin
        raise LessonError(path, line, f'{error}; a setting is a line: name = "text", a number, or true') from None
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # report an unknown setting before a missing one
        first = min(error.errors(), key=lambda each: each["type"] == "missing")
        name = str(first["loc"][0]) if first["loc"] else ""
        line = next((begin + i for i, text in enumerate(lines) if re.match(rf"\s*{re.escape(name)}\s*=", text)), begin)
        known = ", ".join(kind.model_fields)
        message = {
            "missing": f"{name} is missing: add a line {name} = ...",
            "extra_forbidden": f"there is no setting {name}; there are: {known}",
        }.get(first["type"], f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}")
        raise LessonError(path, line, message) from None
