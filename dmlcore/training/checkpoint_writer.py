"""When a checkpoint is written: at once on a CPU; on a GPU a thread writes it while the training goes on."""

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

REPLACED = ("best.", "best_loss.", "anchor.", "candidate.", "table.")  # whole, never written to: they need no copy


class CheckpointWriter:
    """Writes the checkpoints of a run whose lock is held for as long as this is entered.

    On a GPU the tensors are copied there, in the order of the steps, and a thread brings the copy to main memory and
    writes it: the file is that of the step, byte for byte. An error of it (a full disk) is raised by the next `save`,
    by `wait`, or at the end.
    """

    def __init__(self, run: Run, device: torch.device) -> None:
        self._run, self._device = run, device
        self._thread = ThreadPoolExecutor(1, "checkpoints") if device.type == "cuda" else None
        self._under_way: Future[None] | None = None

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread is not None:
            self._thread.shutdown()  # whoever has the lock next finds nobody writing
        if kind is None:
            self.wait()

    @property
    def busy(self) -> bool:
        """Whether one is still being written: one that only is due then waits for its next turn."""
        return self._under_way is not None and not self._under_way.done()

    def wait(self) -> None:
        """Wait until the last one is on disk; raises OSError."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def save(self, state: TrainingState, metrics_offset: int) -> None:
        """Write the state as it is now; metrics_offset: length of metrics.jsonl, whose rows are durable."""
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
        beside = torch.cuda.Stream(self._device)  # in the stream of the training its next steps would wait
        beside.wait_event(copied)
        with torch.cuda.stream(beside):
            tensors = {name: tensor.cpu() for name, tensor in copies.items()}
        training_state.write(self._run, tensors, facts)
