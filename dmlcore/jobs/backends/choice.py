"""Parsing of backend choices: one line of text that names a backend and its resources.

The same syntax is used on the command line (`--backend`) and in $DML_BACKENDS.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Annotated, Literal, Self
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.storage.task import JobError

SYNTAX = "local, ray[:ADDRESS] or slurm[:PARTITION], then ?cpus=4&gpus=1&gigabytes=16&minutes=60 as needed"
_NEEDS = {"ray": "ray", "slurm": "submitit"}
_EXTRA = "pip install 'dml-lab[{kind}]', or in a checkout: .venv/bin/pip install {package}"


class BackendChoice(BaseModel):
    """A backend and the resources that each task gets on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["local", "ray", "slurm"] = "local"
    # address of the Ray cluster ("": the one on this machine) or SLURM partition ("": the default partition)
    address: str = ""
    cpus: Annotated[int, Field(ge=1, le=1024)] = 1  # number of CPUs; cpus, gpus and gigabytes are per process of a run
    # None: one GPU if the spec permits GPUs and the cluster has any
    gpus: Annotated[int, Field(ge=0, le=64)] | None = None
    gigabytes: Annotated[float, Field(gt=0, le=1e5, allow_inf_nan=False)] | None = None
    minutes: Annotated[int, Field(ge=1, le=10**6)] | None = None  # time limit of a SLURM job in minutes
    # number of SLURM nodes that share the processes of a run; None: one
    nodes: Annotated[int, Field(ge=1, le=4096)] | None = None

    @property
    def text(self) -> str:
        """The choice as text for `parse`; "" for this machine."""
        if self.kind == "local":
            return ""
        given = {key: f"{value:g}" if isinstance(value, float) else value for key, value in self._given().items()}
        options = urlencode(given, safe="/:")
        return self.kind + (f":{self.address}" if self.address else "") + (f"?{options}" if options else "")

    @property
    def title(self) -> str:
        """Label of the backend in menus."""
        if self.kind == "local":
            return "This machine"
        name = {"ray": "Ray", "slurm": "SLURM"}[self.kind]
        given = [f"{key} {value}" for key, value in self._given().items()]
        return ", ".join([f"{name} ({self.address})" if self.address else name, *given])

    def _given(self) -> dict[str, object]:
        return self.model_dump(exclude_defaults=True, exclude={"kind", "address"})

    def require(self) -> Self:
        """Return this choice if its package is installed; raises JobError with the command that installs it."""
        package = _NEEDS.get(self.kind)
        if package and find_spec(package) is None:
            extra = _EXTRA.format(kind=self.kind, package=package)
            raise JobError(f"backend {self.kind}: {package} is not installed here; {extra}")
        return self


def parse(text: str) -> BackendChoice:
    """Parse a line that names a backend, and return the choice.

    The line is `local`, `ray[:ADDRESS]` or `slurm[:PARTITION]`, optionally followed by options written as a URL query
    string, for example `slurm:gpu?cpus=4`. Raises JobError with the mistake and the expected syntax.
    """
    name, _, options = text.strip().partition("?")
    kind, _, address = name.partition(":")
    try:
        given = dict(parse_qsl(options, strict_parsing=True)) if options else {}
        if "folder" in given:
            raise JobError(
                f"backend {text!r}: folder was removed; nodes work in the run store, so put that on a folder that all "
                "machines mount at the same path, with --runs or DML_RUNS"
            )
        choice = BackendChoice.model_validate({"kind": kind or "local", "address": address} | given)
    except ValidationError as error:
        first = error.errors()[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
        raise JobError(f"backend {text!r}: {wrong}; expected {SYNTAX}") from None
    except ValueError:
        raise JobError(f"backend {text!r}: expected {SYNTAX}") from None
    if choice.kind == "local" and (address or options):
        raise JobError(f"backend {text!r}: local takes no options; runs on this machine are queued")
    if choice.kind == "ray" and choice.nodes:
        raise JobError(
            f"backend {text!r}: nodes is for SLURM only; Ray places the processes of a run on nodes with free resources"
        )
    if "://" in choice.address:
        raise JobError(
            f"backend {text!r}: Ray's client (ray://) is not supported; let this machine join the cluster with "
            "`ray start --address=HEAD:6379 --num-cpus=0` and choose ray:HEAD:6379"
        )
    return choice


def resolve_recorded(text: str, also: Iterable[str] = ()) -> tuple[str, str]:
    """Return the backend recorded in a state file if this server may use it, otherwise this machine.

    A state file may come from another user, so it must not decide to which machine this one connects.

    Args:
        text: The recorded backend, as parsed by `parse`.
        also: Backends that the user named for this call, allowed in addition to those in $DML_BACKENDS.

    Returns:
        The recorded backend and "" if it is allowed; otherwise "" (this machine) and the reason.
    """
    if not text:
        return "", ""
    try:
        if (choice := parse(text)) in [*offered_backends(), *map(parse, also)]:
            return choice.require().text, ""
        reason = "it is neither in DML_BACKENDS nor on the command line"
    except JobError as error:
        reason = str(error)
    return "", f"running on this machine instead of the recorded backend {text[:200]!r}: {reason}"


def offered_backends() -> list[BackendChoice]:
    """Return the backends that pages offer: this machine, and the backends listed in $DML_BACKENDS.

    The owner of the server sets this variable. Users of a page cannot enter addresses, as they could make the server
    connect and send work to any machine. Raises JobError for an entry that cannot be parsed.
    """
    named = [parse(word) for word in os.environ.get("DML_BACKENDS", "").split()]
    return [BackendChoice(), *(choice for choice in dict.fromkeys(named) if choice.kind != "local")]
