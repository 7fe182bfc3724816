"""Training loop: all stages of a training run, in order.

`step` runs one training step and `train` a whole run. The initial state comes from the module `starts`, and `state`
defines everything that changes during training. All randomness is a function of (seed, step), so a checkpoint needs
only weights, optimiser, step and the length of metrics.jsonl, and a run that was killed at any point and resumed gives
the same result as an uninterrupted one.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore import pooling, processes
from dmlcore.data import DataError, Dataset
from dmlcore.models.networks import ModelError
from dmlcore.significance.gain import gain
from dmlcore.significance.transductive import mark_transductive
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import atomic_files, checkpoint, run_directory
from dmlcore.storage.checkpoint import CheckpointError
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import MetricsWriter, Run, RunError, RunState, scores
from dmlcore.training import batch_statistics, coverings, evaluation, optimisers, starts
from dmlcore.training.batches import Batch, embed
from dmlcore.training.build import device_name
from dmlcore.training.checkpoint_writer import CheckpointWriter
from dmlcore.training.errors import StepError, TrainingError, advice
from dmlcore.training.metrics_log import MetricsLog, Reporter
from dmlcore.training.objective import seed_of
from dmlcore.training.state import TrainingState, autocast, is_kept

log = logging.getLogger(__name__)


def step(state: TrainingState, number: int, objective: Callable[..., Tensor] | None = None) -> Tensor:
    """Run one training step and return its loss, a scalar on the device.

    The result depends only on (seed, number) and the current state.

    Args:
        state: The training state, modified in place.
        number: Number of the step, from 1.
        objective: Function (embeddings, labels, ...) -> scalar to use instead of `state.loss`.

    Raises:
        StepError: If loss or gradient is not finite; the weights are unchanged. On a GPU, the error is raised later, by
            `state.finite_check.wait`.
    """
    optimiser, clipping = state.optimiser, state.spec.optimiser
    set_learning_rates(state, number)
    begin(state, number)
    batch = state.batches.make(number, lambda indices: embed(state.model, state.data, indices, state.device))

    # Forward pass and loss.
    try:
        loss = _loss(state, number, batch, objective or state.loss)
    except ValueError as error:  # the loss rejects embeddings that are not finite or whose squares overflow
        if state.finite_check is not None:
            state.finite_check.wait()
        raise StepError(str(error), number, batch.indices) from None
    if state.finite_check is None and not torch.isfinite(loss.detach()):
        raise StepError.not_finite("loss", number, batch.indices)

    # Backward pass.
    optimiser.zero_grad()
    loss.backward()
    gradients = gradients_of(optimiser)
    processes.average(gradients)
    for method in state.methods:
        method.after_backward(state)

    # Check for NaN and infinity (on a GPU later), and clip the gradients.
    clips = clipping.clip_norm > 0 or clipping.clip_value > 0
    state.norm = nn.utils.get_total_norm(gradients) if clips else None
    if state.finite_check is not None:
        state.finite_check.note(loss, gradients, number, batch.indices)
    elif not torch.isfinite(_sum(gradients) if state.norm is None else state.norm):
        raise StepError.not_finite("gradient", number, batch.indices)
    if state.norm is not None:
        optimisers.clip(optimiser, clipping, state.norm)

    # Update.
    if state.finite_check is not None:
        state.finite_check.guard(optimiser)
    optimiser.step()
    state.model.after_step()
    for method in state.methods:
        method.after_update(state)
    return loss.detach()


def _loss(state: TrainingState, number: int, batch: Batch, objective: Callable[..., Tensor]) -> Tensor:
    """Compute the loss of a batch: the network in the precision of the spec, the loss in float32.

    With several processes, each embeds its share and gathers the outputs for the whole batch.
    """
    model, samples = state.model, len(batch.labels)
    with autocast(state):
        outputs = state.forward(batch.inputs)
    own = processes.gather(pooling.at_least_float32(outputs), samples)
    shares, pooled = (None if t is None else processes.gather(t, samples) for t in (model.shares, model.pooled))
    if processes.shares_work():  # from here on, all processes compute identical values
        _seed_dropout(state, number)
    embeddings = own
    for method in state.methods:
        embeddings = method.embeddings(state, number, embeddings, batch)
    random = torch.Generator().manual_seed(seed_of(state.spec.seed, "miner", number)) if state.loss.miner else None
    loss = objective(embeddings, batch.labels, shares, batch.tuples, random, pooled)
    for method in state.methods:
        penalty = method.penalty(state, own, batch)
        loss = loss if penalty is None else loss + penalty
    state.last_batch = embeddings.detach(), batch.labels
    return loss


def begin(state: TrainingState, number: int) -> None:
    """Prepare step `number`: set which parameters are trained, and seed the generator for dropout."""
    for parameter in state.frozen_at_first:
        parameter.requires_grad_(number > state.spec.schedule.warm_up)
    for method in state.methods:
        method.before_step(state, number)
    _seed_dropout(state, number, processes.rank())


def set_learning_rates(state: TrainingState, number: int) -> None:
    """Set the learning rates of step `number`, which follow the schedule and the reductions at plateaus."""
    schedule = state.spec.schedule
    factor = decay(schedule, number) * schedule.plateau_factor**state.progress.halvings
    for group in state.optimiser.param_groups:
        group["lr"] = group["base_lr"] * factor


def _seed_dropout(state: TrainingState, number: int, rank: int = 0) -> None:
    """Seed torch's default generator, from which dropout draws; each process (rank) gets its own random sequence."""
    seed = (seed_of(state.spec.seed, "dropout") >> 1) + number + (rank << 32)
    # torch.manual_seed would also record a stack trace for devices that are not used (0.4 ms)
    torch.default_generator.manual_seed(seed)
    for generator in torch.cuda.default_generators if state.device.type == "cuda" else ():
        generator.manual_seed(seed)


def decay(schedule: ScheduleSpec, number: int) -> float:
    """Return the factor by which `schedule` scales learning rates at step `number` >= 1, excluding plateau reductions.

    The factor depends on `schedule.decay`:

        none: 1
        step: decay_factor ** floor((number - 1) / decay_every)
        cosine: (1 + cos(pi (number - 1) / steps)) / 2
    """
    done = number - 1
    if schedule.decay == "step":
        return float(schedule.decay_factor ** (done // schedule.decay_every))
    if schedule.decay == "cosine":
        return (1 + math.cos(math.pi * min(done / schedule.steps, 1))) / 2
    return 1.0


def gradients_of(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Return the gradients of all parameters that have one; frozen parameters have none."""
    return [p.grad for group in optimiser.param_groups for p in group["params"] if p.grad is not None]


def _sum(gradients: list[Tensor]) -> Tensor:
    """Return the sum of all entries, which is finite only if they are; it takes half the time of the norm."""
    return torch.stack([gradient.sum() for gradient in gradients]).sum()


def train(
    run: Run,
    *,
    dataset: Dataset | None = None,
    stop: Callable[[], bool] = lambda: False,
    before_done: Callable[[Run], object] = lambda run: None,
    company: AbstractContextManager[object] | None = None,
) -> RunState:
    """Train or resume a run and return its final state. This process must hold the run's lock.

    Errors are not raised: they set the state to "failed" with a message, and unexpected ones also write a traceback to
    the log.

    Args:
        run: Run to train.
        dataset: Data set to use instead of the one that the spec names.
        stop: Called after each step; if it returns True, the run stops, as it does if cancellation is requested.
        before_done: Called after the test and before the run is marked as done; if the process is killed during this
            call, a resumed run completes it.
        company: Context manager that starts and ends the other processes that train the run (`processes.local`).
    """
    report = Reporter(run)
    try:
        run.mark_running()
        with company or nullcontext():
            return _train(run, dataset, report, lambda: stop() or run.cancel_requested(), before_done)
    except StepError as error:
        atomic_files.replace_json(run.path / "failure.json", {"step": error.step, "indices": error.indices})
        message = str(error)
    except (TrainingError, CheckpointError, DataError, ModelError, RunError, processes.ProcessError) as error:
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
    spec, schedule = run.spec, run.spec.schedule

    # Create the state of a new, resumed or forked run, and the metrics rows to write before its next step.
    with processes.alone():
        start = starts.start(run, dataset, report)
    state, progress = start.state, start.state.progress
    log.info("%s from step %d to %d", device_name(state.device), progress.step, schedule.steps)

    with (
        contextlib.closing(state.batches),
        MetricsWriter(run, start.offset) as file,
        CheckpointWriter(run, state.device) as checkpoints,
    ):
        metrics = MetricsLog(file, state.finite_check)
        if start.rows:
            metrics.extend(start.rows)
            checkpoints.save(state, metrics.sync)
            checkpoints.wait()
        if spec.fork.run:  # the copy of the parent's checkpoint is not needed once the fork has its own
            for name in (run_directory.ORIGIN, run_directory.ORIGIN_ROWS):
                (run.path / name).unlink(missing_ok=True)
        saved_step = progress.step

        def keep(must: bool = True) -> None:
            nonlocal saved_step
            if must or not checkpoints.busy:
                checkpoints.save(state, metrics.sync)
                saved_step = progress.step

        starts.broadcast_state(state)
        if not _make_steps(state, metrics, stop, keep, lambda number: report(number, "training")):
            number = progress.step
            checkpoints.wait()
            log.info("stopped after step %d as requested", number)
            return report(number, f"stopped after step {number}; resume continues from there", state="cancelled")

        # Finish: test the weights with the best validation score or, without a validation split, the last weights.
        if saved_step != progress.step:
            keep()
        checkpoints.wait()
        if schedule.keep_every and progress.step not in run_directory.kept_checkpoints(run.path):
            checkpoint.keep(run.path, progress.step, run.path / run_directory.LAST)
        report(progress.step, "testing")
        tested = _test(run, state, metrics)
        tested_rows = scores(run.metrics()[0])
        untrained = tested_rows.get("untrained", {}).get("map_at_r")
        words = mark_transductive("test MAP@R", tested_rows["trained"].get("transductive"))
        message = f"{words} {_percent(untrained)} → {_percent(tested)}"
        message += f"; it {start.moved}" if start.moved else ""
        before_done(run)
        log.info("done: %s", message)
        if gained := gain(tested_rows, started=bool(spec.model.start)):
            log.info("%s", gained.words)
        return report(progress.step, message, state="done")


def follow(dataset: Dataset | None = None) -> None:
    """Train a run together with rank 0, as another rank, which does not access the run directory.

    Args:
        dataset: Data set to use instead of the one that the spec names.

    Raises:
        ProcessError: If rank 0 has ended. Errors that end a failed run are raised as well.
    """
    state = starts.receive_state(dataset)
    with contextlib.closing(state.batches):
        if _make_steps(state, MetricsLog(None, state.finite_check)):
            evaluation.embed_test(state)


def _make_steps(
    state: TrainingState,
    metrics: MetricsLog,
    stop: Callable[[], bool] = lambda: False,
    keep: Callable[[bool], object] = lambda must: None,
    report: Callable[[int], object] = lambda number: None,
) -> bool:
    """Run the remaining training steps, identically on each process; return False if `stop` ended them early.

    Rank 0 decides when to stop and broadcasts its decision and its scores to the other ranks.

    Args:
        state: The training state.
        metrics: Log that receives the metrics rows.
        stop: Called after each step, on rank 0 only; if it returns True, the run stops.
        keep: Writes a checkpoint. If its argument is False, it may skip this while another one is being written.
        report: Called with the number of each completed step.
    """
    schedule, progress = state.spec.schedule, state.progress
    state.model.train()
    while progress.step < schedule.steps and not 0 < schedule.patience <= progress.stale:
        number = progress.step + 1
        loss = step(state, number)

        # Log the step, then measure, validate, save or stop if due.
        progress.step = number
        metrics.append({"kind": "step", "step": number, "loss": loss} | state.loss.measured())
        if number % schedule.measure_every == 0:
            metrics.append({"kind": "measure", "step": number} | _measure(state))
        validation: list[Row] = []
        if number % schedule.validate_every == 0 or number == schedule.steps:
            metrics.flush()
            validation = evaluation.validate(state)
            metrics.extend(validation)
        for method in state.methods:
            metrics.extend(method.after_step(state, validation))
        if coverings.is_due(state, number):
            metrics.append(coverings.row(state))
        stopping = processes.on_first(stop)
        must = is_kept(schedule, number) or stopping
        if must or number % schedule.checkpoint_every == 0:
            keep(must)
        report(number)
        if stopping:
            return False
    return True


def evaluate(run: Run, *, dataset: Dataset | None = None) -> float | None:
    """Test the best weights in the newest checkpoint of a run and return MAP@R. This process must hold the run's lock.

    Writes the embeddings, and a metrics row of scores unless the log already has an identical one.

    Raises:
        CheckpointError, TrainingError, DataError, ModelError: If checkpoint, data or network cannot be loaded.
    """
    state = starts.load_for_evaluation(run, dataset=dataset)
    with MetricsWriter(run, run.metrics()[1]) as file:
        return _test(run, state, MetricsLog(file))


def _measure(state: TrainingState) -> dict[str, Any]:
    """Return statistics of the last batch, the norm of its gradient, and the current learning rates."""
    assert state.last_batch is not None
    norm = nn.utils.get_total_norm(gradients_of(state.optimiser)) if state.norm is None else state.norm
    metric = state.loss.metric
    statistics = batch_statistics.measure(*state.last_batch, getattr(metric, "difference_window", None), loss=metric)
    held: dict[str, Any] = getattr(metric, "chosen_margin", dict)()
    for method in state.methods:
        held |= method.measured(state)
    return statistics | {"gradient_norm": norm} | held | optimisers.learning_rates(state.optimiser)


def _test(run: Run, state: TrainingState, metrics: MetricsLog) -> float | None:
    """Test the best weights, write the metrics rows that are not in the log yet, and return MAP@R."""
    map_at_r, rows = evaluation.final_test(run, state)
    known = run.metrics()[0]
    metrics.extend(row for row in rows if row not in known)
    metrics.sync()
    return map_at_r


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f} %"
