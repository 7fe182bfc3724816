"""Names of the files in a run directory, and format of checkpoint headers; does not import torch.

A checkpoint file consists of a SHA-256 in 64 hexadecimal digits, a newline, and the safetensors payload to which the
digest belongs. The payload starts with the length of its JSON header in 8 bytes. The header also holds the facts, which
are JSON values such as the step.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from dmlcore.storage import atomic_files

SPEC, STATE, METRICS, LOG = "spec.json", "state.json", "metrics.jsonl", "log.txt"
LOCK, CANCEL = "lock", "cancel"  # lock file held by the worker; file that requests cancellation
# newest and previous checkpoint, and the directory of kept checkpoints
LAST, PREV, KEPT = "last.ckpt", "prev.ckpt", "kept"
# parent's checkpoint and metric rows, used until a fork's first own checkpoint
ORIGIN, ORIGIN_ROWS = "origin.ckpt", "origin.json"
EMBEDDINGS = "embeddings"  # directory
SET = "set"  # directory of the imported vectors and columns of an embedding set
DIGEST = 64  # characters of the digest at the start of a checkpoint
# maximum size in bytes of the header, which holds name, dtype, shape and offsets of each tensor
MAX_HEADER_BYTES = 2**26
_STEP = re.compile(r"[0-9]{8,}")


def embeddings_path(folder: Path, weights: str) -> Path:
    """Return the path of the file of embeddings computed with the weights that have the digest `weights`."""
    return folder / EMBEDDINGS / f"{weights}.npz"


def kept_path(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint kept at `step`."""
    return folder / KEPT / f"{step:08}.ckpt"


def kept_checkpoints(folder: Path) -> dict[int, Path]:
    """Return the paths of the kept checkpoints by step, in ascending order."""
    names = (path.stem for path in (folder / KEPT).glob("*.ckpt"))
    return {int(name): folder / KEPT / f"{name}.ckpt" for name in sorted(names) if _STEP.fullmatch(name)}


def seal(digest: str) -> bytes:
    """Return the bytes that precede the payload of a checkpoint file: the digest and a newline."""
    return digest.encode() + b"\n"


def split_checkpoint(contents: bytes) -> tuple[str, bytes]:
    """Return the digest stored in a checkpoint file and the payload; raises ValueError for another format."""
    if contents[DIGEST : DIGEST + 1] != b"\n":
        raise ValueError("no digest")
    return contents[:DIGEST].decode("ascii"), contents[DIGEST + 1 :]


def read_facts(payload: bytes) -> dict[str, Any]:
    """Return the facts from a payload's header; raises ValueError, KeyError or TypeError if there are none."""
    header: dict[str, Any] = json.loads(json.loads(payload[8 : 8 + _length(payload)])["__metadata__"]["facts"])
    return header


def step_of(path: Path) -> int | None:
    """Return the step in a checkpoint's header, or None if `path` is not a checkpoint; the digest is not verified."""
    try:
        with atomic_files.open_regular(path, sys.maxsize) as file:
            _, begin = split_checkpoint(file.read(DIGEST + 1 + 8))
            return int(read_facts(begin + file.read(_length(begin)))["step"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _length(payload: bytes) -> int:
    length = int.from_bytes(payload[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {length:,} bytes, above the limit of {MAX_HEADER_BYTES:,}")
    return length
