"""The ways a run starts: new, resumed from its own checkpoint, forked from one of another run, or evaluated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.models import networks
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.checkpoint import Checkpoint, CheckpointError
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run
from dmlcore.training import baselines, conditioning, coverings, evaluation, optimisers, projections
from dmlcore.training.build import build, classes_of, device_name, keep_freed_memory, load_data, prepare_device
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import transfer
from dmlcore.training.forks.transfer import Origin
from dmlcore.training.metrics_log import Reporter
from dmlcore.training.state import (
    TrainingProgress,
    TrainingState,
    device_model,
    is_kept,
    restore,
    restore_weights,
    tensors,
)

log = logging.getLogger(__name__)


@dataclass
class Start:
    """What a training run goes on with: its state, the rows to write before the next step, behind `offset` bytes of
    metrics.jsonl, and in words what rounds differently from here on."""

    state: TrainingState
    rows: list[Row] = field(default_factory=list)
    offset: int = 0
    moved: str = ""


def start(run: Run, dataset: Dataset | None, report: Reporter) -> Start:
    """As a run has to: resumed if it has a checkpoint, from its origin if it is a fork, else new.

    Raises CheckpointError, TrainingError, DataError, ModelError.
    """
    if saved := newest(run, _cut(run)):
        return resumed(run, saved, dataset, report)
    if origin := transfer.origin(run):
        return forked(run, origin, dataset, report)
    return new(run, dataset, report)


def new(run: Run, dataset: Dataset | None, report: Reporter) -> Start:
    """From the seed; its rows say what raw inputs and the untrained network score."""
    start, _ = _prepared(run, dataset, report)
    _open_features(start.state, report)
    report(0, "scoring raw inputs and the untrained network")
    start.rows = baselines.first_rows(start.state)
    if conditioning.is_due(start.state):
        start.rows += conditioning.begin(start.state)
    start.rows += evaluation.validate(start.state)
    projections.begin(start.state)
    if coverings.is_due(start.state, 0):
        start.rows.append(coverings.row(start.state))
    return start


def resumed(run: Run, saved: Checkpoint, dataset: Dataset | None, report: Reporter) -> Start:
    """From its own checkpoint, bit for bit as if it had not stopped."""
    step = saved.facts["step"]
    start, _ = _prepared(run, dataset, report, saved, step)
    # A run that began before there were fused kernels says nothing about them.
    restore(start.state, saved.tensors, fused=saved.facts.get("fused", False))
    start.state.progress = TrainingProgress.of(saved.facts)
    start.offset = saved.facts["metrics_offset"]
    _open_features(start.state, report)
    if is_kept(run.spec.schedule, step) and step not in run_directory.kept(run.path):
        checkpoint.keep(run.path, step, saved.path)  # killed between the two
    return start


def forked(run: Run, origin: Origin, dataset: Dataset | None, report: Reporter) -> Start:
    """From what fits of its parent; if another question is asked from here on the best weights are chosen anew."""
    start, data = _prepared(run, dataset, report, origin.saved)
    state, parent = start.state, run.spec.fork.run
    report(0, f"going on from step {origin.saved.facts['step']} of {parent}")
    transferred = transfer.transfer(state, origin, classes_of(data))
    state.progress = TrainingProgress.of(transferred.facts)
    if state.progress.conditioned and not state.neighbourhood:
        conditioning.find(state)
    start.rows = [row for row in origin.rows if transferred.whole or row["kind"] == "scores"]
    words = {"changed": transferred.changed, "carried": transferred.carried, "anew": transferred.reset}
    start.rows.append({"kind": "fork", "step": state.progress.step, "run": parent, **words})
    if not transferred.whole:
        start.rows += evaluation.validate(state)
        projections.begin(state, place=not transferred.has_proxies)
    return start


def evaluated(
    run: Run,
    saved: Checkpoint | None = None,
    *,
    dataset: Dataset | None = None,
    device: torch.device | None = None,
) -> TrainingState:
    """The weights of a checkpoint, by default the newest, and its best ones; no moments, as nothing is trained.

    device: else that of the spec, made repeatable for this process. Raises TrainingError where there is no checkpoint,
    CheckpointError, DataError, ModelError.
    """
    saved = saved or newest(run)
    if saved is None:
        raise TrainingError(f"{run.id} has no checkpoint yet, so there is nothing to evaluate")
    device = device or prepare_device(run.spec.device, _threads(saved, run.spec))
    state = build(run.spec, dataset or load_data(run.spec), device, start=False)
    restore_weights(state, saved.tensors)
    state.progress = TrainingProgress.of(saved.facts)
    return state


def hand_out(state: TrainingState) -> None:
    """Let the other processes of a run have its state, and let the batch norm of this one be that of all."""
    if processes.shares_work():
        facts = {"spec": state.spec.to_json(), "progress": asdict(state.progress), "threads": torch.get_num_threads()}
        facts |= {"fused": optimisers.is_fused(state.optimiser)}
        processes.broadcast(checkpoint.pack(tensors(state), facts))
        processes.synchronise(state.model)


def joined(dataset: Dataset | None = None) -> TrainingState:
    """The state that the first process hands out."""
    given, facts = checkpoint.unpack(processes.broadcast())
    spec = RunSpec.from_json(facts["spec"])
    device = prepare_device(spec.device, facts["threads"])
    if device.type == "cpu":
        keep_freed_memory()
    state = build(spec, dataset or load_data(spec), device, start=False)
    restore(state, given, fused=facts["fused"])
    state.progress = TrainingProgress.of(facts["progress"])
    processes.synchronise(state.model)
    return state


def newest(run: Run, refuse: Callable[[Checkpoint], str] = lambda _: "") -> Checkpoint | None:
    """The newest good checkpoint; refused if the spec was edited since, or if there was one and it is gone."""
    saved = checkpoint.load(run.path, refuse)
    if saved is None:
        if step := run.state().step:
            raise CheckpointError(f"{run.id} had reached step {step}, but both checkpoints are gone; start a new run")
        return None
    if changes := "; ".join(RunSpec.from_json(saved.facts["spec"]).differences(run.spec)):
        raise TrainingError(f"spec.json was edited under its checkpoint (trained | now): {changes}. Undo it")
    return saved


def _prepared(
    run: Run, dataset: Dataset | None, report: Reporter, before: Checkpoint | None = None, step: int = 0
) -> tuple[Start, Dataset]:
    """A new state on the device of the spec, and its data set as it was read; before: what it goes on from."""
    device = prepare_device(run.spec.device, _threads(before, run.spec))
    if device.type == "cpu":
        keep_freed_memory()
    report(step, "reading the data", device=device_name(device))
    moved = _moved(before, device) if before else ""
    if moved:
        log.warning(moved)
    data = dataset or load_data(run.spec)
    return Start(build(run.spec, data, device, start=before is None), moved=moved), data


def _open_features(state: TrainingState, report: Reporter) -> None:
    """Compute the maps of a frozen backbone where they are not kept; a fork has its weights later, and its parent's."""
    if state.data.features is None:
        return
    if not state.spec.model.start:
        log.warning("the backbone is frozen as it starts, at random; set model.start to begin with weights")
    report(state.progress.step, "computing the feature maps of the frozen backbone, where they are not kept yet")
    state.data.features.open()


def _cut(run: Run) -> Callable[[Checkpoint], str]:
    """Whether metrics.jsonl lacks rows that a checkpoint counts on, in words: going on from it would lose them."""
    path = run.path / run_directory.METRICS
    size = path.stat().st_size if path.exists() else 0

    def words(saved: Checkpoint) -> str:
        step, counted = saved.facts["step"], saved.facts.get("metrics_offset", 0)
        if size >= counted:
            return ""
        return (
            f"metrics.jsonl has {size:,} bytes and was cut: {saved.path.name} of step {step:,} counts {counted:,}. Put "
            f"the file back as it was, or go on in a fork: python -m dmlcore fork {run.id} --step {step}"
        )

    return words


def _moved(saved: Checkpoint, device: torch.device) -> str:
    """What differs from where the checkpoint was made and rounds differently, as a sentence; "" if nothing does."""
    now = {"torch": str(torch.__version__), "device": device_model(device), "processes": processes.size()}
    changes = [
        f"{name} {saved.facts[name]} before, {value} now"
        for name, value in now.items()
        if saved.facts.get(name, value) != value  # checkpoints of earlier releases do not name the device
    ]
    return f"went on, but not bit for bit as it would have: {', '.join(changes)}" if changes else ""


def _threads(saved: Checkpoint | None, spec: RunSpec) -> int:
    """The number the run began with, as another one rounds differently; a small network gains nothing from a second."""
    if saved and saved.facts.get("processes", 1) == processes.size():
        return int(saved.facts["threads"])
    return 1 if spec.model.name in networks.TAKES else max(1, torch.get_num_threads() // processes.local_size())
