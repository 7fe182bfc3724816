"""Conversion of metric rows to and from the lines of metrics.jsonl, with validation of every row that is read.

A line is a JSON object whose last key, "crc", is the CRC-32 of the object without that key; lines of old runs have no
checksum. A row has a kind, a step, finite numbers, and the fields that KINDS requires for its kind. A row of an unknown
kind may hold any JSON values of limited size.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

Row = dict[str, Any]
Check = Callable[[Any], bool]

# largest absolute value; it exceeds the range of float32 (3e38), and its square is finite in float64
MAX_MAGNITUDE = 1e100
MAX_COUNT = 10**12  # steps, samples, pairs
MAX_FIELDS = 256
MAX_LINE_BYTES = 2**18  # bytes
MAX_FILE_BYTES = 2**30  # maximum size of metrics.jsonl in bytes; a run of a million steps takes about a tenth of it
REPRESENTATIONS = {  # labels of the scored representations, by the value of the field "of" in score rows
    "inputs": "raw input",
    "untrained": "untrained network",
    "features": "frozen features",
    "pca_whitened": "features, PCA-whitened",
    "whitened": "features, whitened within classes",
    "trained": "trained network",
    "alone": "network alone, without neighbours",
    "inductive": "neighbours from the training split (inductive)",
    "transductive": "neighbours from the test split",
}
UNTRAINED = ("inputs", "untrained", "features", "pca_whitened", "whitened")  # those scored before the first step
_SLACK = 1e-3  # tolerance of the range 0..1, which rounding errors may exceed slightly
_TAIL = len(b', "crc": "01234567"}')


def representation(subject: str, *, pretrained: bool) -> str:
    """Return the label of a representation, such as "trained network".

    Args:
        subject: A key of REPRESENTATIONS.
        pretrained: True if the network started from pretrained weights.
    """
    return "pretrained network" if pretrained and subject == "untrained" else REPRESENTATIONS[subject]


def to_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line with newline; equal rows give equal bytes. Raises ValueError for NaN and infinity."""
    body = json.dumps(row, allow_nan=False).encode()
    return b'%s, "crc": "%08x"}\n' % (body[:-1], zlib.crc32(body))


def from_line(line: bytes) -> Row | None:
    """Parse a line; return its row without the checksum, or None if the line is damaged or not a valid row."""
    if len(line) > MAX_LINE_BYTES:
        return None
    if line[-_TAIL : 10 - _TAIL] == b', "crc": "':
        body = line[:-_TAIL] + b"}"
        if line[10 - _TAIL :] != b'%08x"}' % zlib.crc32(body):
            return None
    else:
        body = line
    try:
        return validate_row(from_json(body, allow_inf_nan=False, cache_strings="keys"))
    except ValueError:  # not JSON, contains NaN, is nested too deeply, or has a number with thousands of digits
        return None


def validate_row(value: Any) -> Row | None:
    """Return `value` if it is a valid row as defined in the module docstring, else None."""
    if not isinstance(value, dict) or not 2 <= len(value) <= MAX_FIELDS:
        return None
    kind, step = value.get("kind"), value.get("step")
    if not isinstance(kind, str) or not _count(step):
        return None
    wanted = KINDS.get(kind, _UNKNOWN_KIND)
    for name in wanted.required:
        if name not in value:
            return None
    fields, others = wanted.fields, wanted.others
    for name, number in value.items():
        if not (fields[name](number) if name in fields else others(number) and _word(name)):
            return None
    if wanted.check_row and not wanted.check_row(value):
        return None
    return value


# Validators of field values.
def _number(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE


def _optional_number(value: Any) -> bool:
    """Return True for a number and for None, which represents an undefined value."""
    return value is None or _number(value)


def _share(value: Any) -> bool:
    return value is None or (_number(value) and -_SLACK <= value <= 1 + _SLACK)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT


def _flag(value: Any) -> bool:
    return type(value) is bool


def _word(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and len(value) <= 64


def _name(value: Any) -> bool:
    """Return True for a digest or a file name without extension: ASCII letters, digits and hyphens."""
    return isinstance(value, str) and len(value) <= 128 and value.isascii() and value.replace("-", "").isalnum()


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 4096


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 4096 and all(map(_text, value))


def _by_rank(value: Any) -> bool:
    """Return True for a mapping from K, written in decimal digits, to a share in 0..1 (for example recall at K)."""
    return isinstance(value, dict) and all(
        key.isascii() and key.isdigit() and len(key) < 10 and _share(share) for key, share in value.items()
    )


def _counts(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= 1024 and all(map(_count, value))


def _anything(value: Any, depth: int = 3) -> bool:
    """Return True for any JSON value of limited size and depth."""
    if isinstance(value, (list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and len(value) <= 4096 and all(_anything(each, depth - 1) for each in inner)
    return isinstance(value, bool) or _optional_number(value) or _text(value)


def _histograms_fit(row: Row) -> bool:
    """Return True if the histograms in a row are consistent.

    A row has either none, or one for positive and one for negative pairs, with equally many bins and a positive upper
    limit.
    """
    positive, negative, top = (row.get(name) for name in ("positive_histogram", "negative_histogram", "histogram_to"))
    if positive is None or negative is None:
        return positive is negative
    return len(positive) == len(negative) and top is not None and top > 0


@dataclass(frozen=True)
class RowSchema:
    """Schema for the rows of one kind.

    It consists of the required fields, a check for each known field, one for all other fields, and one for the whole
    row.
    """

    required: tuple[str, ...] = ()
    fields: Mapping[str, Check] = field(default_factory=dict)
    others: Check = _optional_number
    check_row: Check | None = None


def _kind(
    *required: str, others: Check = _optional_number, check_row: Check | None = None, **fields: Check
) -> RowSchema:
    return RowSchema(required, {"kind": _word, "step": _count} | fields, others, check_row)


_SHARES = dict.fromkeys(("map_at_r", "r_precision", "knn3", "knn3_majority", "nmi", "f1"), _share)
_RANKS = dict.fromkeys(("recall_at", "precision_at", "recall_fraction_at"), _by_rank)
KINDS = {
    "step": _kind("loss", loss=_number, nonzero=_number, active=_number),
    "measure": _kind(positive_histogram=_counts, negative_histogram=_counts, check_row=_histograms_fit, others=_number),
    "validation": _kind(
        "map_at_r",
        **dict.fromkeys(("map_at_r", "recall_at_1", "nmi", "test_map_at_r"), _share),
        part=_word,
        transductive=_flag,
    ),
    "validation_overlap": _kind(),
    "conditioning": _kind("neighbours", neighbours=_count, same_class=_share),
    "projection": _kind("projection", projection=_count, score=_share),
    "covering": _kind(),
    "tested_covering": _kind(),
    "fixed_neighbours": _kind("neighbours", neighbours=_count, queries=_count, others=_share),
    "scores": _kind(
        *("of", "map_at_r", "recall_at", "queries"),
        **_SHARES,
        **_RANKS,
        of=_word,
        queries=_count,
        skipped=_count,
        weights=_name,
        transductive=_flag,
        others=_anything,
    ),
    "baseline": _kind("of", "part", of=_word, part=_word, others=_share),
    "train": _kind("map_at_r"),
    "overlap": _kind(),
    "zero_shot": _kind(),
    "fork": _kind(
        *("run", "changed", "carried", "anew"), run=_text, changed=_texts, carried=_texts, anew=_texts, others=_anything
    ),
}
_UNKNOWN_KIND = _kind(others=_anything)
