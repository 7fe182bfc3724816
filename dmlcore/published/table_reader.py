"""Reader of published tables. Each tables/SOURCE/NUMBER.toml holds a table as printed.

The file tables/sources.toml describes the sources. Only the format is validated, and torch is not imported;
`collection` prepares the tables for the pages.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_FOLDER = Path(__file__).resolve().parent / "tables"


class _TableModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PrintedRow(_TableModel):
    """Row of a table as printed. Empty fields take the table's value; an empty `method` takes the loss name."""

    values: tuple[int | float | str, ...] = Field(description='By column; "": not reported, or not legible')
    spread: tuple[float, ...] = Field((), description="Printed standard deviations, by column")
    method: str = ""
    dataset: str = ""
    network: str = ""
    size: str = Field("", description="Embedding size")
    setting: str = ""
    loss: str = Field("", description="Name in our catalogue, if the method is in it")
    hyper: dict[str, bool | float] | None = Field(None, description="hinge = false: run without any clamp")
    quoted_from: str = Field("", description="Number of the table whose row this one repeats")
    damaged: tuple[str, ...] = Field((), description="Columns whose value was read from damaged text")

    @property
    def numbers(self) -> dict[str, float]:
        """Numeric hyper-parameters of the loss."""
        return {k: float(v) for k, v in (self.hyper or {}).items() if not isinstance(v, bool)}

    @property
    def unhinged(self) -> bool:
        """True if the run used no clamp."""
        return self.hyper is not None and self.hyper.get("hinge") is False


class File(_TableModel):
    """One published table, as stored in its TOML file."""

    caption: str
    columns: tuple[str, ...]
    rows: Annotated[tuple[PrintedRow, ...], Field(min_length=1)]
    notes: tuple[str, ...] = Field((), description="Notes on this table only")
    protocol: str = Field("", description="Protocol of the results, named as in `RunSpec.protocol`")
    split: Literal["train", "test"] = "test"
    dataset: str = ""
    network: str = ""
    size: str = ""
    queries: int = Field(0, ge=0, description="Number of scored samples, if known")
    queries_inferred: bool = Field(False, description="True if inferred as the only number consistent with the scores")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for number, row in enumerate(self.rows, 1):
            if len(row.values) != len(self.columns) or len(row.spread) not in (0, len(self.columns)):
                raise ValueError(f"rows.{number}: there are {len(self.columns)} columns")
            if unknown := set(row.damaged) - set(self.columns):
                raise ValueError(f"rows.{number}: damaged names {', '.join(sorted(unknown))}, which is not a column")
        return self


class Note(_TableModel):
    """A note that applies to several tables of a source."""

    tables: tuple[str, ...] = Field(description='Their numbers, or "all"')
    text: str


class TableSource(_TableModel):
    """A source of tables: title, folder, citation and notes."""

    title: str
    folder: str
    citation: str
    notes: tuple[Note, ...] = ()

    def notes_of(self, number: str) -> list[str]:
        """Return the notes of the source that apply to a table."""
        return [note.text for note in self.notes if {number, "all"} & set(note.tables)]


@cache
def sources() -> dict[str, TableSource]:
    """Return the sources by the letter used in URLs, in display order."""
    tables = tomllib.loads((_FOLDER / "sources.toml").read_text("utf-8"))
    return {letter: TableSource.model_validate(source) for letter, source in tables.items()}


@cache
def files(letter: str) -> dict[str, File]:
    """Return the tables of a source by number, unordered.

    Raises:
        ValueError: If a file is invalid; the message names the file.
    """
    folder = _FOLDER / sources()[letter].folder
    return {path.stem.replace("-", " "): _read(path) for path in folder.glob("*.toml")}


def _read(path: Path) -> File:
    try:
        return File.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ValueError(f"{path.parent.name}/{path.name}: {error}") from None
