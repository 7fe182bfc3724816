"""The files of a run directory: their names, and the head of a checkpoint, for all that read or write them; no torch.

A checkpoint is 64 hexadecimal digits, a newline and a safetensors payload whose SHA-256 they are. The payload begins
with the length of its JSON header in 8 bytes; the facts are JSON within that header.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files

SPEC, STATE, METRICS, LOG = "spec.json", "state.json", "metrics.jsonl", "log.txt"
LOCK, CANCEL = "lock", "cancel"  # held by who works on the run; a request
LAST, PREV, KEPT = "last.ckpt", "prev.ckpt", "kept"  # two generations, and the folder of those that stay
ORIGIN, ORIGIN_ROWS = "origin.ckpt", "origin.json"  # where a fork begins, until it has a checkpoint of its own
EMBEDDINGS = "embeddings"  # folder
DIGEST = 64  # characters of the digest at the head of a checkpoint
LONGEST_HEADER = 2**26  # bytes; a name and a place for each tensor
_STEP = re.compile(r"[0-9]{8,}")


def embeddings_path(folder: Path, weights: str) -> Path:
    """Where the embeddings by weights of that digest lie, once they are evaluated."""
    return folder / EMBEDDINGS / f"{weights}.npz"


def kept_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step stays, if it does."""
    return folder / KEPT / f"{step:08}.ckpt"


def kept(folder: Path) -> dict[int, Path]:
    """The checkpoints that stay, by step, ascending."""
    names = (path.stem for path in (folder / KEPT).glob("*.ckpt"))
    return {int(name): folder / KEPT / f"{name}.ckpt" for name in sorted(names) if _STEP.fullmatch(name)}


def seal(digest: str) -> bytes:
    """What stands before the payload in a checkpoint file."""
    return digest.encode() + b"\n"


def opened(contents: bytes) -> tuple[str, bytes]:
    """Digest, as it is stated, and payload of a checkpoint file; raises ValueError for what can be none."""
    if contents[DIGEST : DIGEST + 1] != b"\n":
        raise ValueError("no digest")
    return contents[:DIGEST].decode("ascii"), contents[DIGEST + 1 :]


def facts(payload: bytes) -> dict[str, Any]:
    """The facts in the header of a payload; raises ValueError, KeyError or TypeError where there are none."""
    header: dict[str, Any] = json.loads(json.loads(payload[8 : 8 + _length(payload)])["__metadata__"]["facts"])
    return header


def step_of(path: Path) -> int | None:
    """Return the step in the header of a checkpoint, or None if `path` is no such file; the digest is not verified."""
    try:
        with atomic_files.regular(path, sys.maxsize) as file:
            _, begin = opened(file.read(DIGEST + 1 + 8))
            return int(facts(begin + file.read(_length(begin)))["step"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _length(payload: bytes) -> int:
    length = int.from_bytes(payload[:8], "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"a header of {length:,} bytes")
    return length
