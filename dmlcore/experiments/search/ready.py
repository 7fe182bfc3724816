"""Searches that ship with the library: what a source searched, on its own set-up or on any other."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any

from pydantic import Field, ValidationError

from dmlcore.experiments import protocols
from dmlcore.experiments.search.space import Method, SearchSpace, parse, prepare
from dmlcore.presets import SEARCHES
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.plan import Overrides, Text
from dmlcore.spec.sections import LossSpec, MinerSpec, Section, explained


class ReadySearch(Section):
    """What a source searched: its keys, and the protocol whose runs the trials are."""

    title: Text
    source: Text = Field(description="Where the ranges come from")
    protocol: str = Field(description="Whose spec the trials have, where they are not made on another")
    loss: str = Field(description="The loss, as the protocol calls it")
    method: Method
    keys: Overrides = Field(description="What is searched, as on the command line")
    defaults: Overrides = Field((), description="What the loss has while another key is searched")
    remarks: Annotated[tuple[Text, ...], Field(strict=False)] = Field((), description="What differs from the source")

    def base(self) -> RunSpec:
        """The spec of its protocol; raises SpecError, and DataError where the data that it counts in are missing."""
        return self.on(protocols.ProtocolRequest(protocol=self.protocol, loss=self.loss).entries()[0].spec)

    def on(self, spec: RunSpec) -> RunSpec:
        """Another spec with this loss in place of its own, no miner and no projections."""
        name = protocols.read(self.protocol).losses[self.loss]
        bare = spec.model_copy(update={"loss": LossSpec(name=name), "miner": MinerSpec()})
        return bare.with_overrides(["projection.pool=0", *self.defaults])


def names() -> list[str]:
    """The searches that ship with the library."""
    return sorted(path.stem for path in SEARCHES.glob("*.toml"))


def read(name: str) -> ReadySearch:
    """A search that ships with the library; raises SpecError."""
    if name not in names():
        raise SpecError(f"no search {name!r}; there are: {', '.join(names())}")
    data: dict[str, Any] = tomllib.loads((SEARCHES / f"{name}.toml").read_text("utf-8"))
    try:
        return ReadySearch.model_validate(data)
    except ValidationError as error:
        lines = (explained(item, lambda path: ReadySearch.model_fields) for item in error.errors())
        raise SpecError(f"{name}:\n" + "\n".join(lines)) from None


def arranged(ready: ReadySearch, on: RunSpec | None, arguments: list[str], name: str, **more: Any) -> SearchSpace:
    """A ready search that can be made, `on` a spec or that of its protocol; `arguments` replace its keys or fix others.

    more: as of `prepare`. Raises SpecError, DataError.
    """
    parse(arguments)
    given = {argument.partition("=")[0].strip() for argument in arguments}
    keys = [line for line in ready.keys if line.partition("=")[0] not in given]
    return prepare(ready.on(on) if on else ready.base(), [*keys, *arguments], name, method=ready.method, **more)
