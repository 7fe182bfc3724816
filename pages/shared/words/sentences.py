"""Messages of the library rewritten for the pages: labels replace spec keys, and run names replace run IDs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from dmlcore import mining, pooling
from dmlcore.data import DataError
from dmlcore.experiments import protocols
from dmlcore.spec import RunSpec, flat, keys
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.objective import CATALOGUES
from pages.shared.words.labels import EMPTY, LABELS, WORDS, WORDS_OF
from pages.shared.words.titles import data_title, label, loss_title

UNSAID = ("fork.run", "fork.step", "name")  # spec keys that `changes` leaves out because the pages show them elsewhere
_ID = re.compile(r"(?<![\w/.-])(\d{8}-\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{4}(?![\w-])")
_KEY = re.compile(
    rf"(?<![\w./-])(?:{'|'.join(sorted(map(re.escape, filter(lambda k: '.' in k, keys())), reverse=True))})(?![\w(])"
)
_PROTOCOL = re.compile(
    rf"(?<![\w/.-])(?:{'|'.join(sorted(map(re.escape, protocols.names()), reverse=True))})(?![\w./-])"
)
_PARAMETER = re.compile(rf"(?<![\w./-])({'|'.join(CATALOGUES)})\.([a-z]\w*)(?![\w(])")
_COMMAND = re.compile(r"(?:(?P<after>[:;]) (?:run: )?|\b(?:Run )?)python -m dmlcore (?P<word>\w+) \S+(?: --step \d+)?")
_LINE = re.compile(r"([a-z_]+(?:\.[a-z_0-9]+)*): ")


def called(run: Run) -> str:
    """Return the display name of a run with its time of creation."""
    return f"{label(run)}, {_time(run.id)}"


def plain(text: object) -> str:
    """Rewrite a message of the library: replace spec keys with labels and run ids with names, and capitalise lines."""
    return "\n".join(map(_line, str(text).splitlines()))


def faults(error: Exception) -> list[str]:
    """Return one sentence per invalid spec key in a validation error; only the first error of each key is reported."""
    sentences: dict[str, str] = {}
    for line in plain(error).splitlines():
        sentences.setdefault(line.partition(":")[0], line)
    return list(sentences.values())


def changes(before: RunSpec, after: RunSpec) -> list[str]:
    """Return the differences between two specs, for example "Loss: Ranking → Multi-similarity"."""
    old, new = flat(before), flat(after)
    lines = []
    for key in [key for key in LABELS if key not in UNSAID]:
        section, _, name = key.rpartition(".")
        if name == "parameters":
            lines += _parameter_changes(section, getattr(before, section), getattr(after, section))
        elif old.get(key) != new.get(key):
            lines.append(f"{LABELS[key]}: {value(key, old.get(key))} → {value(key, new.get(key))}")
    return lines


def labels(subject: Iterable[str]) -> str:
    """Return the distinct labels of spec keys as one text, for example "Loss, Learning rate"."""
    return ", ".join(dict.fromkeys(_label(key) for key in subject)) or "nothing"


def setting(key: str) -> str:
    """Return the label of a setting by its spec key, for example "Steps" or "Loss: m"."""
    section, _, name = key.partition(".parameters.")
    return f"{LABELS[f'{section}.name']}: {name}" if name else LABELS.get(key, key)


def value(key: str, field: Any) -> str:
    """Return the display text for the value `field` of the spec key `key`."""
    if field is None or field == "" or field == ():
        return EMPTY.get(key, "none")
    if isinstance(field, bool):
        return "on" if field else "off"
    if isinstance(field, tuple):
        return ", ".join(f"{part[0]} as class {part[1]}" if isinstance(part, tuple) else f"{part:g}" for part in field)
    if isinstance(field, (int, float)):
        return _number(field)
    if key == "data.name":
        return data_title(field)
    if key == "loss.name":
        return loss_title(field)
    if key in ("miner.name", "pooling.name"):
        known = mining.names() if key == "miner.name" else pooling.names()
        return (mining if key == "miner.name" else pooling).describe(field).title if field in known else str(field)
    if key == "protocol":
        return protocols.read(field).title if field in protocols.names() else str(field)
    return WORDS_OF.get(key, {}).get(field) or WORDS.get(field, str(field))


def _parameter_changes(section: str, before: Any, after: Any) -> list[str]:
    try:
        formula = CATALOGUES[section][after.name]
    except (KeyError, DataError):
        return []
    old = formula.defaults | (before.parameters if before.name == after.name else {})
    new = formula.defaults | after.parameters
    lines = []
    for name, parameter in formula.parameters.items():
        if old[name] != new[name]:
            what = re.split(r"[:;,]", parameter.help)[0]
            had = f"{_number(old[name])} → " if before.name == after.name else ""
            lines.append(f"{formula.title}, {what[:1].lower()}{what[1:]}: {had}{_number(new[name])}")
    return lines


def _number(field: float | str) -> str:
    if isinstance(field, str):
        return field
    return "open" if field == math.inf else f"{field:,}" if isinstance(field, int) else f"{field:g}"


def _line(line: str) -> str:
    """Rewrite one line of a message for display.

    A spec key at the start is replaced with its label, other spec keys with their labels in quotes; commands, run ids
    and protocol names are replaced as well.
    """
    match = _LINE.match(line)
    if match and (known := _known(match[1])):
        line = f"{LABELS[known]}: {line[match.end() :]}"
    line = _KEY.sub(lambda match: f"“{LABELS[match[0]]}”", line)
    line = _COMMAND.sub(_done_here, line)
    line = _PARAMETER.sub(r"“\2” of the \1", line)
    line = _ID.sub(_named, line)
    line = _PROTOCOL.sub(lambda name: f"“{protocols.read(name[0]).title}”", line)
    return line[:1].upper() + line[1:]


def _known(key: str) -> str | None:
    """Return the spec key that a path such as "model.hidden.0" or "loss.parameters.m" belongs to; None if unknown."""
    parts = key.split(".")
    shorter = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((k for k in [*shorter, f"{parts[0]}.name"] if k in LABELS), None)


def _label(key: str) -> str:
    known = _known(key)
    return LABELS[known] if known else key


def _done_here(match: re.Match[str]) -> str:
    """Return the text that replaces a command in a message: what the user does on the page instead, or ""."""
    if match["word"] != "evaluate":
        return ""
    return "; evaluate the run again" if match["after"] else "Evaluate the run again"


def _named(match: re.Match[str]) -> str:
    store = RunStore()
    try:
        return f"“{called(store.open(match[0]))}”"
    except RunError:
        gone = "" if (store.root / match[0]).exists() else ", which is no longer here,"
        return f"the run of {_time(match[0])}{gone}"


def _time(run_id: str) -> str:
    """Return the time of creation contained in a run id; the id itself if it contains none."""
    try:
        made = datetime.strptime(run_id[:13], "%Y%m%d-%H%M").replace(tzinfo=UTC)
    except ValueError:
        return run_id
    return f"{made.day} {made:%b, %H:%M} UTC"
