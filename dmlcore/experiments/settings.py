"""Settings for the comparison of runs: all values of a spec by key, and the keys that differ between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlcore.catalogue import Catalogue
from dmlcore.spec import RunSpec, flat
from dmlcore.training.methods import METHODS
from dmlcore.training.objective import CATALOGUES

Settings = Mapping[str, Any]  # values by dotted key, as in `flat`


def settings(spec: RunSpec) -> dict[str, Any]:
    """Return every value of a spec by its dotted key, including default parameters of its loss, miner and so on."""
    values = flat(spec)
    for section, entries in {**CATALOGUES, "method": METHODS}.items():
        values = {f"{section}.parameters.{name}": value for name, value in _defaults(entries, spec, section)} | values
    return values


def _defaults(entries: Catalogue[Any], spec: RunSpec, section: str) -> list[tuple[str, Any]]:
    try:
        return list(entries[getattr(spec, section).name].defaults.items())
    except KeyError:  # no method, or a loss, miner, pooling or method unknown to this release
        return []


def variant(spec: RunSpec) -> str:
    """Return 64 hexadecimal digits that identify an experiment: equal for runs that differ only in seed, device or
    name.
    """
    return spec.model_copy(update={"seed": 0, "device": "auto", "name": ""}).digest()


def varying(runs: Sequence[Settings]) -> list[str]:
    """Return the keys whose values differ between some of the runs, in the order of the spec."""
    names = dict.fromkeys(key for values in runs for key in values)
    return [key for key in names if any(values.get(key) != runs[0].get(key) for values in runs)]
