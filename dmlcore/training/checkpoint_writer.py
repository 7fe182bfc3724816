"""Writer of checkpoints, which writes synchronously on a CPU and in a background thread on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from dmlcore import processes
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.checkpoint import Packed, TensorLayout
from dmlcore.storage.runs import Run
from dmlcore.training import optimisers
from dmlcore.training.state import TrainingState, device_model, is_kept, progress_facts, tensors

# prefixes of tensors that training replaces as a whole and never modifies in place, so that no copy is needed
REPLACED = ("best.", "table.")


def save(run: Run, state: TrainingState, metrics_offset: int) -> None:
    """Write a checkpoint.

    `metrics_offset` is the length of metrics.jsonl in bytes; all rows before this offset must be on disk.
    """
    write(run, tensors(state), facts(run, state, metrics_offset))


def facts(run: Run, state: TrainingState, metrics_offset: int) -> dict[str, Any]:
    """Return the entries of a checkpoint other than its tensors, such as progress, spec and number of threads."""
    known = progress_facts(state) | {"metrics_offset": metrics_offset, "threads": torch.get_num_threads()}
    known |= {"torch": str(torch.__version__), "device": device_model(state.device)}
    known |= {"spec": run.spec.to_json(), "fused": optimisers.is_fused(state.optimiser), "mode": state.mode}
    return known | {"processes": processes.size()}


def write(run: Run, contents: Mapping[str, Tensor] | Packed, facts: Mapping[str, Any]) -> None:
    """Write the newest checkpoint, and also copy it permanently if `is_kept` returns True for its step."""
    checkpoint.save(run.path, contents, facts)
    if is_kept(run.spec.schedule, facts["step"]):
        checkpoint.keep(run.path, facts["step"], run.path / run_directory.LAST)


class CheckpointWriter:
    """Context manager that writes the checkpoints of a run; the caller must hold the run's lock.

    On a GPU, `save` copies all tensors into one block on the device, and a separate stream copies the block into pinned
    main memory. A thread waits for it, then hashes and writes it in a few calls that do not hold the GIL.
    Later steps do not affect the copy, so the file holds exactly the state at the time of the call. An error of the
    thread (such as a full disk) is raised by the next `save`, by `wait`, or on exit.
    """

    def __init__(self, run: Run, device: torch.device) -> None:
        self._run, self._device = run, device
        self._thread = ThreadPoolExecutor(1, "checkpoints") if device.type == "cuda" else None
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._block = _DeviceCopy(TensorLayout.of({}), device)
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

    def save(self, state: TrainingState, sync_metrics: Callable[[], int]) -> None:
        """Write a checkpoint of the current state.

        Args:
            state: The state to write.
            sync_metrics: Function that writes all metrics rows to disk and returns the length of metrics.jsonl in
                bytes. It waits for the device, so it is called after the copies on the device have been launched.
        """
        if self._thread is None or self._stream is None:
            save(self._run, state, sync_metrics())
            return
        contents = tensors(state)
        self.wait()
        layout = TensorLayout.of(contents)
        if layout != self._block.layout:
            self._block = _DeviceCopy(layout, self._device)
        ready, copied = torch.cuda.Event(), torch.cuda.Event()
        self._block.fill(contents)
        ready.record()
        # in the stream of the training steps, this copy would delay the next steps
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(ready)
            self._block.host.copy_(self._block.device, non_blocking=True)
            copied.record()
        others = {
            name: tensor if name.startswith(REPLACED) else tensor.clone()
            for name, tensor in contents.items()
            if tensor.device.type != "cuda"
        }
        known = facts(self._run, state, sync_metrics())
        self._under_way = self._thread.submit(self._write, self._block, others, known, copied)

    def _write(
        self, block: _DeviceCopy, others: Mapping[str, Tensor], known: Mapping[str, Any], copied: torch.cuda.Event
    ) -> None:
        copied.synchronize()
        for name, place in block.layout.views(block.host, others).items():
            place.copy_(others[name])
        write(self._run, Packed(block.layout, block.host), known)


class _DeviceCopy:
    """Memory for the tensors of a checkpoint in the order of its file, on the device and pinned in main memory.

    It is kept from one checkpoint to the next, because pinned memory and a thousand views take long to make.
    """

    def __init__(self, layout: TensorLayout, device: torch.device) -> None:
        self.layout = layout
        self.device = torch.empty(layout.size, dtype=torch.uint8, device=device)
        self.host = torch.empty(layout.size, dtype=torch.uint8)
        if device.type == "cuda":
            self.host = self.host.pin_memory()
        self._places: dict[str, Tensor] = {}

    def fill(self, contents: Mapping[str, Tensor]) -> None:
        """Copy the tensors that are on the device into the block, with a few kernels."""
        here = {name: tensor.detach() for name, tensor in contents.items() if tensor.device.type == "cuda"}
        self._places = self._places or self.layout.views(self.device, contents)
        # One kernel copies many tensors if they have one type, and memory in the same order as in the file.
        alike: dict[tuple[torch.dtype, bool], list[str]] = {}
        for name, tensor in here.items():
            alike.setdefault((tensor.dtype, tensor.is_contiguous()), []).append(name)
        for names in alike.values():
            torch._foreach_copy_([self._places[name] for name in names], [here[name] for name in names])
