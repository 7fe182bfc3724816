"""Processes that read the batches of a run into shared memory, so that the training process only uploads them."""

from __future__ import annotations

import logging
import math
import mmap
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from dmlcore import processes

PREFETCH = 2  # batches that each process reads ahead
IN_USE = 2  # batches that may still be uploaded while the next ones are read
ROOM = 1.25  # size of a slot relative to the first batch; photographs are padded to the largest one of their batch
MIN_SECONDS = 2.0  # reading time in the rest of a run from which starting processes pays
INTERVAL = 0.01  # seconds between two batches that the processes should manage together

log = logging.getLogger(__name__)


def count(wanted: int, device: torch.device, seconds: float, steps: int) -> int:
    """Return how many processes read the batches of the remaining steps; 0: this process reads them.

    Args:
        wanted: The setting `compute.workers`; -1 chooses: none on a CPU or for short runs.
        device: Device of the run.
        seconds: Time to read one batch in this process.
        steps: Number of remaining steps.
    """
    if wanted >= 0:
        return wanted
    if device.type != "cuda" or seconds * steps < MIN_SECONDS:
        return 0
    most = max(1, len(os.sched_getaffinity(0)) // 2 // processes.local_size())
    return min(most, max(2, math.ceil(seconds / INTERVAL)))


class BatchWorkers:
    """Reader of the batches of consecutive steps by processes of a `DataLoader`, in the order of the steps.

    A process is a fork of this one and copies the inputs of its batch into a slot of shared memory, which is pinned
    here; only small arrays pass through a queue. Slots are reused in turn: `get` first waits until the batch that was
    in a slot has been uploaded.

    Args:
        read: Function that reads the batch of a step: small values, and its inputs. It runs in the processes.
        steps: The steps to read.
        workers: Number of processes, at least 1.
        size: Size in bytes of the inputs of a typical batch. A batch that does not fit passes through the queue.
        pin: True to pin the memory, for uploads to a GPU.
    """

    def __init__(
        self, read: Callable[[int], tuple[Any, Tensor]], steps: range, workers: int, size: int, *, pin: bool
    ) -> None:
        self.step, self._pinned = steps.start, False
        slot = -(-int(size * ROOM) // mmap.PAGESIZE) * mmap.PAGESIZE
        slots = workers * PREFETCH + IN_USE
        # anonymous memory, because /dev/shm is small in many containers
        self._memory = torch.from_numpy(np.frombuffer(mmap.mmap(-1, slots * slot), np.uint8))
        self._slots = self._memory.view(slots, slot)
        loader = DataLoader(
            _Reading(read, self._slots),
            batch_size=None,
            sampler=steps,
            num_workers=workers,
            prefetch_factor=PREFETCH,
            collate_fn=_unchanged,
            worker_init_fn=_start,
            multiprocessing_context="fork",
            generator=torch.Generator(),  # the default generator would be advanced
        )
        self._batches: Iterator[Any] = iter(loader)
        # Pinned after the fork, so that the processes inherit ordinary memory.
        self._pinned = pin and _pin(self._memory)
        self._uploaded: deque[torch.cuda.Event | None] = deque()

    def get(self) -> tuple[Any, Tensor]:
        """Return the small values and the inputs of the next step; `uploaded` must be called before the next `get`.

        Raises:
            Exception: The error with which a process failed to read the batch.
        """
        while len(self._uploaded) >= IN_USE:
            if event := self._uploaded.popleft():
                event.synchronize()
        result = next(self._batches)
        if isinstance(result, Exception):
            raise result
        values, inputs = result
        if isinstance(inputs, _Place):
            inputs = inputs.view(self._slots[self.step % len(self._slots)])
        else:
            inputs = torch.from_numpy(inputs)
        self.step += 1
        return values, inputs

    def uploaded(self, event: torch.cuda.Event | None) -> None:
        """Report that the inputs of the last `get` were used, or will be once `event` occurs."""
        self._uploaded.append(event)

    def close(self) -> None:
        """End the processes."""
        self._batches = iter(())  # the DataLoader ends its processes when nobody refers to it
        if self._pinned:
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaHostUnregister(self._memory.data_ptr())
            self._pinned = False

    def __del__(self) -> None:
        self.close()


class _Place:
    """Type, shape and strides of inputs that lie in a slot."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype, self.shape, self.strides = tensor.dtype, tensor.shape, tensor.stride()

    def view(self, slot: Tensor) -> Tensor:
        """Return the inputs in the slot (bytes,) uint8, without a copy."""
        values = slot[: math.prod(self.shape) * self.dtype.itemsize].view(self.dtype)
        return values.as_strided(self.shape, self.strides)


class _Reading(Dataset[Any]):
    """Data set whose items are the batches of steps; its methods run in the processes."""

    def __init__(self, read: Callable[[int], tuple[Any, Tensor]], slots: Tensor) -> None:
        self.read, self.slots = read, slots

    def __getitem__(self, step: int) -> Any:
        try:
            values, inputs = self.read(step)
        except Exception as error:  # a DataLoader would raise it with a traceback in its message
            return error
        if inputs.nbytes > self.slots.shape[1]:
            return values, inputs.numpy()
        if not torch.ops.aten.is_non_overlapping_and_dense(inputs):
            inputs = inputs.contiguous()
        place = _Place(inputs)
        place.view(self.slots[step % len(self.slots)]).copy_(inputs)
        return values, place


def _unchanged(item: Any) -> Any:
    return item


def _start(_: int) -> None:
    # Ctrl-C reaches the whole process group, but only the training process decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _pin(memory: Tensor) -> bool:
    """Pin memory that other processes share; return False if CUDA refuses, which makes uploads slower."""
    if torch.version.cuda is None:
        return False
    code = torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), memory.nbytes, 0)
    if int(code) != 0:
        log.warning("%.0f MB of memory for batches cannot be pinned (CUDA error %s)", memory.nbytes / 1e6, code)
    return int(code) == 0
