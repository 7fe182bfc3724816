"""Expansion of a protocol, a data set and a loss into the specs of its runs, without side effects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from dmlcore import data
from dmlcore.experiments.protocols.spec import EpochKey, Protocol, names, read
from dmlcore.experiments.studies import PRETRAINING, StudyRun
from dmlcore.spec import RunSpec, SpecError, flat

WHOLE = "whole"  # name of the only variant of a protocol without folds
# Keys that may differ from the protocol: labels, paths, seeds, and settings that do not affect the weights.
NEUTRAL = (
    "name",
    "protocol",
    "seed",
    "device",
    "ks",
    "data.root",
    "data.fold",
    "compute.compile",
    "compute.graphs",
    "compute.workers",
    "schedule.checkpoint_every",
    "schedule.keep_every",
    "schedule.measure_every",
)
ALIASES = {
    "cub200": "cub",
    "cub2002011": "cub",
    "cars196": "cars",
    "stanfordcars": "cars",
    "stanfordonlineproducts": "sop",
    "onlineproducts": "sop",
    "deepfashioninshop": "inshop",
    "fgvcaircraft": "aircraft",
    "flowers102": "flowers",
    "oxfordflowers102": "flowers",
}
# Number of images and classes in the training half of each data set (Gurbuz 2022, Sec. 3.3).
PUBLISHED = {
    "cub": (5864, 100),
    "cars": (8054, 98),
    "sop": (59551, 11318),
    "inshop": (25882, 3997),
    "flowers": (3493, 51),  # counted in the official imagelabels.mat
}


def data_name(word: str) -> str:
    """Return the registered name of a data set, given that name or an alias in any case, with or without dashes.

    Raises SpecError for unknown names.
    """
    known = {_bare(name): name for name in (*data.names(), *PUBLISHED)} | ALIASES
    if _bare(word) in known:
        return known[_bare(word)]
    raise SpecError(f"unknown data set {word!r}; choose one of {', '.join(data.names())}")


def images(spec: RunSpec) -> int:
    """Return the number of training samples, including validation samples, of the spec's data set.

    The samples are counted if the data set is on this machine; otherwise the published number is returned. Raises
    DataError if neither is known.
    """
    d = spec.data
    try:
        own = data.describe(d.name).split == "own"
        dataset = data.load(
            d.name,
            root=d.root,
            split=d.split,
            validation=None if own else "none",
            image_size=d.image_size,
            seed=spec.seed,
            damaged=d.damaged,
        )
    except data.DataError:
        if d.name in PUBLISHED and d.root is None and d.split == "classes":
            return PUBLISHED[d.name][0]
        raise
    return len(dataset.splits["train"]) + len(dataset.splits["validation"])


def needs_images(protocol: Protocol, spec: RunSpec) -> bool:
    """Return True if the schedule of this spec is counted in epochs and so needs the size of the training split."""
    words = [word for word, name in protocol.losses.items() if name == spec.loss.name] or [spec.loss.name]
    return any(_epochs(protocol, spec.data.name, spec.model.name, word) for word in words)


def expand(
    protocol: Protocol,
    name: str,
    *,
    data: str = "",
    loss: str = "",
    overrides: Sequence[str] = (),
    folds: Sequence[int] = (),
    seeds: Sequence[int] = (),
    training: int | None = None,
) -> list[StudyRun]:
    """Return the runs of a protocol, ordered by seed and then by fold; their specs have `protocol` set to `name`.

    Args:
        protocol: The protocol.
        name: Name or file of the protocol.
        data: Data set to use instead of the protocol's.
        loss: Loss to use instead of the protocol's.
        overrides: Settings as key=value, applied last.
        folds: Folds to run; all by default.
        seeds: Seeds to run; all by default.
        training: Number of training samples including validation samples; required if the schedule is in epochs.

    Raises:
        SpecError: If a spec is not valid.
    """
    data = data or protocol.data
    overrides = list(overrides)
    first = specify(protocol, name, data, loss, overrides, training)
    count = first.data.folds
    wanted = folds or (protocol.folds if count == protocol.base.data.folds else ()) or range(1, count + 1) or (0,)
    if beyond := [fold for fold in wanted if fold > max(count, 0) or (count and fold < 1)]:
        raise SpecError(f"there is no fold {beyond[0]}; {name} has {count or 'none'}")
    entries: list[StudyRun] = []
    for seed in seeds or range(protocol.repeats):
        for fold in wanted:
            variant = f"fold {fold}" if fold else WHOLE
            each = [f"seed={seed}", *([f"data.fold={fold}"] if fold else []), *overrides]
            spec = _named(protocol, variant, specify(protocol, name, data, loss, each, training))
            if protocol.pretraining:
                before = [*each, *protocol.pretraining.overrides, *_only_schedule(overrides)]
                stage = _named(protocol, PRETRAINING, specify(protocol, name, data, loss, before, training))
                entries.append(StudyRun(PRETRAINING, seed, stage))
                entries.append(StudyRun(variant, seed, spec, stage))
            else:
                entries.append(StudyRun(variant, seed, spec))
    return entries


def specify(
    protocol: Protocol,
    name: str,
    data: str,
    loss: str,
    overrides: Iterable[str],
    training: int | None,
    *,
    adapted: bool = True,
) -> RunSpec:
    """Return the spec that a protocol prescribes for a data set and a loss.

    The base spec is changed in this order: by the settings that match data set, network and loss, by the schedule
    converted from epochs to steps, and by `overrides`.

    Args:
        protocol: The protocol.
        name: Name or file of the protocol.
        data: Name of the data set.
        loss: Name of the loss in the protocol or in `losses.names()`; the protocol's default loss if empty.
        overrides: Settings as key=value; `key=` without a value resets the key to its default.
        training: Number of training samples including validation samples; 0 does not convert epochs to steps.
        adapted: If True, adapt the spec to data that are not images.
    """
    overrides = list(overrides)
    last = [line for line in overrides if not line.startswith("loss.name=")]
    label = protocol.label(_value(overrides, "loss.name") or loss or protocol.base.loss.name)
    network = _value(overrides, "model.name") or protocol.base.model.name
    fitting = [setting for setting in protocol.settings if setting.fits(data, network, label)]
    chosen = [f"data.name={data}", f"loss.name={protocol.losses.get(label, label)}", f"protocol={name}"]
    chosen += [line for setting in fitting for line in setting.overrides]
    chosen += _adapted(protocol, data) if adapted else []
    spec = _applied(protocol.base, [*chosen, *last])
    steps = _in_steps(_epochs(protocol, data, network, label), spec, training)
    return _applied(protocol.base, [*chosen, *steps, *last])


def deviations(spec: RunSpec, training: int | None = None) -> list[str]:
    """Return the differences between a spec and the protocol that it names, one line per key; [] without a protocol.

    If the protocol lists the loss under several names, the name with the fewest differences is used.

    Args:
        spec: The spec.
        training: Number of training samples as in `expand`; if None, a schedule in epochs is not compared.

    Raises:
        SpecError: If the protocol cannot be read.
    """
    if not spec.protocol or spec.protocol not in names():
        return []
    protocol = read(spec.protocol)
    words = [word for word, name in protocol.losses.items() if name == spec.loss.name] or [spec.loss.name]
    return min((_deviations(protocol, spec, word, training) for word in words), key=len)


def remarks(spec: RunSpec) -> list[str]:
    """Return the line of a report that lists the `deviations` of a spec from its protocol; [] if there are none.

    Raises:
        SpecError: If the protocol cannot be read.
    """
    lines = deviations(spec)
    return [f"The run deviates from the protocol {spec.protocol}: {'; '.join(lines)}."] if lines else []


def _deviations(protocol: Protocol, spec: RunSpec, loss: str, training: int | None) -> list[str]:
    network = spec.model.name if spec.model.name in protocol.networks else protocol.base.model.name
    keep = [f"model.name={network}"]
    ours = specify(protocol, spec.protocol, spec.data.name, loss, keep, training=0, adapted=False)
    epochs = _epochs(protocol, spec.data.name, network, loss)
    if training is not None:  # convert epochs to steps with the batch size and folds of the spec
        ours = ours.with_overrides(_in_steps(epochs, spec, training))
    skipped = [*NEUTRAL, *protocol.free, *(["model.start"] if protocol.pretraining else [])]
    skipped += [f"schedule.{key}" for key in epochs] if training is None else []
    here, there = flat(spec), flat(ours)
    return [
        f"{key}: {_word(here.get(key))} instead of {_word(there.get(key))}"
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key) and not any(fnmatchcase(key, pattern) for pattern in skipped)
    ]


def _epochs(protocol: Protocol, data: str, network: str, loss: str) -> dict[EpochKey, float]:
    """Return the schedule settings that the protocol states in epochs, as key -> number of epochs."""
    epochs: dict[EpochKey, float] = dict(protocol.epochs)
    for setting in protocol.settings:
        if setting.fits(data, network, loss):
            epochs |= setting.epochs
    return epochs


def _in_steps(epochs: Mapping[EpochKey, float], spec: RunSpec, training: int | None) -> list[str]:
    """Return overrides that state the schedule in steps; one epoch is one step per full batch of training data."""
    if not epochs or training == 0:
        return []
    if training is None:
        raise SpecError(f"{spec.protocol}: its schedule is in epochs, so the number of training samples must be known")
    kept = training - training // spec.data.folds if spec.data.folds else training
    per_epoch = max(1, kept // (spec.batch.classes * spec.batch.samples))
    return [f"schedule.{key}={max(1, round(n * per_epoch)) if n else 0}" for key, n in epochs.items()]


def _adapted(protocol: Protocol, name: str) -> list[str]:
    """Return overrides that adapt the protocol to a data set of vectors, tokens, or images of a fixed size."""
    if name not in data.names() or name == protocol.base.data.name:
        return []
    info = data.describe(name)
    lines = ["data.image_size="] if not info.resizes else []
    if info.kind != "images" and protocol.base.model.name not in ("mlp", "tokens"):
        lines += [f"model.name={'mlp' if info.kind == 'vectors' else 'tokens'}", "pooling.name=gap"]
        lines += ["model.start=", "model.keep_classifier=", "model.freeze_batch_norm=", "data.crop="]
    if info.split == "own":
        lines += ["data.split=", "data.validation=", "data.folds="]
    return lines


def _applied(base: RunSpec, lines: Sequence[str]) -> RunSpec:
    """Apply overrides to the base; a key whose last override has no value is reset to its default."""
    last = {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in lines}
    back = [key for key, value in last.items() if not value and any(line.rstrip() == f"{key}=" for line in lines)]
    plain, defaults = base.with_overrides([line for line in lines if line.rstrip()[-1:] != "="]), flat(RunSpec())
    if not back:
        return plain
    values = plain.model_dump()
    for key in back:
        section, _, inner = key.partition(".")
        if key not in defaults or not inner:
            raise SpecError(f"{key}=: a value is missing")
        values[section][inner] = defaults[key]
    return RunSpec.parse(values)


def _value(overrides: Iterable[str], key: str) -> str:
    """Return the last value that the overrides assign to a key, without quotes; "" if there is none."""
    values = [
        line.partition("=")[2].strip().strip("\"'") for line in overrides if line.partition("=")[0].strip() == key
    ]
    return values[-1] if values else ""


def _only_schedule(overrides: Sequence[str]) -> list[str]:
    return [line for line in overrides if line.startswith("schedule.")]


def _named(protocol: Protocol, variant: str, spec: RunSpec) -> RunSpec:
    return spec.model_copy(update={"name": f"{protocol.title[:36]} · {variant}"})


def _bare(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _word(value: Any) -> str:
    return "nothing" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
