"""Process group of data-parallel training: assignment of rows to processes, and collective operations.

Every process holds the whole network and loss. It embeds its share of the batch and computes the loss of the whole
batch from the gathered embeddings. With W processes, the backward pass of `gather` sums W equal gradients, so the
gradient of a network parameter on one process is W times the contribution of its share. The mean over the processes
(`average`) is therefore the gradient that a single process would compute. Gradients of the loss's own parameters are
equal on all processes, so the mean leaves them unchanged. No other factor is needed.

If this process is not a member of a group, and inside `alone`, all functions act as in a single process.
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

# The timeout is long because a process may have to wait for another one that computes feature maps or clusterings. A
# process that dies closes its connections, which ends the wait of the others immediately.
TIMEOUT = timedelta(days=1)
BUCKET_SIZE = 2**22  # maximum number of gradient elements sent in one message
# size in bytes of the first message of a broadcast, including its length; a longer value needs a second one
MESSAGE_BYTES = 1024

_joined = False
_alone = 0


class ProcessError(RuntimeError):
    """Error for a failed process group or a lost process; the message tells the user what to do."""


@dataclass(frozen=True)
class Share:
    """Range of rows of a tensor that one process handles: `start` to `stop` (exclusive) of `total` rows."""

    start: int
    stop: int
    total: int

    @property
    def rows(self) -> slice:
        """Slice that selects the rows of the share."""
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start


def join(place: str | Store = "env://") -> None:
    """Join the process group described by the environment variables that torchrun sets (RANK, WORLD_SIZE, ...).

    Communication uses gloo on the CPU and NCCL on GPUs.

    Args:
        place: Store through which the processes find each other, or its URL as in `init_process_group`: "file://PATH",
            or "env://" for MASTER_ADDR and MASTER_PORT.
    """
    global _joined
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    count = int(os.environ["WORLD_SIZE"])
    where, store = (place, None) if isinstance(place, str) else (None, place)
    dist.init_process_group(backend, where, store=store, rank=rank(), world_size=count, timeout=TIMEOUT)
    _joined = True


def leave() -> None:
    """Leave the group; the other processes fail if they communicate with this one afterwards."""
    global _joined
    if _joined:
        _joined = False
        dist.destroy_process_group()


def size() -> int:
    """Return the number of processes that train the run; 1 if no group was joined."""
    return dist.get_world_size() if _joined else 1


def rank() -> int:
    """Return the rank of this process; only rank 0 reads and writes the run directory."""
    return int(os.environ.get("RANK", 0))


def local_rank() -> int:
    """Return the rank of this process among those on the same machine."""
    return int(os.environ.get("LOCAL_RANK", 0))


def local_size() -> int:
    """Return the number of processes of the run on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", 1))


@contextmanager
def alone() -> Iterator[None]:
    """Within this context, do all work in this process, as if no group had been joined."""
    global _alone
    _alone += 1
    try:
        yield
    finally:
        _alone -= 1


def shares_work() -> bool:
    """Return True if several processes share the current work: a group was joined and `alone` is not active."""
    return _joined and not _alone and dist.get_world_size() > 1


def share(total: int) -> Share:
    """Return the share of `total` rows that belongs to this process.

    Shares are in rank order, and their sizes differ by at most one row.
    """
    return _shares(total)[dist.get_rank()] if shares_work() else Share(0, total, total)


def gather(tensor: Tensor, total: int | None = None) -> Tensor:
    """Gather the rows of all processes in rank order.

    In the backward pass, the gradient of a row is the sum of its gradients on all processes.

    Args:
        tensor: Rows of this process, (n, ...), as assigned by `share`.
        total: Number of rows on all processes together; if None, it is computed by communication.

    Returns:
        All rows, (total, ...), on each process.
    """
    if not shares_work():
        return tensor
    if total is None:
        total = int(sum_over_processes(torch.tensor(len(tensor))))
    shares = _shares(total)
    longest = max(map(len, shares))
    if len(tensor) < longest:
        tensor = F.pad(tensor, (0, 0) * (tensor.ndim - 1) + (0, longest - len(tensor)))
    rows = stack_over_processes(tensor).flatten(0, 1)
    if longest * len(shares) == total:
        return rows
    return torch.cat([rows[i * longest : i * longest + len(own)] for i, own in enumerate(shares)])


def stack_over_processes(tensor: Tensor) -> Tensor:
    """Stack one tensor per process, all of one shape, in rank order: (processes, ...). Gradients are as in `gather`."""
    if not shares_work():
        return tensor[None]
    rows: Tensor = _Stacked.apply(tensor)
    return rows


def sum_over_processes(tensor: Tensor) -> Tensor:
    """Return the sum of a tensor over the processes, detached from the autograd graph."""
    if not shares_work():
        return tensor
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total


@torch.no_grad()
def average(gradients: Iterable[Tensor]) -> None:
    """Replace each gradient in place with its mean over the processes; the means are bitwise equal on all processes.

    DistributedDataParallel is not used: it reassigns gradients to buckets after its first step, which changes the order
    of summation for more than two processes, so a resumed run would differ from an uninterrupted one.
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


def on_first(compute: Callable[[], Any]) -> Any:
    """Call `compute` on rank 0 only, and return its value, which must be serialisable as JSON, on all processes."""
    if not shares_work():
        return compute()
    value = b""
    if rank() == 0:
        with alone():
            value = json.dumps(compute()).encode()
    return json.loads(broadcast(value))


def broadcast(message: bytes = b"") -> bytes:
    """Broadcast `message` from rank 0 and return it on all processes; other ranks need not pass one."""
    if not shares_work():
        return message
    head = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8)
    room = MESSAGE_BYTES - 8
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
def broadcast_tensors(tensors: Sequence[Tensor]) -> None:
    """Overwrite the tensors on all processes with those of rank 0."""
    if shares_work():
        for tensor in tensors:
            dist.broadcast(tensor, 0)


class _Stacked(torch.autograd.Function):
    """Autograd function that stacks one tensor per process to (processes, ...).

    The backward pass sums the gradients over the processes. PyTorch's `torch.distributed.nn.functional.all_gather` is
    deprecated, and importing its successor loads the compiler, which takes two seconds in every process.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        rows = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, tensor.contiguous())
        return torch.stack(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return sum_over_processes(gradients[0].contiguous())[dist.get_rank()]


def _shares(total: int) -> list[Share]:
    count = dist.get_world_size()
    ends = [i * total // count for i in range(count + 1)]
    return [Share(start, stop, total) for start, stop in pairwise(ends)]


def _buckets(gradients: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Yield lists of consecutive gradients to be averaged in one message.

    All gradients of a list have one dtype and together at most BUCKET_SIZE elements; a larger gradient is in a list of
    its own. The lists are the same on each process and at each step.
    """
    bucket: list[Tensor] = []
    numbers = 0
    for gradient in gradients:
        if bucket and (gradient.dtype != bucket[0].dtype or numbers + gradient.numel() > BUCKET_SIZE):
            yield bucket
            bucket, numbers = [], 0
        bucket.append(gradient)
        numbers += math.prod(gradient.shape)
    if bucket:
        yield bucket
