"""A protocol, a data set and a loss -> the specs of its runs; a pure function of what it is given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from dmlcore import data
from dmlcore.experiments.protocols.spec import EpochKey, Protocol, names, read
from dmlcore.experiments.studies import PRETRAINING, StudyRun
from dmlcore.spec import RunSpec, SpecError, flat

WHOLE = "whole"  # the variant of a protocol without folds
# What may differ without leaving a protocol: labels, places, seeds, and what changes no weight.
NEUTRAL = (
    "name",
    "protocol",
    "seed",
    "device",
    "ks",
    "data.root",
    "data.fold",
    "compute.compile",
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
# Images and classes of the first half of the classes, the training half: Gurbuz 2022, Sec. 3.3.
PUBLISHED = {
    "cub": (5864, 100),
    "cars": (8054, 98),
    "sop": (59551, 11318),
    "inshop": (25882, 3997),
    "flowers": (3493, 51),  # counted in the official imagelabels.mat
}


def data_name(word: str) -> str:
    """The data set that is meant: small or capital letters, dashes or none, its short or its long name."""
    known = {_bare(name): name for name in (*data.names(), *PUBLISHED)} | ALIASES
    if _bare(word) in known:
        return known[_bare(word)]
    raise SpecError(f"no data set {word!r}; there are {', '.join(data.names())}")


def images(spec: RunSpec) -> int:
    """Training samples of the data set of a spec, those that validate among them.

    Counted where the data set is there, else as published; raises DataError if neither is known.
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
    """Whether the schedule of this spec is counted in epochs, so that the size of the training split decides it."""
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
    """The runs of a protocol, seed after seed, each fold in turn, with `protocol` = name in their specs.

    data, loss: in place of the protocol's. overrides: key=value, applied last. folds, seeds: in place of all of them.
    training: samples of the training split, those that validate among them; for a schedule in epochs. Raises SpecError.
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
    """One spec of a protocol: base, then the settings that fit, then epochs as steps, then overrides.

    loss: as the protocol or as the catalogue calls it; empty: the protocol's. overrides: `key=` without a value takes
    the key back to its default. training 0: leave epochs out. adapted: to data that are no images.
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
    """In what a spec leaves the protocol that it names, one line `key: here, the protocol has ...`; none without one.

    training: as `expand` takes it; without it a schedule in epochs is not compared. A loss that the protocol knows
    under several words is compared with the one that fits best. Raises SpecError.
    """
    if not spec.protocol or spec.protocol not in names():
        return []
    protocol = read(spec.protocol)
    words = [word for word, name in protocol.losses.items() if name == spec.loss.name] or [spec.loss.name]
    return min((_deviations(protocol, spec, word, training) for word in words), key=len)


def _deviations(protocol: Protocol, spec: RunSpec, loss: str, training: int | None) -> list[str]:
    network = spec.model.name if spec.model.name in protocol.networks else protocol.base.model.name
    keep = [f"model.name={network}"]
    ours = specify(protocol, spec.protocol, spec.data.name, loss, keep, training=0, adapted=False)
    epochs = _epochs(protocol, spec.data.name, network, loss)
    if training is not None:  # as many epochs, in batches and folds as the spec has them
        ours = ours.with_overrides(_in_steps(epochs, spec, training))
    skipped = [*NEUTRAL, *protocol.free, *(["model.start"] if protocol.pretraining else [])]
    skipped += [f"schedule.{key}" for key in epochs] if training is None else []
    here, there = flat(spec), flat(ours)
    return [
        f"{key}: {_word(here.get(key))}, the protocol has {_word(there.get(key))}"
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key) and not any(fnmatchcase(key, pattern) for pattern in skipped)
    ]


def _epochs(protocol: Protocol, data: str, network: str, loss: str) -> dict[EpochKey, float]:
    """The keys of schedule that are counted in epochs."""
    epochs: dict[EpochKey, float] = dict(protocol.epochs)
    for setting in protocol.settings:
        if setting.fits(data, network, loss):
            epochs |= setting.epochs
    return epochs


def _in_steps(epochs: Mapping[EpochKey, float], spec: RunSpec, training: int | None) -> list[str]:
    """Overrides that put epochs as steps: whole batches of what the folds leave of `training` samples."""
    if not epochs or training == 0:
        return []
    if training is None:
        raise SpecError(f"{spec.protocol}: its schedule is in epochs, so the number of training samples must be known")
    kept = training - training // spec.data.folds if spec.data.folds else training
    per_epoch = max(1, kept // (spec.batch.classes * spec.batch.samples))
    return [f"schedule.{key}={max(1, round(n * per_epoch)) if n else 0}" for key, n in epochs.items()]


def _adapted(protocol: Protocol, name: str) -> list[str]:
    """What must change of a protocol for images where the data are vectors, tokens or images of one size."""
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
    """The base with overrides; a key whose last line has no value gets its default."""
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
    """The last value that the overrides give a key, without quotes; empty if they do not."""
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
