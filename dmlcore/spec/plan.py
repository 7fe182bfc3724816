"""Base class for studies and protocols written in TOML: a base spec, and overrides for each run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, ValidationError

from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import Section, explain_error

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # of a file, without .toml

Text = Annotated[str, Field(min_length=1, max_length=2000)]
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
