"""Writer of checkpoints, which writes synchronously on a CPU and in a background thread on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from dmlcore.storage.runs import Run
from dmlcore.training import state as training_state
from dmlcore.training.state import TrainingState

# prefixes of tensors that training replaces as a whole and never modifies in place, so that no copy is needed
REPLACED = ("best.", "best_loss.", "anchor.", "candidate.", "table.")


class CheckpointWriter:
    """Context manager that writes the checkpoints of a run; the caller must hold the run's lock.

    On a GPU, `save` copies the tensors on the device, and a thread transfers the copy to main memory and writes it.
    Later steps do not affect the copy, so the file holds exactly the state at the time of the call. An error of the
    thread (such as a full disk) is raised by the next `save`, by `wait`, or on exit.
    """

    def __init__(self, run: Run, device: torch.device) -> None:
        self._run, self._device = run, device
        self._thread = ThreadPoolExecutor(1, "checkpoints") if device.type == "cuda" else None
        self._under_way: Future[None] | None = None

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread is not None:
            self._thread.shutdown()  # the next holder of the lock must not find an active writer thread
        if kind is None:
            self.wait()

    @property
    def busy(self) -> bool:
        """True while a checkpoint is being written. The training loop then postpones an optional checkpoint."""
        return self._under_way is not None and not self._under_way.done()

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk; raise OSError if writing it failed."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def save(self, state: TrainingState, metrics_offset: int) -> None:
        """Write a checkpoint of the current state.

        `metrics_offset` is the length of metrics.jsonl in bytes; all rows before this offset must be on disk.
        """
        facts = training_state.facts(self._run, state, metrics_offset)
        if self._thread is None:
            training_state.write(self._run, training_state.tensors(state), facts)
            return
        self.wait()
        copies = {
            name: tensor if name.startswith(REPLACED) else tensor.detach().clone()
            for name, tensor in training_state.tensors(state).items()
        }
        copied = torch.cuda.Event()
        copied.record()
        self._under_way = self._thread.submit(self._write, copies, facts, copied)

    def _write(self, copies: Mapping[str, Tensor], facts: Mapping[str, Any], copied: torch.cuda.Event) -> None:
        # in the stream of the training steps, the copy would delay the next steps
        copy_stream = torch.cuda.Stream(self._device)
        copy_stream.wait_event(copied)
        with torch.cuda.stream(copy_stream):
            tensors = {name: tensor.cpu() for name, tensor in copies.items()}
        training_state.write(self._run, tensors, facts)
