"""The state of the charges page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from dmlcore import losses, mining
from dmlcore.simulation import (
    MOST_CHANGES,
    MOST_STEPS,
    NORMALISATIONS,
    OPTIMISERS,
    REACH,
    SIDES,
    STARTS,
    STRIDE,
    Change,
    Dynamics,
    Spec,
)
from dmlcore.simulation.spec import ALL, MOST_CLASSES, MOST_PER_CLASS, MOST_POINTS
from pages.shared.state import untrusted

SMALLEST_STEP, LARGEST_STEP = 1e-4, 2.0
MOST_MOVED = 60  # points laid elsewhere in one link
_FIELDS = ("loss", "optimiser", "miner", "side", "normalise")


@dataclass(frozen=True)
class ChargesPreset:
    """A state worth a look, as the query of its link."""

    title: str
    caption: str
    query: str

    @property
    def parsed(self) -> dict[str, str]:
        """The query as a mapping."""
        return dict(parse_qsl(self.query))


PRESETS = (
    ChargesPreset(
        "random", "Five classes mixed alike: like charges attract, unlike repel, until no triplet is active.", ""
    ),
    ChargesPreset(
        "two moons",
        "Interlocking half circles come apart. The loss stops as soon as its margin is kept: they never become heaps.",
        "start=moons&classes=2&per=100",
    ),
    ChargesPreset(
        "collapse",
        "All points in one place: every triplet is above the upper clamp m2, so none is active and nothing ever moves. "
        "Tick “no upper clamp” to set them free.",
        "start=collapsed&per=30",
    ),
    ChargesPreset(
        "escape",
        "The same collapse under the ranking loss: its forces have size one at any distance and break it up at once.",
        "start=collapsed&per=30&loss=ranking&m=0.5",
    ),
    ChargesPreset(
        "an outlier",
        "One point of the first class stands amid another: mean forces are small where few triplets are active.",
        "start=outlier&classes=4&per=40&loss=ranking&rate=0.2",
    ),
    ChargesPreset(
        "semi-hard",
        "FaceNet with semi-hard negatives on the unit circle: classes cannot pass each other, and it never settles.",
        "loss=facenet&m=0.2&miner=semi_hard&normalise=project&per=30",
    ),
    ChargesPreset(
        "hardest negatives",
        "FaceNet with the nearest negative of every pair: at first everything is drawn together, then it bursts.",
        "loss=facenet&m=0.2&miner=hard_negative&per=30",
    ),
    ChargesPreset(
        "push only",
        "Without attraction each class is only driven from the others.",
        "side=push&per=30",
    ),
)


def spec_of(data: Any) -> Spec:
    """A valid spec from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
    data = data if isinstance(data, Mapping) else {}
    defaults = Spec()
    classes = int(untrusted.bounded(data.get("classes"), 2, MOST_CLASSES, defaults.classes))
    per_class = int(untrusted.bounded(data.get("per_class"), 2, min(MOST_PER_CLASS, MOST_POINTS // classes), 60))
    base = Spec(
        start=untrusted.one_of(data.get("start"), tuple(STARTS), defaults.start),
        classes=classes,
        per_class=min(per_class, MOST_POINTS // classes),
        seed=int(untrusted.bounded(data.get("seed"), 0, 2**31 - 1, defaults.seed)),
        law=law_of(data.get("law"), defaults.law),
    )
    given = data.get("changes")
    changes = [_change(change, base) for change in (given[:MOST_CHANGES] if isinstance(given, list) else [])]
    return replace(base, changes=tuple(sorted((c for c in changes if c.law or c.moved), key=lambda change: change.at)))


def law_of(data: Any, default: Dynamics) -> Dynamics:
    """A valid law from untrusted data; what is missing is as in `default`, hyper-parameters as in their loss."""
    data = data if isinstance(data, Mapping) else {}
    name = untrusted.loss_name(data.get("loss"), default.loss)
    known = default.hyper if name == default.loss else {}
    given = data.get("hyper")
    hyper = {**known, **given} if isinstance(given, Mapping) else dict(known)
    return Dynamics(
        loss=name,
        hyper=untrusted.hyper(name, hyper),
        optimiser=untrusted.one_of(data.get("optimiser"), tuple(OPTIMISERS), default.optimiser),
        step_size=untrusted.bounded(data.get("step_size"), SMALLEST_STEP, LARGEST_STEP, default.step_size),
        miner=untrusted.one_of(data.get("miner"), (ALL, *mining.on_distances()), default.miner),
        side=untrusted.one_of(data.get("side"), tuple(SIDES), default.side),
        normalise=untrusted.one_of(data.get("normalise"), tuple(NORMALISATIONS), default.normalise),
    )


def _change(data: Any, base: Spec) -> Change:
    data = data if isinstance(data, Mapping) else {}
    moved = data.get("moved")
    rows = [untrusted.numbers(row, (-1.0, 0.0, 0.0)) for row in (moved[:MOST_MOVED] if isinstance(moved, list) else [])]
    reach = REACH - 1e-6
    return Change(
        at=int(untrusted.bounded(data.get("at"), 0, MOST_STEPS, 0)),
        law=law_of(data["law"], base.law) if isinstance(data.get("law"), Mapping) else None,
        moved=tuple(
            (int(i), min(max(x, -reach), reach), min(max(y, -reach), reach)) for i, x, y in rows if 0 <= i < base.points
        ),
    )


def to_json(spec: Spec) -> dict[str, Any]:
    """Plain data that `spec_of` reads back; infinity, which JSON lacks, becomes None."""
    return {
        "start": spec.start,
        "classes": spec.classes,
        "per_class": spec.per_class,
        "seed": spec.seed,
        "law": law_json(spec.law),
        "changes": [
            {"at": c.at, "law": law_json(c.law) if c.law else None, "moved": [list(row) for row in c.moved]}
            for c in spec.changes
        ],
    }


def law_json(law: Dynamics) -> dict[str, Any]:
    """Plain data of a law."""
    return {k: getattr(law, k) for k in (*_FIELDS, "step_size")} | {"hyper": untrusted.jsonable(law.hyper)}


def from_query(query: Mapping[str, str]) -> Spec:
    """The spec of a link, for example ?start=moons&classes=2&loss=ranking&m=0.2&then=40:m=0.5;60:move=3@0.1@0.2."""
    changes = []
    law = _law_query(query)
    spec = spec_of(
        {
            "start": query.get("start"),
            "classes": query.get("classes"),
            "per_class": query.get("per"),
            "seed": query.get("seed"),
            "law": law,
        }
    )
    in_force = spec.law
    for part in query.get("then", "")[:6000].split(";")[:MOST_CHANGES]:
        at, _, settings = part.partition(":")
        if untrusted.finite(at) is None:
            continue
        pairs = [tuple(setting.split("=", 1)) for setting in settings.split(",") if "=" in setting]
        moved = [value.split("@") for key, value in pairs if key == "move"]
        named = {key: value for key, value in pairs if key != "move"}
        if named:
            in_force = law_of(_law_query(named), in_force)
        changes.append({"at": at, "law": law_json(in_force) if named else None, "moved": moved})
    return spec_of(to_json(spec) | {"changes": changes})


def _law_query(query: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {k: query[k] for k in _FIELDS if k in query}
    if "rate" in query:
        given["step_size"] = query["rate"]
    return given | {"hyper": dict(query)}


def to_query(spec: Spec) -> dict[str, str]:
    """What differs from the defaults, as readable query parameters."""
    defaults = Spec()
    query = {k: str(getattr(spec, k)) for k in ("start", "classes", "seed") if getattr(spec, k) != getattr(defaults, k)}
    if spec.per_class != min(defaults.per_class, MOST_POINTS // spec.classes):
        query["per"] = str(spec.per_class)
    query |= _law_to_query(spec.law, defaults.law)
    parts, in_force = [], spec.law
    for change in spec.changes:
        settings = [f"{k}={v}" for k, v in _law_to_query(change.law, in_force).items()] if change.law else []
        settings += [f"move={i}@{untrusted.plain(x)}@{untrusted.plain(y)}" for i, x, y in change.moved]
        if settings:
            parts.append(f"{change.at}:{','.join(settings)}")
        in_force = change.law or in_force
    return query | ({"then": ";".join(parts)} if parts else {})


def _law_to_query(law: Dynamics, default: Dynamics) -> dict[str, str]:
    query = {k: getattr(law, k) for k in _FIELDS if getattr(law, k) != getattr(default, k)}
    if law.step_size != default.step_size:
        query["rate"] = untrusted.plain(law.step_size)
    known = default.hyper if law.loss == default.loss else losses.formula(law.loss).defaults
    return query | {k: untrusted.plain(v) for k, v in law.hyper.items() if v != known[k]}


def options() -> dict[str, Any]:
    """What the panel offers, with a sentence for each."""
    chosen = [mining.MINERS[name] for name in mining.on_distances()]
    miners = {m.name: {"title": m.title, "help": f"{m.sentence} {m.source}"} for m in chosen}
    everything = {"title": "All triplets", "help": "Every valid triplet: no miner."}
    return {
        "start": {s.name: {"title": s.title, "help": s.sentence} for s in STARTS.values()},
        "optimiser": {k: {"title": o.title, "help": "of torch.optim"} for k, o in OPTIMISERS.items()},
        "miner": {ALL: everything} | miners,
        "side": {k: {"title": k, "help": text} for k, text in SIDES.items()},
        "normalise": {
            k: {"title": title, "help": NORMALISATIONS[k]}
            for k, title in (("none", "free"), ("renormalise", "circle: renormalise"), ("project", "circle: project"))
        },
        "limits": {
            "classes": MOST_CLASSES,
            "per_class": MOST_PER_CLASS,
            "points": MOST_POINTS,
            "changes": MOST_CHANGES,
            "moved": MOST_MOVED,
            "steps": MOST_STEPS,
            "reach": REACH,
            "stride": STRIDE,
            "rate": [SMALLEST_STEP, LARGEST_STEP],
        },
        "presets": [{"title": p.title, "caption": p.caption, "state": to_json(from_query(p.parsed))} for p in PRESETS],
    }
