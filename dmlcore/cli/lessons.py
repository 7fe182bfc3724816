"""Commands `lessons list`, `lessons check` and `lessons handout`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError
from dmlcore.presets import LESSONS

app = typer.Typer(help="List, check and print lessons.", no_args_is_help=True)


@app.command("list")
def show() -> None:
    """List the lessons in order."""
    from dmlcore.lessons.lesson import lessons  # imported late: it imports pydantic and all lesson types

    for lesson in lessons():
        print(f"{lesson.order:>2}  {lesson.name:24} {lesson.minutes} min  {lesson.claim}")


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="LESSON.md", help="Lesson files [default: all shipped lessons]")
    ] = None,
) -> None:
    """Check lessons; print each mistake with file, line and remedy, and exit with status 1 if there are any."""
    from dmlcore.lessons import checks  # imported late: it imports torch

    for path in files or []:
        if not path.is_file():
            raise CommandError(f"{path}: there is no such file")
    complaints = [line for path in files for line in checks.check_file(path)] if files else checks.check()
    for complaint in complaints:
        print(complaint)
    if complaints:
        raise typer.Exit(1)
    print(f"{len(files) if files else len(list(LESSONS.glob('*.md')))} lessons: no mistakes found")


@app.command()
def handout(
    lesson: Annotated[str, typer.Argument(metavar="LESSON", help="Name of a lesson, or LESSON.md")],
    to: Annotated[Path, typer.Option(help="NAME.html or NAME.pdf")],
) -> None:
    """Write a printable version of a lesson with its figures, questions and computed answers."""
    from dmlcore.lessons.handout import FORMATS
    from dmlcore.lessons.handout import handout as made
    from dmlcore.lessons.lesson import read
    from dmlcore.storage import atomic_files

    path = Path(lesson) if lesson.endswith(".md") else LESSONS / f"{lesson}.md"
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in LESSONS.glob("*.md")))
        raise CommandError(f"there is no lesson {lesson!r}; choose one of {names}, or give the path of a .md file")
    if (format := to.suffix[1:]) not in FORMATS:
        raise CommandError(f"--to {to}: the name must end with .{' or .'.join(FORMATS)}")
    content = made(read(path), format)
    atomic_files.replace(to, lambda file: file.write(content))
    print(to)
