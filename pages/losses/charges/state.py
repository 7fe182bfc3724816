"""State of the Charges page, parsed from URLs and messages, which are untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from dmlcore import mining
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
from pages.shared.state import page_state, untrusted
from pages.shared.state.page_state import ChoiceKind, Hyper, Kind, Loss, NumberKind, PageState, Preset, Whole
from pages.shared.timeline.changes import Changes

RATE = (1e-4, 2.0)
MOST_MOVED = 60  # maximum number of moved points in a URL


PRESETS = (  # a URL without parameters opens the first preset
    Preset(
        "two moons",
        "Interlocking half circles separate. The loss stops once its margin holds: the classes do not collapse to "
        "points.",
        "start=moons&classes=2&per=100",
    ),
    Preset(
        "random",
        "Five mixed classes: equal classes attract and different ones repel until no triplet is active.",
        "start=random",
    ),
    Preset(
        "collapse",
        "All points are in one place: every triplet is above the upper clamp m2, so none is active and nothing moves. "
        "Tick “no upper clamp” to release them.",
        "start=collapsed&per=30",
    ),
    Preset(
        "escape",
        "The same collapse under the ranking loss: its forces have size one at any distance, so it ends at once.",
        "start=collapsed&per=30&loss=ranking&m=0.5",
    ),
    Preset(
        "an outlier",
        "One point of the first class is inside another class: mean forces are small where few triplets are active.",
        "start=outlier&classes=4&per=40&loss=ranking&rate=0.2",
    ),
    Preset(
        "wrong label",
        "A pull that decays with distance (s = −1) hardly reaches the point with a wrong label. Move s to 1: now this "
        "point is pulled hardest.",
        "start=outlier&classes=3&per=12&s=-1&r=0&m1=60&m2=inf&side=pull",
    ),
    Preset(
        "semi-hard",
        "FaceNet with semi-hard negatives on the unit circle: classes cannot pass each other, so it never converges.",
        "start=random&loss=facenet&m=0.2&miner=semi_hard&normalise=project&per=30",
    ),
    Preset(
        "hardest negatives",
        "FaceNet with the nearest negative of every pair: all points contract at first, then fly apart.",
        "start=random&loss=facenet&m=0.2&miner=hard_negative&per=30",
    ),
    Preset(
        "held apart",
        "Negatives divide a class (Can 2018, Fig. 2.6): they push its halves apart more strongly than pairs pull them "
        "together. With the ranking loss the halves join.",
        "start=divided&classes=2&per=8&loss=modified_entangle",
    ),
    Preset(
        "push only",
        "Without attraction the classes only move apart.",
        "start=random&side=push&per=30",
    ),
)


LAW: dict[str, Kind] = {
    "loss": Loss(),
    "hyper": Hyper(),
    "optimiser": ChoiceKind(OPTIMISERS),
    "step_size": NumberKind(*RATE, key="rate"),
    "miner": ChoiceKind((ALL, *mining.on_distances())),
    "side": ChoiceKind(SIDES),
    "normalise": ChoiceKind(NORMALISATIONS),
}


class LawKind(Kind):
    """State field for `Dynamics`, with one URL parameter per setting; None means that a change keeps the dynamics."""

    def read(self, value: Any, default: Any) -> Any:
        return page_state.read(LAW, value, default)

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        return page_state.from_query(LAW, query)

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        return page_state.to_query(LAW, state.law, default.law) if state.law else {}

    def json(self, value: Any) -> Any:
        return value and page_state.to_json(LAW, value)


class PerClass(Whole):
    """State field for the number of points per class, limited so that there are at most MOST_POINTS points in total."""

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> int:
        room = MOST_POINTS // fields["classes"]
        return int(min(super().of(name, data, default, fields), room))

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        room = MOST_POINTS // state.classes
        return {} if state.per_class == min(default.per_class, room) else {self.key: str(state.per_class)}


class Moved(Kind):
    """State field for points moved by the user, each (index, x, y); in a URL move=3@0.1@0.2&4@0.5@0 (& is escaped)."""

    def read(self, value: Any, default: Any) -> Any:
        rows = [each for each in value[:MOST_MOVED] if isinstance(each, (list, tuple)) and len(each) == 3]
        numbers = [[untrusted.finite(x) for x in row] for row in rows]
        reach = REACH - 1e-6
        return tuple(
            (int(i), min(max(x, -reach), reach), min(max(y, -reach), reach))
            for i, x, y in numbers
            if i is not None and x is not None and y is not None and 0 <= i < MOST_POINTS
        )

    def parse(self, text: str) -> Any:
        return [row.split("@", 3) for row in text.split("&")]

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        rows = [f"{i}@{untrusted.plain(x)}@{untrusted.plain(y)}" for i, x, y in state.moved]
        return {self.key: "&".join(rows)} if rows else {}

    def json(self, value: Any) -> Any:
        return [list(row) for row in value]


class ChargesChanges(Changes):
    """State field for changes to the dynamics or to point positions; several changes may be made at one step."""

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> tuple[Change, ...]:
        given, law, changes = data.get(name), fields["law"], []
        for each in given[: self.most] if isinstance(given, list) else []:
            if isinstance(each, Mapping):
                law = LAW_KIND.read(each.get("law"), law)
                moved = MOVED.read(each["moved"], ()) if isinstance(each.get("moved"), list) else ()
                at = int(untrusted.bounded(each.get("at"), 0, self.most_steps, 0))
                here = tuple(row for row in moved if row[0] < fields["classes"] * fields["per_class"])
                changes.append(Change(at, law, here))
        changes.sort(key=lambda change: change.at)
        laws = zip([fields["law"], *(change.law for change in changes)], changes, strict=False)
        new = [change if change.law != before else replace(change, law=None) for before, change in laws]
        return tuple(change for change in new if change.law or change.moved)

    def after(self, before: Any, change: Any) -> Any:
        return replace(change, law=change.law or before.law)


def _first(state: Any) -> Change:
    return Change(0, state.law)


LAW_KIND, MOVED = LawKind(), Moved(key="move")
CHANGES = ChargesChanges(_first, {"law": LAW_KIND, "moved": MOVED}, MOST_CHANGES, MOST_STEPS, key="then")


@dataclass(frozen=True)
class ChargesState(Spec, PageState):
    """Simulation shown on the Charges page: initial points, dynamics, and later changes."""

    start: Annotated[str, ChoiceKind(tuple(STARTS), always=True)] = Spec.start
    classes: Annotated[int, Whole(2, MOST_CLASSES)] = Spec.classes
    per_class: Annotated[int, PerClass(2, MOST_PER_CLASS, key="per")] = Spec.per_class
    seed: Annotated[int, Whole(0, 2**31 - 1)] = Spec.seed
    law: Annotated[Dynamics, LAW_KIND] = field(default_factory=Dynamics)
    changes: Annotated[tuple[Change, ...], CHANGES] = ()

    def to_python(self, steps: int) -> str:
        """Return a Python script that computes the first `steps` steps of this simulation with dmlcore."""
        return Spec(**vars(self)).to_python(steps)


def options() -> dict[str, Any]:
    """Return the options of the control panel, with a title and a help sentence for each."""
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
            "rate": RATE,
        },
        "presets": [p.to_json(ChargesState) for p in PRESETS],
    }
