"""Detection of problems such as collapse from the metric rows of a training run, with suggested remedies.

Only conditions that last until the newest row are reported, and in doubt none: a healthy run has no warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING

from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import candidate_validations, series, with_chosen_margin

if TYPE_CHECKING:
    from dmlcore.losses import TripletLoss

MIN_DURATION = 3  # minimum number of consecutive measurements or validations for which a condition holds
POINT = (
    # ratio of spread to embedding length below which all embeddings count as one point; typical values are 0.7 for
    # random points on a sphere and 0.07 with hard mining
    0.03
)
# effective rank below which embeddings count as collapsed, checked only with at least four dimensions and four classes
# per batch
FLAT_RANK = 2.0
MARGIN = 0.06  # A loss within this relative distance of its value for coinciding embeddings counts as stuck.
IDLE = 0.9  # share of recent steps without an active triplet from which training counts as idle
MIN_STEPS = 40  # minimum number of steps before warnings about the loss are given
# embedding length or gradient norm above which training counts as diverging; squares overflow float32 only above 1e19
DIVERGENCE = 1e9
# mean embedding length and first loss above which the initial embeddings count as too long; tuplet losses start at 3 to
# 4 for embeddings of length 1 to 4, at 20,000 for those of length 250
LONG_START, LARGE_START = 30.0, 100.0
OVERFIT = 0.03  # minimum drop of the validation MAP@R (0..1) below its best value for a warning


@dataclass(frozen=True)
class HealthWarning:
    """Warning about a problem: its kind, the step since which it has lasted, explanation and remedies."""

    kind: str  # one of point, dimensions, margin, idle, saturated, flat, overfit, worse, exploding, scale
    since: int
    sentence: str
    remedies: tuple[str, ...]


def watch(rows: Iterable[Row], spec: RunSpec | None = None) -> list[HealthWarning]:
    """Return warnings about a training run, most severe first; [] for a healthy run.

    Args:
        rows: Rows of the run's metrics.jsonl.
        spec: Spec of the run; without it, checks that depend on the loss or the embedding dimension are skipped or
            weaker.
    """
    rows = list(rows)
    history = _History(rows, spec and with_chosen_margin(spec, rows))
    warnings = [
        judge(history)
        for judge in (_exploding, _scale, _point, _dimensions, _saturated, _margin, _idle, _flat, _overfit)
    ]
    kinds = {warning.kind for warning in warnings if warning}
    implied = {
        "point": {"margin", "dimensions", "flat"},
        "exploding": {"flat", "dimensions", "scale"},
        "margin": {"flat"},
    }
    hidden = set().union(*(implied.get(kind, set()) for kind in kinds))
    return [warning for warning in warnings if warning and warning.kind not in hidden]


class _History:
    """Metric series of a run by step, and its spec."""

    def __init__(self, rows: Sequence[Row], spec: RunSpec | None) -> None:
        self.rows, self.spec = rows, spec
        self.steps, self.losses = series(rows, "step", "loss")
        self.loss_at = dict(zip(self.steps, self.losses, strict=True))

    def measured(self, name: str) -> list[tuple[int, float]]:
        return [*zip(*series(self.rows, "measure", name), strict=True)]

    def recent(self) -> list[float]:
        """Return the losses in the last fifth of the steps, or in the last MIN_STEPS / 2 steps if these are more."""
        return self.losses[-max(MIN_STEPS // 2, len(self.losses) // 5) :]


def _lasting_since(points: Sequence[tuple[int, float]], holds: Callable[[float], bool]) -> int | None:
    """Return the step since which a condition has held without interruption up to the last point.

    Returns None if it has held for fewer than MIN_DURATION points.
    """
    since, length = None, 0
    for step, value in reversed(points):
        if not holds(value):
            break
        since, length = step, length + 1
    return since if length >= MIN_DURATION else None


def _exploding(history: _History) -> HealthWarning | None:
    """Detect that embedding lengths, gradient norms or the loss approach overflow."""
    for name, words in (("norm", "the embeddings have norm"), ("gradient_norm", "the gradient has norm")):
        values = history.measured(name)
        since = next((step for step, value in values if value > DIVERGENCE), None)
        if since is not None and values[-1][1] > DIVERGENCE:
            return _overflow(since, words, values[-1][1])
    last = [*zip(history.steps, history.losses, strict=True)][-5:]
    losses = [loss for _, loss in last]
    first = fmean(history.losses[:3]) if history.losses else 0.0
    # A diverging optimiser: the loss at least doubles in each step and is 1000 times its initial value.
    if len(last) == 5 and all(b > 2 * abs(a) for a, b in pairwise(losses[1:])) and losses[-1] > 1000 * abs(first):
        return _overflow(last[1][0], "the loss is", losses[-1])
    return None


def _overflow(since: int, words: str, value: float) -> HealthWarning:
    return HealthWarning(
        "exploding",
        since,
        f"Close to overflow: {words} {value:.2g}. float32 overflows at 3e38, squared norms at 1e19.",
        (
            "divide optimiser.learning_rate by 10, or by 100",
            "set optimiser.clip_norm, for example to 1",
            "normalise the embeddings to unit length: model.normalize=true",
        ),
    )


def _scale(history: _History) -> HealthWarning | None:
    """Detect unnormalised embeddings whose large norms made the first loss extreme, and that are still large."""
    norm, first = history.measured("norm"), history.losses[:3]
    if not norm or min(value for _, value in norm) < LONG_START or not first or min(first) < LARGE_START:
        return None
    length = norm[0][1]
    return HealthWarning(
        "scale",
        history.steps[0],
        f"The initial embeddings have a mean length of {length:.3g}, and the first loss is {first[0]:,.4g}: training "
        "first reduces the length instead of separating the classes.",
        (
            f"start a new run with model.embedding_scale={1 / length:.1g}, for embeddings of mean length 1",
            "normalise the embeddings to unit length: model.normalize=true",
        ),
    )


def _point(history: _History) -> HealthWarning | None:
    spread = history.measured("spread")
    since = _lasting_since(spread, lambda value: value < POINT)
    norm = history.measured("norm")
    if since is None and norm:  # without normalisation, embeddings may also shrink towards the origin
        since = _lasting_since(norm, lambda value: value < 1e-3 * norm[0][1])
    if since is None:
        return None
    value = spread[-1][1] if spread else 0.0
    positive, negative = (history.measured(f"{name}_distance") for name in ("positive", "negative"))
    distances = ""
    if positive and negative:
        distances = f": positives are {positive[-1][1]:.2g} apart, negatives {negative[-1][1]:.2g}"
    return HealthWarning(
        "point",
        since,
        f"The embeddings have collapsed: all of a batch are within {100 * value:.2g} % of their norm of one "
        f"point{distances}.",
        (
            "choose a milder miner (semi_hard, or all), because the hardest negatives can cause a collapse",
            "divide optimiser.learning_rate by 10",
            "check the labels: for indistinguishable classes, a single point is the best solution",
            "choose a loss whose gradient does not vanish with the distance, such as distance_sensitive",
        ),
    )


def _dimensions(history: _History) -> HealthWarning | None:
    rank = history.measured("effective_rank")
    spec = history.spec
    if spec is not None and min(spec.model.embedding_dim, spec.batch.classes) < 4:
        return None
    since = _lasting_since(rank, lambda value: value < FLAT_RANK)
    if since is None:
        return None
    space = f" of {spec.model.embedding_dim}" if spec is not None else ""
    return HealthWarning(
        "dimensions",
        since,
        f"The embeddings fill {rank[-1][1]:.1f}{space} dimensions: classes can only be separated along a line.",
        (
            "divide optimiser.learning_rate by 10",
            "widen the narrowest layer before the embedding (model.hidden)",
            "choose a loss that also separates classes that satisfy the margin, or raise the margin",
        ),
    )


def _margin(history: _History) -> HealthWarning | None:
    """Detect a loss that stays close to its value for coinciding embeddings."""
    worth = _loss_at_one_point(history.spec)
    since = _near_since(history, worth)
    if worth is None or since is None:
        return None
    recent = history.recent()
    return HealthWarning(
        "margin",
        since,
        f"The loss stays at {fmean(recent):.4g}, close to its margin of {worth:.4g}, its value when all embeddings "
        "coincide.",
        (
            "choose a milder miner (semi_hard, or all)",
            "divide optimiser.learning_rate by 10, or train the new layers alone first (schedule.warm_up)",
            "lower the margin until some triplets satisfy it, and raise it later",
        ),
    )


def _saturated(history: _History) -> HealthWarning | None:
    """Detect a loss that stays at its upper clamp, where no triplet has a gradient."""
    top = _clamp(history.spec)
    since = _near_since(history, top)
    if top is None or since is None:
        return None
    return HealthWarning(
        "saturated",
        since,
        f"The loss stays at its upper clamp, m2 = {top:.4g}: triplets beyond it have no gradient.",
        ("raise loss.m2", "start from a pretrained network, so that fewer triplets start beyond the clamp"),
    )


def _idle(history: _History) -> HealthWarning | None:
    """Detect that no triplet has a gradient in most of the recent steps."""
    steps, active = series(history.rows, "step", "active")
    window = max(MIN_STEPS, len(active) // 5)
    if len(active) < MIN_STEPS or fmean(value == 0 for value in active[-window:]) < IDLE:
        return None
    idle = fmean(value == 0 for value in active[-window:])
    since, share = steps[-1], 0
    for back, (step, value) in enumerate(zip(reversed(steps), reversed(active), strict=True), start=1):
        share += value == 0
        if share >= IDLE * back:
            since = step
    top = _clamp(history.spec)
    if top is not None and fmean(history.recent()) > 0.5 * top:
        # The loss is near its upper clamp, so triplets are too hard, not too easy; `_saturated` reports this.
        return None
    return HealthWarning(
        "idle",
        since,
        f"Nothing left to learn: {100 * idle:.0f} % of the last {window} steps had no active triplet, so they changed "
        "nothing.",
        (
            "raise the margin of the loss",
            "choose a harder miner (batch_hard), or larger batches, so that harder negatives occur",
            "stop here: lower schedule.steps, or set schedule.patience",
        ),
    )


def _flat(history: _History) -> HealthWarning | None:
    """Detect a loss that has not fallen by more than its noise, while the validation score has not improved either."""
    losses = history.losses
    if len(losses) < MIN_STEPS:
        return None
    tenth = max(10, len(losses) // 10)
    first, last = losses[:tenth], losses[-2 * tenth :]
    # standard error of the difference between the two mean losses
    noise = sqrt(pstdev(first) ** 2 / len(first) + pstdev(last) ** 2 / len(last))
    fallen = fmean(first) - fmean(last)
    scores = series(candidate_validations(history.rows), "validation", "map_at_r")[1]
    improved = len(scores) > 1 and max(scores) > 1.1 * scores[0] + 0.01
    if improved or fmean(first) <= 0 or fallen > max(3 * noise, 0.05 * fmean(first)):
        return None
    active = series(history.rows, "step", "active")[1][-2 * tenth :]
    everything = bool(active) and median(active) > 0.95
    remedies = ["multiply optimiser.learning_rate by 10; if the loss then oscillates, divide it by 10 instead"]
    if everything:
        remedies.append("lower the margin: nearly all triplets are active, so their difficulty has no effect")
    remedies.append(
        "check that the labels belong to the samples, and that the network is not frozen (schedule.warm_up)"
    )
    also = f", and {100 * median(active):.0f} % of the triplets are active all the time" if everything else ""
    return HealthWarning(
        "flat",
        history.steps[0],
        f"The loss does not fall: {fmean(first):.4g} in the first {len(first)} steps, {fmean(last):.4g} in the last "
        f"{len(last)}{also}.",
        tuple(remedies),
    )


def _overfit(history: _History) -> HealthWarning | None:
    """Detect a validation score that has dropped below its best value and has not recovered.

    The kind of the warning is "overfit" if the training loss has fallen since the best validation, otherwise "worse".
    """
    steps, scores = series(candidate_validations(history.rows), "validation", "map_at_r")
    if len(scores) <= MIN_DURATION:
        return None
    best = max(range(len(scores)), key=scores.__getitem__)
    later = scores[best + 1 :]
    if len(later) < MIN_DURATION or max(later[-MIN_DURATION:]) > scores[best] - OVERFIT:
        return None
    # Compare the losses just before the best validation with the most recent ones.
    before = [loss for step, loss in history.loss_at.items() if step <= max(steps[best], MIN_STEPS // 4)][
        -MIN_STEPS // 2 :
    ]
    recent = history.recent()
    if not before or not recent:
        return None
    then, now = fmean(before), fmean(recent)
    fell = f"validation MAP@R fell from {100 * scores[best]:.1f} % at step {steps[best]} to {100 * scores[-1]:.1f} %"
    if now < then:
        return HealthWarning(
            "overfit",
            steps[best],
            f"Overfitting: {fell}, while the training loss fell from {then:.3g} to {now:.3g}.",
            (
                "stop early: schedule.patience; the best weights are saved either way",
                "augment the images (data.augment, data.crop=resized) or add weight decay",
                "freeze batch norm, or train a smaller network",
            ),
        )
    return HealthWarning(
        "worse",
        steps[best],
        f"Training is losing earlier progress: {fell}, and the loss rose from {then:.3g} to {now:.3g}.",
        (
            "divide optimiser.learning_rate by 10, or let it decay (schedule.decay, schedule.plateau)",
            "lower optimiser.weight_decay: it pulls all weights towards zero",
        ),
    )


def _near_since(history: _History, value: float | None) -> int | None:
    """Return the step since which all losses have been near `value`; None if a recent loss is not."""
    if value is None or value <= 0 or len(history.losses) < MIN_STEPS:
        return None

    def is_near(loss: float) -> bool:
        return abs(loss - value) <= MARGIN * value

    points = [*zip(history.steps, history.losses, strict=True)]
    return _lasting_since(points, is_near) if all(map(is_near, history.recent())) else None


def _triplet_loss(spec: RunSpec | None) -> TripletLoss | None:
    """Create the triplet loss of a spec; return None if its loss is of another kind or invalid."""
    from dmlcore import losses  # imported late: it imports torch, which a page that only lists runs does not need

    if spec is None or spec.loss.name not in losses.names():
        return None
    try:
        return losses.create(spec.loss.name, reduction=spec.loss.reduction, **spec.loss.parameters)
    except (KeyError, TypeError, ValueError):
        return None


def _loss_at_one_point(spec: RunSpec | None) -> float | None:
    """Return the value of a triplet loss if all embeddings are one unit vector; None if it is undefined."""
    loss = _triplet_loss(spec)
    if loss is None or not loss.clamps:
        return None
    import torch

    point = torch.full((1, 4), 0.5, dtype=torch.float64)
    value = float(loss.clamped(point, point, point))
    return value if isfinite(value) else None


def _clamp(spec: RunSpec | None) -> float | None:
    """Return the upper clamp of a spec's triplet loss; None if it has none or if the loss is of another kind."""
    loss = _triplet_loss(spec)
    return loss.m2 if loss is not None and loss.clamps and isfinite(loss.m2) else None
