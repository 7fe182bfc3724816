"""THE loop: everything that happens in a training, in the order it happens.

Everything random is a function of (seed, step), so a checkpoint needs only weights, optimiser, step and the length of
metrics.jsonl, and a run that was killed at any point ends exactly like one that was not.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch

from dmlcore.data import DataError, Dataset
from dmlcore.losses import TripletLoss
from dmlcore.models.networks import ModelError, TokenNetwork
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, checkpoint, run_directory
from dmlcore.storage.checkpoint import Checkpoint, CheckpointError
from dmlcore.storage.runs import MetricsWriter, Run, RunError, RunState, scores
from dmlcore.training import baselines, batch_statistics, evaluation, final_analyses, optimisers
from dmlcore.training.build import (
    build,
    classes_of,
    device_model,
    device_name,
    keep_freed_memory,
    load_data,
    prepare_device,
)
from dmlcore.training.errors import StepError, TrainingError, advice
from dmlcore.training.forks import transfer
from dmlcore.training.forks.transfer import Origin
from dmlcore.training.metrics_log import MetricsLog, Reporter
from dmlcore.training.objective import seed_of
from dmlcore.training.state import TrainingState

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingProgress:
    """Where a run stands: what a checkpoint records beside the tensors."""

    step: int = 0
    best_score: float | None = None  # of `schedule.monitor`
    best_step: int = 0
    stale: int = 0  # validations since the best
    plateau: int = 0  # validations since the best or since the learning rate was last lowered
    halvings: int = 0  # times it was lowered, by schedule.plateau_factor

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> TrainingProgress:
        """What a checkpoint recorded; one of an earlier release lacks what was added later."""
        later = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**later | {"step": facts["step"]})


def train(
    run: Run,
    *,
    dataset: Dataset | None = None,
    stop: Callable[[], bool] = lambda: False,
    before_done: Callable[[Run], object] = lambda run: None,
) -> RunState:
    """Train or resume a run whose lock this process holds; return its final state.

    stop() is asked after each step, as is the run's cancel file. dataset: in place of the one the spec names.
    before_done: called after the test, while a kill still leaves a run that a resume completes. Errors do not leave
    this function: they become the state "failed" with a message, the unexpected ones a traceback in the log.
    """
    report = Reporter(run)
    try:
        run.begin()
        return _train(run, dataset, report, lambda: stop() or run.cancel_requested(), before_done)
    except StepError as error:
        atomic_files.replace_json(run.path / "failure.json", {"step": error.step, "indices": error.indices})
        message = str(error)
    except (TrainingError, CheckpointError, DataError, ModelError, RunError) as error:
        message = str(error)
    except Exception as error:
        message = advice(error, run.spec)
        if not message:
            log.exception("unexpected error")
            message = f"unexpected {type(error).__name__}: {error}"
    log.error("failed: %s", message)
    return report(report.step, message, state="failed")


def _train(
    run: Run,
    dataset: Dataset | None,
    report: Reporter,
    stop: Callable[[], bool],
    before_done: Callable[[Run], object],
) -> RunState:
    spec = run.spec

    # Where it left off, on what it runs, what is trained.
    saved = _load(run, _cut(run))
    forked = None if saved else transfer.origin(run)
    before = saved or (forked.saved if forked else None)
    device = prepare_device(spec.device, _threads(before, run.spec))
    if device.type == "cpu":
        keep_freed_memory()
    report(saved.facts["step"] if saved else 0, "reading the data", device=device_name(device))
    moved = _moved(before, device) if before else ""
    if moved:
        log.warning(moved)
    data = dataset or load_data(spec)
    state = build(spec, data, device, start=before is None)
    progress = _restore(state, saved) if saved else TrainingProgress()
    if state.data.features is not None and not forked:  # a fork has its weights later, and its parent's maps
        if not spec.model.start:
            log.warning("the backbone is frozen as it starts, at random; set model.start to begin with weights")
        report(progress.step, "computing the feature maps of the frozen backbone, where they are not kept yet")
        state.data.features.open()
    log.info("%s from step %d to %d", device_name(device), progress.step, spec.schedule.steps)

    with MetricsWriter(run, saved.facts["metrics_offset"] if saved else 0) as file:
        metrics = MetricsLog(file, state.finite_check.wait, wait=not state.finite_check.deferred)
        # Before the first step: what the inputs themselves and the untrained network score.
        if forked:
            report(0, f"going on from step {forked.saved.facts['step']} of {spec.fork.run}")
            progress = _begin_fork(state, forked, classes_of(data), metrics)
            _save(run, state, progress, metrics)
        elif not saved:
            report(0, "scoring raw inputs and the untrained network")
            progress = _test_untrained(state, metrics)
            _save(run, state, progress, metrics)
        elif _stays(spec, progress.step) and progress.step not in run_directory.kept(run.path):
            checkpoint.keep(run.path, progress.step, saved.path)  # killed between the two
        if spec.fork.run:  # its own checkpoint is there
            for name in (run_directory.ORIGIN, run_directory.ORIGIN_ROWS):
                (run.path / name).unlink(missing_ok=True)
        saved_step = progress.step

        state.model.train()
        dropout = seed_of(spec.seed, "dropout") >> 1
        while progress.step < spec.schedule.steps and not _exhausted(spec, progress):
            step = progress.step + 1

            # A batch, forward, backward, the optimiser's step: Workbench.step. Dropout draws from torch's generator.
            torch.manual_seed(dropout + step)
            loss = state.step(step)

            # What happened, and whether it is time to measure, validate, save or stop.
            progress = replace(progress, step=step)
            metrics.append({"kind": "step", "step": step, "loss": loss} | state.loss.measured())
            if step % spec.schedule.measure_every == 0:
                metrics.append({"kind": "measure", "step": step} | _measure(state))
            if step % spec.schedule.validate_every == 0 or step == spec.schedule.steps:
                progress = _validate(state, progress, metrics)
            stopping = stop()
            if step % spec.schedule.checkpoint_every == 0 or _stays(spec, step) or stopping:
                _save(run, state, progress, metrics)
                saved_step = step
            report(step, "training")
            if stopping:
                log.info("stopped after step %d as asked", step)
                return report(step, f"stopped after step {step}; resume goes on from there", state="cancelled")

        # The end: the best weights by validation, or the last ones, meet the test part.
        if saved_step != progress.step:
            _save(run, state, progress, metrics)
        if spec.schedule.keep_every and progress.step not in run_directory.kept(run.path):
            checkpoint.keep(run.path, progress.step, run.path / run_directory.LAST)
        report(progress.step, "testing")
        after = _test(run, state, progress, metrics)
        metrics.sync()
        untrained = scores(run.metrics()[0]).get("untrained", {}).get("map_at_r")
        message = f"test MAP@R {_percent(untrained)} → {_percent(after)}"
        message += f"; it {moved}" if moved else ""
        before_done(run)
        log.info("done: %s", message)
        return report(progress.step, message, state="done")


def evaluate(run: Run, *, dataset: Dataset | None = None) -> float | None:
    """Test the best weights of the newest checkpoint of a run whose lock this process holds; return MAP@R.

    Writes the embeddings, and a scores row unless the very same is there. Raises CheckpointError, TrainingError, ...
    """
    saved = _load(run)
    if saved is None:
        raise TrainingError(f"{run.id} has no checkpoint yet, so there is nothing to evaluate")
    device = prepare_device(run.spec.device, _threads(saved, run.spec))
    state = build(run.spec, dataset or load_data(run.spec), device, start=False)
    progress = _restore(state, saved)
    with MetricsWriter(run, run.metrics()[1]) as file:
        return _test(run, state, progress, MetricsLog(file, state.finite_check.wait, wait=True))


def _measure(state: TrainingState) -> dict[str, Any]:
    """What the last batch looked like, the norm of its gradient, the learning rates it was made with."""
    assert state.seen is not None
    metric = state.loss.metric
    triplets = metric if isinstance(metric, TripletLoss) else None
    # Only the energy of ranking is d_ap - d_an, which the window of the share of active triplets is about.
    clamp = (triplets.margin, triplets.m2) if triplets and triplets.formula.name == "ranking" else None
    statistics = batch_statistics.measure(*state.seen, clamp, loss=triplets)
    return statistics | {"gradient_norm": state.gradient_norm} | optimisers.rates(state.optimiser)


def _test_untrained(state: TrainingState, metrics: MetricsLog) -> TrainingProgress:
    """Score raw inputs and untrained network, and validate."""
    for row in baselines.first_rows(state):
        metrics.append(row)
    return _validate(state, TrainingProgress(), metrics)


def _begin_fork(state: TrainingState, parent: Origin, classes: int, metrics: MetricsLog) -> TrainingProgress:
    """Carry over what fits, note it, and choose the best weights anew if another question is asked from here on."""
    transferred = transfer.transfer(state, parent, classes)
    progress = TrainingProgress.of(transferred.facts)
    state.lowered = progress.halvings
    for row in parent.rows:
        if transferred.whole or row["kind"] == "scores":
            metrics.append(row)
    words = {"changed": transferred.changed, "carried": transferred.carried, "anew": transferred.reset}
    metrics.append({"kind": "fork", "step": progress.step, "run": state.spec.fork.run, **words})
    return progress if transferred.whole else _validate(state, progress, metrics)


def _validate(state: TrainingState, progress: TrainingProgress, metrics: MetricsLog) -> TrainingProgress:
    """Score the monitored part, if there is one, and keep the weights if they are the best so far."""
    metrics.flush()
    schedule = state.spec.schedule
    part = schedule.monitor_part
    if not len(state.data.parts[part]):
        return progress
    embeddings = evaluation.embed(state.embedder, state.data, part, state.device)
    scores_of_part = evaluation.score(embeddings, state.data, part, (1,))
    if isinstance(state.model, TokenNetwork):
        overlap = final_analyses.token_overlap(state.model, state.data, part, state.device)
        metrics.append({"kind": "validation_overlap", "step": progress.step} | overlap)
    scores = {"map_at_r": scores_of_part.map_at_r, "recall_at_1": scores_of_part.recall_at[1]}
    part_field = {"part": part} if part != "validation" else {}
    metrics.append({"kind": "validation", "step": progress.step, **part_field, **scores})
    score = scores[schedule.monitor]
    if score is None:  # no class has two samples: nothing to go by
        return progress
    if not state.pooling_ready:  # still average pooling: the best of these would be another network's
        return progress
    if progress.best_score is not None and score <= progress.best_score:
        return _slower(state, replace(progress, stale=progress.stale + 1, plateau=progress.plateau + 1))
    state.keep_best()
    return replace(progress, best_score=score, best_step=progress.step, stale=0, plateau=0)


def _slower(state: TrainingState, progress: TrainingProgress) -> TrainingProgress:
    """Lower the learning rate once a plateau has lasted as long as the spec allows."""
    if not 0 < state.spec.schedule.plateau <= progress.plateau:
        return progress
    state.lowered = progress.halvings + 1
    return replace(progress, plateau=0, halvings=state.lowered)


def _test(run: Run, state: TrainingState, progress: TrainingProgress, metrics: MetricsLog) -> float | None:
    """Score the test part with the best weights, write its embeddings; return MAP@R."""
    state.use_best()
    step = progress.best_step if state.best else progress.step
    digest = hashlib.sha256(checkpoint.pack(state.embedder.state_dict(), {})).hexdigest()
    embeddings = evaluation.embed(state.embedder, state.data, "test", state.device)
    evaluated = evaluation.score(embeddings, state.data, "test", state.spec.ks)
    evaluation.write_embeddings(run, digest, embeddings, state.data, "test", evaluated)
    clusters = evaluation.cluster(embeddings, state.data, "test", state.spec.seed)
    known = run.metrics()[0]
    tested = evaluation.row("trained", step, evaluated, clusters, weights=digest)
    for row in (tested, *final_analyses.rows(state.model, state.data, "test", state.device, step)):
        if row not in known:
            metrics.append(row)
    return evaluated.map_at_r


def _save(run: Run, state: TrainingState, progress: TrainingProgress, metrics: MetricsLog) -> None:
    facts = asdict(progress) | {"metrics_offset": metrics.sync(), "threads": torch.get_num_threads()}
    facts |= {"torch": str(torch.__version__), "device": device_model(state.device)}
    facts |= {"spec": run.spec.to_json(), "fused": state.fused}
    checkpoint.save(run.path, state.tensors(), facts)
    if _stays(run.spec, progress.step):
        checkpoint.keep(run.path, progress.step, run.path / run_directory.LAST)


def _stays(spec: RunSpec, step: int) -> bool:
    """Whether the checkpoint of this step is kept: of the first and each keep_every-th; the last one stays too."""
    return spec.schedule.keep_every > 0 and step % spec.schedule.keep_every == 0


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


def _load(run: Run, refuse: Callable[[Checkpoint], str] = lambda _: "") -> Checkpoint | None:
    """The newest good checkpoint; refused if the spec was edited since, or if there was one and it is gone."""
    saved = checkpoint.load(run.path, refuse)
    if saved is None:
        if step := run.state().step:
            raise CheckpointError(f"{run.id} had reached step {step}, but both checkpoints are gone; start a new run")
        return None
    if changes := "; ".join(RunSpec.from_json(saved.facts["spec"]).differences(run.spec)):
        raise TrainingError(f"spec.json was edited under its checkpoint (trained | now): {changes}. Undo it")
    return saved


def _moved(saved: Checkpoint, device: torch.device) -> str:
    """What differs from where the checkpoint was made and rounds differently, as a sentence; "" if nothing does."""
    now = {"torch": str(torch.__version__), "device": device_model(device)}
    changes = [
        f"{name} {saved.facts[name]} before, {value} now"
        for name, value in now.items()
        if saved.facts.get(name, value) != value  # checkpoints of earlier releases do not name the device
    ]
    return f"went on, but not bit for bit as it would have: {', '.join(changes)}" if changes else ""


def _restore(state: TrainingState, saved: Checkpoint) -> TrainingProgress:
    # A run that began before there were fused kernels says nothing about them.
    state.restore(saved.tensors, fused=saved.facts.get("fused", False))
    progress = TrainingProgress.of(saved.facts)
    state.lowered = progress.halvings
    return progress


def _threads(saved: Checkpoint | None, spec: RunSpec) -> int:
    """The number the run began with, as another one rounds differently; an mlp gains nothing from a second thread."""
    if saved:
        return int(saved.facts["threads"])
    return 1 if spec.model.name in ("mlp", "tokens") else torch.get_num_threads()


def _exhausted(spec: RunSpec, progress: TrainingProgress) -> bool:
    return 0 < spec.schedule.patience <= progress.stale


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f} %"
