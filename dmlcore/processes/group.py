"""The processes that make the steps of one training run together: who takes which rows, and how results come together.

Every process has the whole network and loss, embeds its share of the batch, and computes the loss of the whole batch
from the gathered embeddings. With W processes the gradient that `gather` gives back to a share is the sum of W equal
ones, so the gradient of a network parameter on one process is W times what its share contributes; the mean over the
processes (`average`) is the gradient that a single process would have. The parameters of a loss have the same gradient
on each process, which a mean leaves as it is. No factor is needed anywhere else.

Where this process is no member of a group, and inside `alone`, all of this is what one process does.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch._C._distributed_c10d import Store

# A process that dies closes its connections, which ends the waiting of all others at once; one that computes (feature
# maps, clusterings) may keep them waiting for long.
PATIENCE = timedelta(days=1)
BUCKET = 2**22  # numbers of gradients that travel at once
SHORT = 1024  # bytes of a value that is sent in one message, its length among them

_joined = False
_alone = 0


class ProcessError(RuntimeError):
    """Processes that cannot work together, or that one of them has left; the message says what to do."""


@dataclass(frozen=True)
class Share:
    """The rows from `start` on, up to `stop`, of `total`."""

    start: int
    stop: int
    total: int

    @property
    def rows(self) -> slice:
        """For indexing."""
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start


def join(place: str | Store = "env://") -> None:
    """Become a member of the group that the environment tells of, as torchrun sets it: RANK, WORLD_SIZE and so on.

    place: where the processes find each other, as torch.distributed reads it: a file, else MASTER_ADDR and MASTER_PORT;
    or the store itself. Tensors on the CPU travel by gloo, those on GPUs by NCCL.
    """
    global _joined
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    count = int(os.environ["WORLD_SIZE"])
    where, store = (place, None) if isinstance(place, str) else (None, place)
    dist.init_process_group(backend, where, store=store, rank=rank(), world_size=count, timeout=PATIENCE)
    _joined = True


def leave() -> None:
    """Be a member no more; the others go on only if they need nothing from this process."""
    global _joined
    if _joined:
        _joined = False
        dist.destroy_process_group()


def size() -> int:
    """How many processes train the run."""
    return dist.get_world_size() if _joined else 1


def rank() -> int:
    """Which of them this is; 0 leads: it alone reads and writes the run's directory."""
    return int(os.environ.get("RANK", 0))


def local_rank() -> int:
    """Which of those on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", 0))


def local_size() -> int:
    """How many of them are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", 1))


@contextmanager
def alone() -> Iterator[None]:
    """In here this process does all the work, and talks to no other."""
    global _alone
    _alone += 1
    try:
        yield
    finally:
        _alone -= 1


def shares_work() -> bool:
    """Whether what is done now is done by several processes together."""
    return _joined and not _alone and dist.get_world_size() > 1


def share(total: int) -> Share:
    """The rows of `total` that are this process's: equal shares, up to one row, in the order of the ranks."""
    return _shares(total)[dist.get_rank()] if shares_work() else Share(0, total, total)


def gather(tensor: Tensor, total: int | None = None) -> Tensor:
    """All rows (total, ...) on each process, of the rows (n, ...) that each has of its `share`, in the order of ranks.

    total: known by asking the others if it is not given. The gradient of a row is the sum of those that the processes
    have of it.
    """
    if not shares_work():
        return tensor
    if total is None:
        total = int(summed(torch.tensor(len(tensor))))
    shares = _shares(total)
    longest = max(map(len, shares))
    if len(tensor) < longest:
        tensor = F.pad(tensor, (0, 0) * (tensor.ndim - 1) + (0, longest - len(tensor)))
    rows = stacked(tensor).flatten(0, 1)
    if longest * len(shares) == total:
        return rows
    return torch.cat([rows[i * longest : i * longest + len(own)] for i, own in enumerate(shares)])


def stacked(tensor: Tensor) -> Tensor:
    """A tensor of each process, of one shape, in the order of the ranks: (processes, ...); gradients as in `gather`."""
    if not shares_work():
        return tensor[None]
    rows: Tensor = _Stacked.apply(tensor)
    return rows


def summed(tensor: Tensor) -> Tensor:
    """The sum over the processes, without a gradient."""
    if not shares_work():
        return tensor
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total


@torch.no_grad()
def average(gradients: Iterable[Tensor]) -> None:
    """Put in the place of each gradient its mean over the processes, the same bits on each.

    Not DistributedDataParallel, which after its first step puts gradients into other buckets: then more than two
    processes add them up in another order, and a run that was resumed would not equal one that was not.
    """
    if not shares_work():
        return
    travelling = []
    for bucket in _buckets(gradients):
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        travelling.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
    for bucket, flat, sending in travelling:
        sending.wait()
        flat /= dist.get_world_size()
        pieces = flat.split([gradient.numel() for gradient in bucket])
        for gradient, mean in zip(bucket, pieces, strict=True):
            gradient.copy_(mean.view(gradient.shape))


def first(compute: Callable[[], Any]) -> Any:
    """What the first process computes, which it does alone, on all of them: something that JSON can hold."""
    if not shares_work():
        return compute()
    value = b""
    if rank() == 0:
        with alone():
            value = json.dumps(compute()).encode()
    return json.loads(broadcast(value))


def broadcast(message: bytes = b"") -> bytes:
    """What the first process says, on all of them."""
    if not shares_work():
        return message
    head = torch.zeros(SHORT, dtype=torch.uint8)
    room = SHORT - 8
    if rank() == 0:
        begin = len(message).to_bytes(8, "big") + message[:room]
        head[: len(begin)] = torch.frombuffer(bytearray(begin), dtype=torch.uint8)
    dist.broadcast(head, 0)
    words = head.numpy().tobytes()
    length = int.from_bytes(words[:8], "big")
    if length <= room:
        return words[8 : 8 + length]
    rest = torch.empty(length - room, dtype=torch.uint8)
    if rank() == 0:
        rest = torch.frombuffer(bytearray(message[room:]), dtype=torch.uint8)
    dist.broadcast(rest, 0)
    return words[8:] + rest.numpy().tobytes()


@torch.no_grad()
def copy_first(tensors: Sequence[Tensor]) -> None:
    """Put what the first process has into these tensors of all of them."""
    if shares_work():
        for tensor in tensors:
            dist.broadcast(tensor, 0)


class _Stacked(torch.autograd.Function):
    """A tensor of each process -> all of them (processes, ...), whose gradients are summed over the processes.

    torch has two of this: `torch.distributed.nn.functional.all_gather` is deprecated, and what it names instead imports
    the compiler, two seconds of every process.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        rows = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, tensor.contiguous())
        return torch.stack(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return summed(gradients[0].contiguous())[dist.get_rank()]


def _shares(total: int) -> list[Share]:
    count = dist.get_world_size()
    ends = [i * total // count for i in range(count + 1)]
    return [Share(start, stop, total) for start, stop in pairwise(ends)]


def _buckets(gradients: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """In their order, of one type each, of some BUCKET numbers; the same on each process and at each step."""
    bucket: list[Tensor] = []
    numbers = 0
    for gradient in gradients:
        if bucket and (gradient.dtype != bucket[0].dtype or numbers + gradient.numel() > BUCKET):
            yield bucket
            bucket, numbers = [], 0
        bucket.append(gradient)
        numbers += math.prod(gradient.shape)
    if bucket:
        yield bucket
