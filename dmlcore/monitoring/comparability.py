"""Detection of differences that make runs incomparable, such as different data, networks or selection of weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dmlcore import data
from dmlcore.experiments import protocols
from dmlcore.spec import RunSpec, flat
from dmlcore.storage.runs import Run, scores

Severity = Literal["incomparable", "caution", "note"]
Issue = tuple[Severity, str]  # severity and sentence, as in ComparabilityIssue
# warn if the learning rate of the loss parameters (proxies) is at least this multiple of the network's
FAST_PROXIES = 50


@dataclass(frozen=True)
class ComparabilityIssue:
    """A difference or setting that limits what a comparison of runs can show.

    Attributes:
        severity: "incomparable" (no conclusion is possible), "caution" (may explain part of a difference), or "note".
        sentence: Explanation for the user.
    """

    severity: Severity
    sentence: str


@dataclass(frozen=True)
class Rule:
    """Rule that reports an issue if the specs of the compared runs differ in one property.

    `value` returns this property of a spec, which is compared and displayed.
    """

    severity: Severity
    what: str
    why: str
    value: Callable[[RunSpec], object]


def _key(key: str) -> Callable[[RunSpec], object]:
    return lambda spec: flat(spec)[key]


def _or_usual(spec: RunSpec, key: str) -> Any:
    """Return a setting from section `data` or, if it is None, the default of the data set."""
    given = getattr(spec.data, key)
    return getattr(data.describe(spec.data.name), key) if given is None and spec.data.name in data.names() else given


def _split(spec: RunSpec) -> str:
    given = _or_usual(spec, "split")
    return {
        "classes": "unseen classes",
        "samples": "known classes",
        "own": "splits of the data set",
        "none": "all samples",
    }[given or "classes"]


def _held_out(spec: RunSpec) -> str:
    d, given = spec.data, _or_usual(spec, "validation")
    if given == "classes" and d.folds:
        return f"fold of {d.folds} {d.fold_order} folds of the classes"
    words = {"classes": "the last quarter of the classes", "samples": "samples of each class", "none": "nothing"}
    return words.get(given or "classes", "a separate split")


def _size(spec: RunSpec) -> str:
    size = _or_usual(spec, "image_size")
    return "none" if size is None else f"{size} pixels"


def _crop(spec: RunSpec) -> str:
    d = spec.data
    low, high = (100 * share for share in d.crop_area)
    words = {"shift": "shifted", "affine": "affine transforms", "resized": f"resized crops of {low:g} to {high:g} %"}
    return ", ".join([words[d.crop]] * d.augment + ["fresh collages"] * d.fresh) or "none"


def _samples_seen(spec: RunSpec) -> str:
    per_step = spec.batch.classes * spec.batch.samples
    return f"{spec.schedule.steps:,} steps of {per_step}"


def _selection(spec: RunSpec) -> str:
    if spec.schedule.monitor_part == "validation" and spec.data.validation == "none":
        return "the last step"
    word = {"map_at_r": "MAP@R", "recall_at_1": "R@1"}[spec.schedule.monitor]
    return f"{word} of the {spec.schedule.monitor_part} split"


def _edits(spec: RunSpec) -> str:
    without = f"without {len(spec.fork.leave_out)} classes" if spec.fork.leave_out else "all classes"
    without += f", without {len(spec.fork.leave_out_samples)} samples" if spec.fork.leave_out_samples else ""
    return f"{without}, {len(spec.fork.relabel)} samples relabelled" if spec.fork.relabel else without


def _tcm(spec: RunSpec) -> str:
    chosen = spec.loss
    return f"{chosen.tcm:g} with margins {chosen.tcm_m_pos:g} and {chosen.tcm_m_neg:g}" if chosen.tcm else "none"


def _frozen(spec: RunSpec) -> str:
    if spec.model.freeze == "none":
        return "none"
    part = "all but the last stage" if spec.model.freeze == "early" else "backbone"
    return f"{part}, {spec.data.views} views of each image" if spec.data.views else part


RULES = (
    Rule("incomparable", "data set", "the scores belong to different tasks", _key("data.name")),
    Rule("incomparable", "test protocol", "training classes are easier to retrieve than unseen ones", _split),
    Rule(
        "caution",
        "data folder",
        "it may hold a different subset",
        lambda spec: spec.data.root or "the default location",
    ),
    Rule("incomparable", "weight selection", "weights selected on the test split score too high", _selection),
    Rule("incomparable", "network", "a better backbone alone raises the scores", _key("model.name")),
    Rule(
        "incomparable",
        "initial weights of the backbone",
        "pretraining determines most of the score",
        lambda spec: spec.model.start or "at random",
    ),
    Rule("incomparable", "embedding size", "more dimensions alone raise the scores", _key("model.embedding_dim")),
    Rule("incomparable", "image size", "larger images alone raise the scores", _size),
    Rule(
        "caution",
        "protocol",
        "protocols differ in training, selection and reporting",
        lambda spec: spec.protocol or "none",
    ),
    Rule("caution", "validation data", "the runs train on different classes or samples", _held_out),
    Rule("caution", "augmentation", "it regularises, as a loss can", _crop),
    Rule("caution", "pooling", "it may explain part of the difference", _key("pooling.name")),
    Rule("caution", "normalisation of embeddings", "the geometry differs", _key("model.normalize")),
    Rule(
        "incomparable",
        "embedding of the test samples",
        "embeddings computed with test neighbours contain information on the gallery",
        lambda spec: "transductive" if spec.conditioning.transductive else "each alone",
    ),
    Rule("caution", "frozen part", "frozen parts cannot learn", _frozen),
    Rule("caution", "frozen batch norm", "it regularises", _key("model.freeze_batch_norm")),
    Rule("caution", "budget", "a run that sees more samples has more time to learn", _samples_seen),
    Rule(
        "caution",
        "batch",
        "tuples per step differ",
        lambda spec: f"{spec.batch.classes} x {spec.batch.samples} ({spec.batch.sampler})",
    ),
    Rule(
        "caution",
        "initialisation of the embedding layer",
        "a linear method may use the labels before the first step",
        _key("model.embedding_start"),
    ),
    Rule(
        "caution",
        "initial scale of the embedding layer",
        "embeddings with large initial norms can stop a loss from learning",
        _key("model.embedding_scale"),
    ),
    Rule("caution", "dropout", "it regularises, as a loss can", _key("model.dropout")),
    Rule("caution", "pull towards the initial weights", "it regularises, as a loss can", _key("loss.start_weight")),
    Rule("note", "threshold-consistent margin", "it is a loss of pairs that is added to the other one", _tcm),
    Rule(
        "note",
        "starting point",
        "a fork continues the training of its parent",
        lambda spec: f"step {spec.fork.step:,} of {spec.fork.run}" if spec.fork.run else "step 0",
    ),
    Rule("caution", "training split", "samples were left out or relabelled", _edits),
    Rule("note", "patience", "the actual budgets may differ", _key("schedule.patience")),
    Rule(
        "note",
        "optimiser",
        "tune it for every loss or for none",
        lambda spec: f"{spec.optimiser.name} at {spec.optimiser.learning_rate:g}",
    ),
    Rule("note", "arithmetic", "rounding differs", _key("compute.precision")),
)


def lint(runs: Sequence[RunSpec | Run]) -> list[ComparabilityIssue]:
    """Return the differences that make these runs incomparable and the weaknesses of each run, most severe first.

    Losses, miners and their parameters are assumed to be the subject of the comparison. The numbers of test queries are
    compared only for items that are runs, since specs do not contain them.
    """
    specs = [run.spec if isinstance(run, Run) else run for run in runs]
    issues = [warning for rule in RULES if (warning := _differs(rule, specs))]
    issues += _other_queries([run for run in runs if isinstance(run, Run)])
    issues += [ComparabilityIssue(*issue) for issue in _repeats(specs)]
    for spec in specs:
        issues += lint_spec(spec)
    order: dict[Severity, int] = {"incomparable": 0, "caution": 1, "note": 2}
    return sorted(dict.fromkeys(issues), key=lambda warning: order[warning.severity])


def lint_spec(spec: RunSpec, training: int | None = None) -> list[ComparabilityIssue]:
    """Return the weaknesses of a single run, and its deviations from the protocol that it names.

    Args:
        spec: Spec of the run.
        training: Number of training samples, needed to check settings that a protocol gives in epochs; without it,
            these settings are not checked.
    """
    return [ComparabilityIssue(*issue) for issue in (*_leaves(spec, training), *_alone(spec))]


def _alone(spec: RunSpec) -> Iterator[Issue]:
    # Selection of the weights that are scored on the test split.
    if spec.schedule.monitor_part == "test":
        sentence = f"The weights are selected on the test split ({_selection(spec)}), so the test scores are too high."
        yield "caution", sentence
    elif spec.data.validation == "none":
        yield "note", "There is no validation split, so the weights of the last step are tested."
    yield from _fast_proxies(spec)
    # Frozen parameters that start from random values.
    if spec.model.freeze_batch_norm and not spec.model.start:
        sentence = (
            "Batch norm is frozen, but the backbone starts at random, so its statistics come from no data and the "
            "network hardly learns. Start from pretrained weights, or unfreeze batch norm."
        )
        yield "caution", sentence
    if spec.model.freeze != "none" and not spec.model.start:
        sentence = (
            "The backbone is frozen but starts at random, so the trained layers see random features. Start from "
            "pretrained weights or a run, or unfreeze the backbone."
        )
        yield "caution", sentence
    if spec.model.freeze != "none" and spec.data.augment and not spec.data.views:
        sentence = (
            "Training images are neither flipped nor cropped, because the cached features are those of full images."
        )
        yield "note", sentence
    if spec.batch.sampler in ("mined", "neighbourhood") and spec.batch.balanced_steps >= spec.schedule.steps:
        sentence = (
            f"All {spec.schedule.steps:,} steps use balanced batches, so {spec.batch.sampler} batches never start. "
            "Train longer, or lower batch.balanced_steps."
        )
        yield "caution", sentence
    if _split(spec) == "known classes":
        yield "note", "The run is tested on training classes, so its score says nothing about unseen classes."


def lint_protocol_runs(specs: Sequence[RunSpec]) -> list[ComparabilityIssue]:
    """Return the weaknesses of the runs of one protocol.

    Folds and seeds are not compared. Deviations from the protocol are omitted, because the summary of the protocol
    lists them already.
    """
    own = [warning for spec in specs for warning in lint_spec(spec)]
    return list(dict.fromkeys(warning for warning in own if not warning.sentence.startswith("Deviates from ")))


def as_text(warnings: Iterable[ComparabilityIssue]) -> str:
    """Return the issues as text for a terminal, one line each."""
    return "\n".join(f"{warning.severity}: {warning.sentence}" for warning in warnings)


def _differs(rule: Rule, specs: Sequence[RunSpec]) -> ComparabilityIssue | None:
    values = list(dict.fromkeys(str(rule.value(spec)) for spec in specs))
    if len(values) < 2:
        return None
    shown = " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) <= 4 else f"{len(values)} of them"
    return ComparabilityIssue(rule.severity, f"Different {rule.what} ({shown}): {rule.why}.")


def _other_queries(runs: Sequence[Run]) -> list[ComparabilityIssue]:
    tested = [scores(run.metrics()[0]).get("trained") for run in runs]
    counts = list(dict.fromkeys(row["queries"] for row in tested if row))
    if len(counts) < 2 or len({run.spec.data.name for run in runs}) > 1:
        return []
    shown = " and ".join(f"{count:,}" for count in counts)
    sentence = f"Different test samples ({shown} queries): the data sets differ."
    return [ComparabilityIssue("incomparable", sentence)]


def _repeats(specs: Sequence[RunSpec]) -> Iterator[Issue]:
    """Yield an issue if every setting was run with a single seed, or if the numbers or sets of seeds differ."""
    neutral = {"seed": 0, "name": "", "device": "auto"}
    seeds: dict[str, set[int]] = {}
    for spec in specs:
        seeds.setdefault(spec.model_copy(update=neutral).to_json(), set()).add(spec.seed)
    counts = sorted({len(each) for each in seeds.values()})
    if len(seeds) < 2:
        return
    if counts == [1]:
        yield "caution", "Only one seed per setting: without repeats, a small difference may be due to chance."
    elif len(counts) > 1:
        shown = f"{counts[0]} and {counts[-1]}"
        yield "caution", f"Different numbers of repeats ({shown}): the best of more runs tends to be higher."
    elif len({tuple(sorted(each)) for each in seeds.values()}) > 1:
        yield "note", "Different seeds: batches and initial weights are not paired."


def _fast_proxies(spec: RunSpec) -> Iterator[Issue]:
    rate = spec.loss.learning_rate
    factor = rate / spec.optimiser.learning_rate if rate else 1.0
    if factor < FAST_PROXIES:
        return
    allowed = spec.protocol in protocols.names() and not any(
        line.startswith(("loss.learning_rate", "optimiser.learning_rate")) for line in protocols.deviations(spec)
    )
    by = f", as {spec.protocol} specifies" if allowed else ", an advantage that losses without proxies do not have"
    sentence = f"Loss parameters learn {factor:g} times faster than the network{by}."
    yield "note" if allowed else "caution", sentence


def _leaves(spec: RunSpec, training: int | None) -> Iterator[Issue]:
    for line in protocols.deviations(spec, training):
        yield "caution", f"Deviates from {spec.protocol} in {line}."
