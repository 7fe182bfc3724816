"""Base class for studies and protocols written in TOML: a base spec, and overrides for each run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, create_model

from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import Section, explain_error

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # of a file, without .toml

Text = Annotated[str, Field(min_length=1, max_length=2000)]
S = TypeVar("S", bound=Section)
Overrides = Annotated[tuple[str, ...], Field(strict=False, max_length=32)]


class Plan(Section):
    """Set of runs, each defined by a `base` spec and overrides.

    `tables` maps the name of each nested TOML table that a plan may contain to its pydantic model.
    """

    tables: ClassVar[Mapping[str, type[BaseModel]]] = {}

    base: RunSpec

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Build a plan from nested dictionaries, as in TOML; raises SpecError naming every unknown or invalid key."""
        plain = dict(data)
        try:
            plain["base"] = RunSpec.parse(plain.get("base", {}))
        except SpecError as error:
            raise SpecError("\n".join(f"base.{line}" for line in str(error).splitlines())) from None
        try:
            return cls.model_validate(plain)
        except ValidationError as error:
            raise SpecError("\n".join(explain_error(item, cls._known_under) for item in error.errors())) from None

    @classmethod
    def _known_under(cls, path: Sequence[str]) -> Iterable[str]:
        return (cls.tables.get(path[0], cls) if path else cls).model_fields

    def wrong_overrides(self, parts: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
        """Return one error message per mistake in the overrides; [] if the base spec accepts all of them.

        Args:
            parts: Pairs (label, overrides of one run); the label starts each message about these overrides.
        """
        mistakes: list[str] = []
        for where, overrides in parts:
            try:
                self.base.with_overrides(overrides)
            except SpecError as error:
                mistakes += [f"{where}: {line}" for line in str(error).splitlines()]
        return mistakes


def read_entries(file: Path, key: str, kind: type[S]) -> tuple[S, ...]:
    """Read the entries of a TOML file that is a list of tables, `[[key]]`.

    Args:
        file: Path of the file.
        key: The only key at the top of the file.
        kind: Model of one entry.

    Raises:
        SpecError: If the file cannot be read; the message names the file and every unknown or invalid key.
    """
    try:
        whole = create_model("Entries", __base__=Section, **{key: (tuple[kind, ...], Field(strict=False))})  # type: ignore[call-overload, valid-type]
        entries: tuple[S, ...] = getattr(whole.model_validate(tomllib.loads(file.read_text("utf-8"))), key)
        return entries
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{file.name} cannot be read: {error}") from None
    except ValidationError as error:
        lines = (explain_error(item, lambda path: kind.model_fields) for item in error.errors())
        raise SpecError("\n".join(f"{file.name}: {line}" for line in lines)) from None
