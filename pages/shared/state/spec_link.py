"""Command lines and links that reproduce a spec, written as the name of the closest preset and the changes to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import tomli_w

from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec, SpecError, keys, own_network
from dmlcore.training import objective
from pages.shared.state.cache import cached

FIRST = "glyphs"
# preset that provides the network if no preset uses the chosen data set, by kind of input
BASES = {"vectors": "digits", "images": "cifar100", "tokens": "digits"}
LONGEST = 8000  # maximum number of characters of the URL parameter `set`


@cache
def presets() -> dict[str, RunSpec]:
    """Return the specs that the library ships, by name, with the default preset first."""
    # sorted by stem, so that cub comes before its variant cub-tuned and is the preset of the data set
    files = sorted(SPECS.glob("*.toml"), key=lambda path: path.stem)
    specs = {path.stem: RunSpec.from_toml(path.read_text()) for path in files}
    return {FIRST: specs.pop(FIRST)} | specs


def command(spec: RunSpec) -> str | None:
    """Return a command that trains exactly this spec; None if no preset can be changed into the spec.

    The command names the preset that needs the fewest changes.
    """
    closest = _closest(_key(spec), spec)
    return closest and shlex.join(["python", "-m", "dmlcore", "train", closest[0], *closest[1]])


def link(spec: RunSpec) -> str:
    """Return the URL query string that opens the Train page with this spec.

    If no preset can be changed into the spec, the link opens the default preset.
    """
    name, changes = _closest(_key(spec), spec) or (FIRST, [])
    return urlencode({"base": name, "set": ";".join(changes)})


def query(spec: RunSpec) -> dict[str, str] | None:
    """Return the query parameters of a link that opens exactly this spec; None if no link can express the spec."""
    known = _query(_key(spec), spec)
    return known and dict(known)


@cached(256)
def _query(key: str, _spec: RunSpec) -> dict[str, str] | None:
    given = dict(parse_qsl(link(_spec)))
    try:
        return given if linked(given) == _spec else None
    except SpecError:
        return None


@cached(256)
def _closest(key: str, _spec: RunSpec) -> tuple[str, list[str]] | None:
    """Return (name of the preset, changes) with the fewest changes; None if no preset can be changed into the spec."""
    tries = [(name, changes) for name, preset in presets().items() if (changes := overrides(preset, _spec)) is not None]
    return min(tries, key=lambda match: len(match[1]), default=None)


def _key(spec: RunSpec) -> str:
    return repr(spec.model_dump())


def linked(query: Mapping[str, str]) -> RunSpec:
    """Return the spec in the untrusted query parameters of a link. Raises SpecError that names the invalid value."""
    base, changes = presets().get(query.get("base", "")), query.get("set", "")
    if base is None:
        raise SpecError(f"there is no example named {query.get('base', '')[:40]!r}")
    if len(changes) > LONGEST:
        raise SpecError(f"it changes too much: {len(changes):,} characters, at most {LONGEST:,} are read")
    spec = base.with_overrides(change for change in changes.split(";") if change)
    refuse_own_network(spec)
    objective.refuse_unknown(spec)
    return spec


def refuse_own_network(spec: RunSpec) -> None:
    """Raise SpecError if a spec names a user's own network, because links and forms must not choose which code runs."""
    if own_network.is_own(spec.model.name):
        raise SpecError(
            f"model.name: {spec.model.name} is Python code, which a form cannot choose; train it with dml train on the "
            "command line"
        )


def overrides(base: RunSpec, spec: RunSpec) -> list[str] | None:
    """Return the key=value changes that turn `base` into `spec`; None if they cannot be written as key=value.

    Removing a key cannot be written in this way.
    """
    changes = []
    plain, before = spec.model_dump(), base.model_dump()
    for key in keys():
        section, _, name = key.rpartition(".")
        mine, theirs = (values[section][name] if section else values[name] for values in (plain, before))
        if name == "parameters":
            kept = theirs if plain[section]["name"] == before[section]["name"] else {}
            changes += [f"{section}.{k}={_toml(v)}" for k, v in mine.items() if kept.get(k) != v]
        elif mine != theirs and mine is not None:
            changes.append(f"{key}={_toml(mine)}")
    try:
        return changes if base.with_overrides(changes) == spec else None
    except SpecError:
        return None


def _toml(value: Any) -> str:
    if isinstance(value, str) and value.isidentifier() and value not in ("true", "false", "inf", "nan"):
        return value  # TOML values need quotes, but an unquoted word is read as a string
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").strip()
