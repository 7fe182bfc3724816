"""Searches that ship with the library: hyper-parameter searches of published work, applicable to other settings."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any

from pydantic import Field, ValidationError

from dmlcore.experiments import protocols
from dmlcore.experiments.search.space import Method, SearchSpace, parse, prepare
from dmlcore.presets import SEARCHES
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.plan import Overrides, Text
from dmlcore.spec.sections import LossSpec, MinerSpec, Section, explain_error


class ReadySearch(Section):
    """Hyper-parameter search of a published source: the searched keys, and the protocol that defines the trials."""

    title: Text
    source: Text = Field(description="Source of the ranges")
    protocol: str = Field(description="Protocol whose spec the trials use, unless another spec is given")
    loss: str = Field(description="Name of the loss in the protocol or in the catalogue")
    method: Method
    keys: Overrides = Field(description="Searched keys with their ranges, as on the command line")
    defaults: Overrides = Field((), description="Values of the loss while another key is searched")
    remarks: Annotated[tuple[Text, ...], Field(strict=False)] = Field((), description="Differences from the source")

    def base(self) -> RunSpec:
        """Return the spec of the search's protocol.

        Raises SpecError, or DataError if the schedule is in epochs and the data set is missing.
        """
        return self.on(protocols.ProtocolRequest(protocol=self.protocol, loss=self.loss).entries()[0].spec)

    def on(self, spec: RunSpec) -> RunSpec:
        """Return a copy of another spec with this search's loss, without miner and projections."""
        name = protocols.read(self.protocol).losses.get(self.loss, self.loss)
        bare = spec.model_copy(update={"loss": LossSpec(name=name), "miner": MinerSpec()})
        return bare.with_overrides(["projection.pool=0", *self.defaults])


def names() -> list[str]:
    """Return the names of the searches that ship with the library."""
    return sorted(path.stem for path in SEARCHES.glob("*.toml"))


def read(name: str) -> ReadySearch:
    """Read a search that ships with the library; raise SpecError if there is none."""
    if name not in names():
        raise SpecError(f"unknown search {name!r}; choose one of: {', '.join(names())}")
    data: dict[str, Any] = tomllib.loads((SEARCHES / f"{name}.toml").read_text("utf-8"))
    try:
        return ReadySearch.model_validate(data)
    except ValidationError as error:
        lines = (explain_error(item, lambda path: ReadySearch.model_fields) for item in error.errors())
        raise SpecError(f"{name}:\n" + "\n".join(lines)) from None


def build_space(ready: ReadySearch, on: RunSpec | None, arguments: list[str], name: str, **more: Any) -> SearchSpace:
    """Build a search space from a shipped search.

    Args:
        ready: The search.
        on: Base spec of the trials; if None, the spec of the search's protocol.
        arguments: Arguments in the format of `parse` that replace dimensions of the search or set other keys.
        name: Name of the search.
        **more: Further arguments of `prepare`.

    Raises:
        SpecError: If the search is not valid.
        DataError: If the data set is missing.
    """
    parse(arguments)
    given = {argument.partition("=")[0].strip() for argument in arguments}
    keys = [line for line in ready.keys if line.partition("=")[0] not in given]
    return prepare(ready.on(on) if on else ready.base(), [*keys, *arguments], name, method=ready.method, **more)
