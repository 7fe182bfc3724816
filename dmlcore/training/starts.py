"""Ways to start a run: new, resumed from its checkpoint, forked from another run, or loaded for evaluation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.models import networks
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint, run_directory, validation_frames
from dmlcore.storage.checkpoint import Checkpoint, CheckpointError
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run
from dmlcore.training import baselines, batches, coverings, evaluation, optimisers
from dmlcore.training.build import build, classes_of, device_name, keep_freed_memory, load_data, prepare_device
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import transfer
from dmlcore.training.forks.transfer import Origin
from dmlcore.training.frame_recorder import FrameRecorder
from dmlcore.training.metrics_log import Reporter
from dmlcore.training.state import (
    TrainingState,
    device_model,
    is_kept,
    progress_facts,
    restore,
    restore_weights,
    tensors,
)

log = logging.getLogger(__name__)


@dataclass
class Start:
    """Starting point of a training run.

    Attributes:
        state: The training state.
        rows: Rows to write to metrics.jsonl before the next step.
        offset: Number of bytes of metrics.jsonl to keep; `rows` are written after them.
        moved: Sentence that names changes since the checkpoint that affect rounding, such as another device or version
            of torch, or "".
    """

    state: TrainingState
    rows: list[Row] = field(default_factory=list)
    offset: int = 0
    moved: str = ""


def start(run: Run, dataset: Dataset | None, report: Reporter) -> Start:
    """Resume a run that has a checkpoint, start a fork from its parent, or initialise a new run from its seed.

    Raises:
        CheckpointError: If a checkpoint cannot be used.
        TrainingError: If the spec cannot be trained, or was edited after the checkpoint was written.
        DataError: If the data cannot be read.
        ModelError: If the network cannot be built.
    """
    if saved := load_newest(run, _truncation_check(run)):
        return resume(run, saved, dataset, report)
    if origin := transfer.origin(run):
        return start_fork(run, origin, dataset, report)
    return start_new(run, dataset, report)


def start_new(run: Run, dataset: Dataset | None, report: Reporter) -> Start:
    """Initialise a run from its seed; its first rows hold the scores of raw inputs and of the untrained network."""
    start, _ = _prepare(run, dataset, report)
    _open_features(start.state, report)
    report(0, "scoring raw inputs and the untrained network")
    start.rows = baselines.first_rows(start.state)
    for method in start.state.methods:
        start.rows += method.begin(start.state)
    start.rows += evaluation.validate(start.state)
    if coverings.is_due(start.state, 0):
        start.rows.append(coverings.row(start.state))
    return start


def resume(run: Run, saved: Checkpoint, dataset: Dataset | None, report: Reporter) -> Start:
    """Restore a run from its own checkpoint; it then continues bit for bit like an uninterrupted run."""
    step = saved.facts["step"]
    start, _ = _prepare(run, dataset, report, saved, step)
    # Checkpoints from releases without fused kernels do not have this entry.
    restore(start.state, saved.tensors, saved.facts, fused=saved.facts.get("fused", False))
    start.offset = saved.facts["metrics_offset"]
    _open_features(start.state, report)
    if is_kept(run.spec.schedule, step) and step not in run_directory.kept_checkpoints(run.path):
        # needed if the process was killed after writing this checkpoint and before copying it
        checkpoint.keep(run.path, step, saved.path)
    return start


def start_fork(run: Run, origin: Origin, dataset: Dataset | None, report: Reporter) -> Start:
    """Initialise a fork from the matching tensors of its parent; reset the best weights if the objective changed."""
    start, data = _prepare(run, dataset, report, origin.saved)
    state, parent = start.state, run.spec.fork.run
    report(0, f"continuing from step {origin.saved.facts['step']} of {parent}")
    whole, words = transfer.transfer(state, origin, classes_of(data))
    start.rows = [row for row in origin.rows if whole or row["kind"] == "scores"]
    start.rows.append({"kind": "fork", "step": state.progress.step, "run": parent, **words})
    if not whole:
        start.rows += evaluation.validate(state)
    return start


def load_for_evaluation(
    run: Run,
    saved: Checkpoint | None = None,
    *,
    dataset: Dataset | None = None,
    device: torch.device | None = None,
) -> TrainingState:
    """Load a checkpoint for evaluation, with current and best weights but without optimiser moments.

    Args:
        run: Run that the checkpoint belongs to.
        saved: Checkpoint to load; the newest one by default.
        dataset: Data set to use instead of the one that the spec names.
        device: Device to use; by default the device of the spec, with deterministic arithmetic in the whole process.

    Raises:
        TrainingError: If there is no checkpoint.
        CheckpointError, DataError, ModelError: If checkpoint, data or network cannot be loaded.
    """
    saved = saved or load_newest(run)
    if saved is None:
        raise TrainingError(f"{run.id} has no checkpoint yet, so there is nothing to evaluate")
    device = device or prepare_device(run.spec.device, _threads(saved, run.spec))
    state = build(run.spec, dataset or load_data(run.spec), device, start=False)
    restore_weights(state, saved.tensors, saved.facts)
    return state


def broadcast_state(state: TrainingState) -> None:
    """Broadcast the state from rank 0 to the other processes, and synchronise batch norm across all processes."""
    if processes.shares_work():
        facts = {"spec": state.spec.to_json(), "progress": progress_facts(state), "threads": torch.get_num_threads()}
        facts |= {"fused": optimisers.is_fused(state.optimiser)}
        processes.broadcast(checkpoint.pack(tensors(state), facts))
        processes.synchronise(state.model)


def receive_state(dataset: Dataset | None = None) -> TrainingState:
    """Receive the state that rank 0 broadcasts and return it; to be called by all other ranks."""
    given, facts = checkpoint.unpack(processes.broadcast())
    spec = RunSpec.from_json(facts["spec"])
    device = prepare_device(spec.device, facts["threads"])
    if device.type == "cpu":
        keep_freed_memory()
    state = build(spec, dataset or load_data(spec), device, start=False)
    restore(state, given, facts["progress"], fused=facts["fused"])
    processes.synchronise(state.model)
    return state


def load_newest(run: Run, refuse: Callable[[Checkpoint], str] = lambda _: "") -> Checkpoint | None:
    """Return the newest intact checkpoint of a run, or None if no checkpoint has been written yet.

    Args:
        run: Run to load from.
        refuse: Function that returns the reason why a checkpoint cannot be used, or "" if it can.

    Raises:
        TrainingError: If spec.json was edited after the checkpoint was written.
        CheckpointError: If both checkpoints were deleted or are damaged.
    """
    saved = checkpoint.load(run.path, refuse)
    if saved is None:
        if step := run.state().step:
            raise CheckpointError(
                f"{run.id} had reached step {step}, but both checkpoints are missing; start a new run"
            )
        return None
    if changes := "; ".join(RunSpec.from_json(saved.facts["spec"]).differences(run.spec)):
        raise TrainingError(f"spec.json differs from its checkpoint (checkpoint | now): {changes}. Undo the edit")
    return saved


def _prepare(
    run: Run, dataset: Dataset | None, report: Reporter, before: Checkpoint | None = None, step: int = 0
) -> tuple[Start, Dataset]:
    """Prepare the device, read the data and build a state; return the start, and the unedited data set.

    Args:
        run: Run to start. If it is a fork, the state has the training split as edited by the fork.
        dataset: Data set to use instead of the one that the spec names.
        report: Callback for progress messages.
        before: Checkpoint that the state will be restored from, if any.
        step: Step to report with progress messages.
    """
    device = prepare_device(run.spec.device, _threads(before, run.spec))
    if device.type == "cpu":
        keep_freed_memory()
    report(step, "reading the data", device=device_name(device))
    moved = _describe_changes(before, device) if before else ""
    if moved:
        log.warning(moved)
    data = dataset or load_data(run.spec)
    same_device = before is not None and before.facts.get("device") == device_model(device)
    mode = before.facts.get("mode", "eager") if before is not None and same_device else ""
    state = build(run.spec, data, device, start=before is None, mode=mode)
    log.info("the network is launched in mode %s", state.mode)
    _record_frames(run, state, step)
    return Start(state, moved=moved), data


def _record_frames(run: Run, state: TrainingState, step: int) -> None:
    """Record a frame at each validation after `step`; remove later frames, which a resumed run writes again."""
    validation_frames.remove_after(run.path, step)
    split = run.spec.schedule.monitor_part
    if len(state.data.splits[split]):
        rows = batches.rows_of(state.data, split)
        state.record_frame = FrameRecorder(run.path, run.spec.schedule, state.data, *rows, run.spec.seed)


def _open_features(state: TrainingState, report: Reporter) -> None:
    """Compute the feature maps of a frozen backbone unless the cache has them.

    A fork does not call this, because it loads its weights later and its parent has already computed the maps.
    """
    if state.data.features is None:
        return
    if not state.spec.model.start:
        log.warning("the backbone is frozen with random weights; set model.start to use pretrained weights")
    report(state.progress.step, "computing the feature maps of the frozen backbone that are not cached yet")
    state.data.features.open()


def _truncation_check(run: Run) -> Callable[[Checkpoint], str]:
    """Return a function that checks a checkpoint against the run's metrics.jsonl.

    It returns "" if the run can be resumed from the checkpoint. If metrics.jsonl is shorter than when the checkpoint
    was written, so that rows would be missing, it returns a message that explains the problem.
    """
    path = run.path / run_directory.METRICS
    size = path.stat().st_size if path.exists() else 0

    def words(saved: Checkpoint) -> str:
        step, counted = saved.facts["step"], saved.facts.get("metrics_offset", 0)
        if size >= counted:
            return ""
        return (
            f"metrics.jsonl has {size:,} bytes and was truncated: {saved.path.name} of step {step:,} counts "
            f"{counted:,}. Put "
            f"the file back as it was, or go on in a fork: python -m dmlcore fork {run.id} --step {step}"
        )

    return words


def _describe_changes(saved: Checkpoint, device: torch.device) -> str:
    """Return a sentence that lists the changes since the checkpoint that affect rounding; "" if there are none."""
    now = {"torch": str(torch.__version__), "device": device_model(device), "processes": processes.size()}
    changes = [
        f"{name} {saved.facts[name]} before, {value} now"
        for name, value in now.items()
        if saved.facts.get(name, value) != value  # checkpoints of earlier releases do not store the device
    ]
    return (
        (f"resumed, but results are not bit-identical to an uninterrupted run: {', '.join(changes)}") if changes else ""
    )


def _threads(saved: Checkpoint | None, spec: RunSpec) -> int:
    """Return the number of CPU threads.

    It is that of the checkpoint, if any, because results round differently with another number. A new run of a small
    network uses one thread, because a second thread does not make it faster.
    """
    if saved and saved.facts.get("processes", 1) == processes.size():
        return int(saved.facts["threads"])
    return 1 if spec.model.name in networks.TAKES else max(1, torch.get_num_threads() // processes.local_size())
