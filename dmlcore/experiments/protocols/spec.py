"""Protocols as frozen, validated data (TOML): how runs are trained, selected, repeated and summarised."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from dmlcore.presets import PROTOCOLS
from dmlcore.spec import SpecError
from dmlcore.spec.plan import NAME, Overrides, Plan, Text
from dmlcore.spec.sections import Section

Texts = Annotated[tuple[Text, ...], Field(strict=False)]
Words = Annotated[tuple[str, ...], Field(strict=False)]
Numbers = Annotated[tuple[Annotated[int, Field(ge=1, le=50)], ...], Field(strict=False)]
# keys of the schedule that may be counted in epochs
EpochKey = Literal["steps", "validate_every", "decay_every", "warm_up"]
Epochs = dict[EpochKey, Annotated[float, Field(ge=0)]]
Report = Literal["mean", "best_of_folds", "best_of_repeats", "collections"]


class Setting(Section):
    """Overrides that apply to some data sets, networks and losses; an empty list matches any."""

    data: Words = ()
    network: Words = ()
    loss: Words = Field((), description="Name in [losses] of the protocol or in dmlcore.losses.names()")
    overrides: Overrides = Field((), description="key=value, applied to the base in order")
    epochs: Epochs = Field(default_factory=dict, description="Keys of the schedule, counted in epochs")

    def fits(self, data: str, network: str, loss: str) -> bool:
        """Return True if the setting applies to this data set, network and loss."""
        asked = ((self.data, data), (self.network, network), (self.loss, loss))
        return all(not wanted or value in wanted for wanted, value in asked)


class Stage(Section):
    """Pretraining that initialises each run of a protocol; its spec is that of the run with `overrides` applied."""

    overrides: Overrides = Field(description="key=value, applied last")


class Protocol(Plan):
    """Procedure of a source for training, selection and reporting, with the points it leaves open and our decisions."""

    tables: ClassVar[Mapping[str, type[BaseModel]]] = {"settings": Setting, "pretraining": Stage}

    title: Text
    sentence: Text = Field(description="Summary in one sentence")
    source: Text = Field(description="Source of the protocol")
    data: str = Field(description="Default data set")
    report: Annotated[tuple[Report, ...], Field(strict=False, min_length=1)] = Field(description="Reported summaries")
    open: Texts = Field((), description="Points that the source leaves open")
    decided: Texts = Field((), description="Our decisions where the source is open or contradictory")
    missing: Texts = Field((), description="Parts of the source that are not reproduced")
    folds: Numbers = Field((), description="Folds that are run; empty: all of base.data.folds")
    repeats: int = Field(1, ge=1, le=100, description="Runs of each fold, with the seeds 0, 1, ...")
    networks: Words = Field((), description="Networks of the source, in addition to that of the base")
    free: Words = Field((), description="Keys, or patterns of them, that the protocol leaves to the experiment")
    epochs: Epochs = Field(default_factory=dict, description="Keys of the schedule, counted in epochs")
    pretraining: Stage | None = None
    losses: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")], str] = Field(
        default_factory=dict, description="Name of a loss in the source, in lower case = its name in the catalogue"
    )
    settings: tuple[Setting, ...] = Field((), strict=False)

    @property
    def selection(self) -> str:
        """Description of how the best weights of a run are selected."""
        schedule, data = self.base.schedule, self.base.data
        if schedule.monitor_part == "validation" and data.validation == "none":
            return "none: the weights of the last step"
        score = {"map_at_r": "MAP@R", "recall_at_1": "R@1"}[schedule.monitor]
        where = {"validation": "validation split", "test": "TEST split: the test scores are too good"}
        return f"{score} on the {where[schedule.monitor_part]}"

    def label(self, loss: str) -> str:
        """Return the protocol's name of a loss, given that name or the catalogue's; unknown names are unchanged."""
        small = loss.lower().replace("-", "_").replace("+", "p")
        return next((k for k, name in self.losses.items() if small == k), "") or next(
            (k for k, name in self.losses.items() if loss == name), loss
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        parts = [(f"settings.{number}", setting.overrides) for number, setting in enumerate(self.settings, 1)]
        parts += [("pretraining", self.pretraining.overrides)] if self.pretraining else []
        mistakes = self.wrong_overrides(parts)
        if beyond := [fold for fold in self.folds if fold > self.base.data.folds]:
            mistakes.append(f"folds: there is no fold {beyond[0]}; base.data.folds is {self.base.data.folds}")
        if self.base.data.folds == 0 and {"best_of_folds", "collections"} & set(self.report):
            mistakes.append("report: needs folds, but base.data.folds is 0")
        if mistakes:
            raise ValueError("\n".join(mistakes))
        return self


def names() -> list[str]:
    """Return the names of the protocols that ship with the library."""
    return list(_shipped())


@cache  # cached because shipped protocols never change, and a form reads the titles of all of them
def _shipped() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in PROTOCOLS.glob("*.toml")))


def read(name: str) -> Protocol:
    """Read a protocol by its name or the path of a .toml file; raise SpecError if it is not valid."""
    return _of_the_program(name) if name in _shipped() else _read(path_of(name))


@cache
def _of_the_program(name: str) -> Protocol:
    return _read(path_of(name))


def _read(path: Path) -> Protocol:
    try:
        return Protocol.parse(_plain(path, ()))
    except SpecError as error:
        raise SpecError(f"{path}:\n{error}") from None


def path_of(name: str) -> Path:
    """Return the path of a protocol's file; raise SpecError if there is none."""
    if name in _shipped():
        return PROTOCOLS / f"{name}.toml"
    path = Path(name)
    if path.suffix == ".toml" and path.is_file() and NAME.fullmatch(path.stem):
        return path
    near = difflib.get_close_matches(name, names(), 1)
    raise SpecError(
        f"no protocol {name!r}; "
        + (f"did you mean {near[0]}? " if near else "")
        + f"give a file PROTOCOL.toml (lower-case letters, digits and dashes), or one of {', '.join(names())}"
    )


def _plain(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the TOML data of a protocol file, merged into the data of the protocol that it `extends`.

    The `settings` of both protocols are concatenated. Other lists are replaced, and an empty string resets a key to its
    default.
    """
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"not TOML: {error}") from None
    parent = data.pop("extends", None)
    if parent is None:
        return data
    if path in seen:
        raise SpecError(f"extends: {parent} extends itself")
    sibling = path.with_name(f"{parent}.toml")
    inherited = _plain(sibling if sibling.is_file() else path_of(str(parent)), (*seen, path))
    settings = [*inherited.get("settings", []), *data.get("settings", [])]
    return _merged(inherited, data) | ({"settings": settings} if settings else {})


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = {
        k: _merged(below[k], v) for k, v in above.items() if isinstance(v, dict) and isinstance(below.get(k), dict)
    }
    return {key: value for key, value in (below | above | merged).items() if value != ""}
