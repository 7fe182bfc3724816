"""The settings that runs are compared by: every value of a spec, and which of them differ among some runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlcore.catalogue import Catalogue
from dmlcore.spec import RunSpec, flat
from dmlcore.training.objective import CATALOGUES

Settings = Mapping[str, Any]  # by dotted key, as `flat` has them


def settings(spec: RunSpec) -> dict[str, Any]:
    """Every value of a spec by its dotted key; a parameter that it does not give is as its formula has it."""
    values = flat(spec)
    for section, entries in CATALOGUES.items():
        values = {f"{section}.parameters.{name}": value for name, value in _defaults(entries, spec, section)} | values
    return values


def _defaults(entries: Catalogue[Any], spec: RunSpec, section: str) -> list[tuple[str, Any]]:
    try:
        return list(entries[getattr(spec, section).name].defaults.items())
    except KeyError:  # a formula that this release does not know
        return []


def variant(spec: RunSpec) -> str:
    """What all runs of one experiment share, whatever their seed, device and name: 64 hexadecimal digits."""
    return spec.model_copy(update={"seed": 0, "device": "auto", "name": ""}).digest()


def varying(runs: Sequence[Settings]) -> list[str]:
    """The keys that not all of these runs have the same value of, in the order of the spec."""
    names = dict.fromkeys(key for values in runs for key in values)
    return [key for key in names if any(values.get(key) != runs[0].get(key) for values in runs)]
