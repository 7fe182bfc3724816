"""Checkpoint files of a run: safetensors preceded by their SHA-256, so that nothing is unpickled.

A run directory holds two generations, last.ckpt and prev.ckpt, which are replaced atomically. `run_directory` describes
the format. Equal contents give equal bytes, so two runs can be compared by digest.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from dmlcore.storage import atomic_files, run_directory
from dmlcore.storage.run_directory import LAST, PREV

# raised if the file system has no hard links, or if the limit of links per file is reached
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# Data types in the order in which safetensors stores tensors: by decreasing element size.
TYPES = {
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
ORDER = list(TYPES)
_TYPE_OF = {name: dtype for dtype, name in TYPES.items()}
CHUNK = 2**25  # bytes hashed at a time
log = logging.getLogger(__name__)


class CheckpointError(RuntimeError):
    """Error for checkpoints that cannot be used; the message names each file and its fault."""


@dataclass(frozen=True)
class Checkpoint:
    """Contents and path of a checkpoint file: tensors by name, facts (JSON values such as the step), and digest."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    digest: str
    path: Path


def save(folder: Path, tensors: Mapping[str, Tensor] | Packed, facts: Mapping[str, Any]) -> str:
    """Write last.ckpt and return its SHA-256; the previous last.ckpt becomes prev.ckpt unless it is damaged.

    A crash at any point leaves at least one complete generation. If the disk is full, OSError is raised and both
    existing files stay intact.
    """
    payload = file_parts(tensors, facts)
    digest = _sha256(payload)
    fresh = folder / f".{LAST}.new"
    try:
        atomic_files.replace(fresh, lambda file: file.writelines([run_directory.seal(digest), *payload]))
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    if _is_intact(folder / LAST):  # a damaged last.ckpt must not replace an intact prev.ckpt
        os.replace(folder / LAST, folder / PREV)
    os.replace(fresh, folder / LAST)
    atomic_files.sync_directory(folder)
    return digest


def keep(folder: Path, step: int, source: Path) -> None:
    """Keep a checkpoint file as kept/STEP.ckpt, as a hard link if the file system supports it and as a copy otherwise.

    A crash leaves either the complete file or none. If the disk is full, OSError is raised and existing files stay
    intact.
    """
    target = run_directory.kept_path(folder, step)
    target.parent.mkdir(exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)  # left by a killed worker
    try:
        os.link(source, fresh)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        atomic_files.replace(target, lambda file: file.write(source.read_bytes()))
        return
    os.replace(fresh, target)
    fresh.unlink(missing_ok=True)  # os.replace does nothing if both names are links to the same file
    atomic_files.sync_directory(target.parent)


def load(folder: Path, refuse: Callable[[Checkpoint], str] = lambda _: "") -> Checkpoint | None:
    """Load last.ckpt, or prev.ckpt if last.ckpt cannot be used; return None if neither exists.

    Args:
        folder: Run directory.
        refuse: Function that returns why an intact checkpoint cannot be used, or "" to accept it.

    Raises:
        CheckpointError: Checkpoints exist, but none is usable.
    """
    wrong: list[str] = []
    for name in (LAST, PREV):
        if not (folder / name).exists():
            continue
        try:
            checkpoint = read(folder / name)
            if reason := refuse(checkpoint):
                raise CheckpointError(reason)
        except CheckpointError as error:
            log.warning("%s; trying the previous generation", error)
            wrong.append(str(error))
        else:
            return checkpoint
    if wrong:
        raise CheckpointError(f"no usable checkpoint: {'; '.join(wrong)}. Restore one of them or start a new run")
    return None


def read(path: Path) -> Checkpoint:
    """Read one checkpoint file; raises CheckpointError unless its contents match its digest."""
    digest, payload = _read_verified(path)
    try:
        tensors, facts = unpack(payload)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path.name} is not a checkpoint of this program: {error!r}") from None
    return Checkpoint(tensors, facts, digest, path)


def _read_verified(path: Path) -> tuple[str, bytes]:
    """Return the digest and payload of a checkpoint file; raises CheckpointError if they do not match."""
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from None
    with contextlib.suppress(ValueError):
        digest, payload = run_directory.split_checkpoint(contents)
        if hashlib.sha256(payload).hexdigest() == digest:
            return digest, payload
    raise CheckpointError(f"{path.name} is damaged or not a checkpoint ({len(contents):,} bytes, wrong SHA-256)")


def _is_intact(path: Path) -> bool:
    """Return True if the payload of a checkpoint file matches the digest stored in the file.

    The file is hashed in chunks, as it may exceed the free memory. The chunks are large because this thread has to
    acquire the GIL again after each of them, in competition with a training thread.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            stated, _ = run_directory.split_checkpoint(file.read(run_directory.DIGEST + 1))
            piece, digest = memoryview(bytearray(min(CHUNK, os.stat(path).st_size))), hashlib.sha256()
            while count := file.readinto(piece):
                digest.update(piece[:count])
            return digest.hexdigest() == stated
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class TensorLayout:
    """Places of tensors in a safetensors file, by name, and the size of all tensors in bytes.

    Attributes:
        entries: Entries of the header: dtype, shape and offsets of each tensor, in the order of the file.
        size: Number of bytes after the header.
    """

    entries: dict[str, dict[str, Any]]
    size: int

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> TensorLayout:
        """Return the layout of some tensors; equal names, types and shapes have equal layouts."""
        entries: dict[str, dict[str, Any]] = {}
        end = 0
        for name in sorted(tensors, key=lambda name: (ORDER.index(tensors[name].dtype), name)):
            tensor = tensors[name]
            begin, end = end, end + tensor.nbytes
            entries[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        return cls(entries, end)

    def header(self, facts: Mapping[str, Any]) -> bytes:
        """Return the header of a file with these tensors and facts."""
        # Use a single metadata key: safetensors writes several in random order.
        metadata = {"__metadata__": {"facts": json.dumps(facts, sort_keys=True, allow_nan=False)}}
        text = json.dumps(metadata | self.entries, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    def views(self, payload: Tensor, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a view of the place of each of some tensors in `payload` (size,) uint8, with its type and shape."""
        places: dict[str, Tensor] = {}
        for kind in dict.fromkeys(entry["dtype"] for entry in self.entries.values()):
            # tensors of one type lie side by side, so one call returns all their views
            names = [name for name, entry in self.entries.items() if entry["dtype"] == kind]
            begin, end = self.entries[names[0]]["data_offsets"][0], self.entries[names[-1]]["data_offsets"][1]
            shapes = [self.entries[name]["shape"] for name in names]
            values = payload[begin:end].view(_TYPE_OF[kind]).split([math.prod(shape) for shape in shapes])
            places |= {name: value.view(shape) for name, value, shape in zip(names, values, shapes, strict=True)}
        return {name: places[name] for name in tensors}


@dataclass(frozen=True)
class Packed:
    """Tensors that already lie in main memory as in a file: their layout, and `payload` (size,) uint8."""

    layout: TensorLayout
    payload: Tensor


def file_parts(tensors: Mapping[str, Tensor] | Packed, facts: Mapping[str, Any]) -> list[bytes | memoryview]:
    """Return the parts of a safetensors file in order: the header, then one view of each tensor, or of all if packed.

    Equal contents give equal bytes. The views avoid the two copies that safetensors makes while it blocks all threads.
    """
    if isinstance(tensors, Packed):
        return [tensors.layout.header(facts), tensors.payload.numpy().data]
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    layout = TensorLayout.of(plain)
    flat = (plain[name].reshape(-1).view(torch.uint8).numpy().data for name in layout.entries)
    return [layout.header(facts), *flat]


def pack(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """Return the contents of a safetensors file with these tensors and facts."""
    return b"".join(file_parts(tensors, facts))


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a safetensors file of these tensors without facts, which identifies a network's weights."""
    return _sha256(file_parts(tensors, {}))


def _sha256(payload: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in payload:
        digest.update(piece)
    return digest.hexdigest()


def unpack(payload: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and facts of a safetensors payload, the inverse of `pack`."""
    return safetensors.torch.load(payload), run_directory.read_facts(payload)


def select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix` and a dot, under names without that prefix."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def add_prefixes(**parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Merge dictionaries of tensors; each name is prefixed with the keyword of its dictionary and a dot."""
    return {f"{prefix}.{name}": tensor for prefix, tensors in parts.items() for name, tensor in tensors.items()}


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's state as tensors named "<parameter number>.<entry>", without its settings."""
    state: dict[int, dict[str, Tensor]] = optimiser.state_dict()["state"]
    return {f"{number}.{entry}": tensor for number, entries in state.items() for entry, tensor in entries.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load a state returned by `optimiser_tensors` into an optimiser without changing its param_groups settings."""
    settings = optimiser.state_dict()["param_groups"]
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, entry = name.partition(".")
        like = parameters[int(number)]
        # Use the memory layout of the parameter. With another layout, PyTorch selects other kernels, which round
        # differently.
        kept = torch.empty_like(like).copy_(tensor) if tensor.shape == like.shape else tensor
        state.setdefault(int(number), {})[entry] = kept
    optimiser.load_state_dict({"state": state, "param_groups": settings})
