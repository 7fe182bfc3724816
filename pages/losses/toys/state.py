"""The state of the toys page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from dmlcore import losses, pooling
from dmlcore.replay import recorded_training, toy_runs
from dmlcore.replay.recorded_training import LiveSpec, Moves
from dmlcore.spec import RunSpec
from pages.shared.state import untrusted

MOST_CHANGES = 10
MOST_STEPS = 4000
RATES = (1e-5, 0.5)
WATCHED, WATCHED_IMAGES = 320, 170  # points drawn, about
LETTERS = ("a", "b")
MOVES: tuple[Moves, ...] = get_args(Moves)
PARTS = ("train", "test")
GATED = ("pooling", "mu", "epsilon")
OPTIMISERS = ("rmsprop", "adam")
LIMITS = {"seed": (0, 2**31 - 1), "dim": (2, 64), "hidden": (2, 256), "classes": (2, 16), "samples": (2, 32)}
DIMENSIONS = (2, 3, 64)  # of which the last is shown by two principal components
POOLINGS = tuple(name for name in pooling.names() if name not in ("gsop", "solar"))  # those are too slow to watch
GATE = {"mu": (0.05, 1.0, 0.3), "epsilon": (0.5, 200.0, 5.0)}  # of the gate of gsp: from, to, at first
PROTOTYPES = {"prototypes": 32, "memory": 512}  # fewer than usual, as they are watched


@dataclass(frozen=True)
class LossSide:
    """What one of the trainings minimises, and which of its forces move the network."""

    loss: str = "ranking"
    hyper: Mapping[str, float | str] = field(default_factory=lambda: untrusted.hyper("ranking", {"m": 0.1}))
    moves: Moves = "both"
    pooling: str = "gap"  # of images; it cannot change on the way
    mu: float = GATE["mu"][2]  # of its gate, where it has one
    epsilon: float = GATE["epsilon"][2]

    @property
    def gated(self) -> bool:
        """Whether the pooling has the gate that mu and epsilon are of."""
        return self.pooling in ("gsp", "gsp_gmp")


@dataclass(frozen=True)
class SidesChange:
    """What is in force after step `at`: each side, and the learning rate of both."""

    at: int
    sides: tuple[LossSide, ...]
    rate: float


SECOND = LossSide("distance_sensitive", untrusted.hyper("distance_sensitive", {"m1": -2.25}))  # as in Table 4.1


@dataclass(frozen=True)
class Toy:
    """One or two trainings on the same data, seed and clock."""

    data: str = "toy"
    part: str = "train"
    seed: int = 0
    dim: int = 2
    normalize: bool = False
    hidden: int = toy_runs.HIDDEN
    classes: int = 4
    samples: int = 8
    optimiser: str = "rmsprop"
    rate: float = 0.005
    sides: tuple[LossSide, ...] = (LossSide(), SECOND)
    changes: tuple[SidesChange, ...] = ()

    def in_force(self, step: int) -> tuple[tuple[LossSide, ...], float]:
        """Sides and learning rate that make step `step` + 1."""
        change = next((c for c in reversed(self.changes) if c.at <= step), None)
        return (change.sides, change.rate) if change else (self.sides, self.rate)

    def run(self, index: int, step: int = 0, steps: int = 400) -> RunSpec:
        """The run of side `index` with what is in force at a step, without the changes on the way."""
        sides, rate = self.in_force(step)
        side = sides[index]
        shown = toy_runs.toy_run(
            self.data,
            self.seed,
            model={"embedding_dim": self.dim, "normalize": self.normalize}
            | ({} if self.images else {"hidden": (self.hidden,)}),
            loss={"name": side.loss, "parameters": dict(side.hyper)},
            batch={"classes": self.classes, "samples": self.samples},
            optimiser={"name": self.optimiser, "learning_rate": rate},
            schedule={"steps": steps},
            **({"pooling": _pooled(side)} if self.images else {}),
        )
        return shown.model_copy(update={"seed": self.seed, "name": f"Toys: {losses.describe(side.loss).title}"})

    def live(self, index: int) -> LiveSpec:
        """The training of side `index`, changes on the way included."""
        changes, before = [], self.sides[index]
        rate = self.rate
        if before.moves != "both":
            changes.append(recorded_training.SpecChange(0, (), before.moves))
        for change in self.changes:
            side = change.sides[index]
            given = [] if change.rate == rate else [f"optimiser.learning_rate={change.rate!r}"]
            if (side.loss, side.hyper) != (before.loss, before.hyper):
                given += [f"loss.name={side.loss}", *(f"loss.{k}={_toml(v)}" for k, v in side.hyper.items())]
            if self.images and side.gated and (side.mu, side.epsilon) != (before.mu, before.epsilon):
                given += [f"pooling.mu={side.mu!r}", f"pooling.epsilon={side.epsilon!r}"]
            if given or side.moves != before.moves:
                changes.append(recorded_training.SpecChange(change.at, tuple(given), side.moves))
            before, rate = side, change.rate
        classes = len(set(self.dataset.labels[self.dataset.parts[self.part]].tolist()))
        watched = WATCHED_IMAGES if self.images else WATCHED
        return LiveSpec(self.run(index), tuple(changes), max(2, watched // classes), (self.part,))

    @property
    def images(self) -> bool:
        """Whether images are trained on, by pooling the maps of a frozen network."""
        return self.data in toy_runs.IMAGES

    @property
    def shown_dim(self) -> int:
        """Dimensions in which embeddings are drawn."""
        return self.dim if self.dim <= 3 else 2

    @property
    def dataset(self) -> Any:
        """The data set of both trainings."""
        return toy_runs.dataset(self.data, self.seed)


def _pooled(side: LossSide) -> dict[str, Any]:
    more: dict[str, Any] = PROTOTYPES | {"mu": side.mu, "epsilon": side.epsilon} if side.gated else {}
    return {"name": side.pooling, "parameters": more}


def _toml(value: float | str) -> str:
    return value if isinstance(value, str) else repr(float(value))


def toy_of(data: Any) -> Toy:
    """A valid state from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
    data = data if isinstance(data, Mapping) else {}
    usual = Toy()
    numbers: dict[str, Any] = {k: int(untrusted.bounded(data.get(k), *LIMITS[k], getattr(usual, k))) for k in LIMITS}
    given = data.get("sides")
    given = given[:2] if isinstance(given, list) and given else [None, None]
    base = Toy(
        data=untrusted.one_of(data.get("data"), toy_runs.offered(), usual.data),
        part=untrusted.one_of(data.get("part"), PARTS, usual.part),
        normalize=untrusted.flag(data.get("normalize"), usual.normalize),
        optimiser=untrusted.one_of(data.get("optimiser"), OPTIMISERS, usual.optimiser),
        rate=untrusted.bounded(data.get("rate"), *RATES, usual.rate),
        sides=tuple(side_of(side, usual.sides[i]) for i, side in enumerate(given)),
        **numbers,
    )
    dims = [d for d in DIMENSIONS if d <= base.dim and (base.images or d <= 3)]
    base = replace(base, classes=min(base.classes, _classes(base)), dim=dims[-1])
    found = data.get("changes")
    changes: dict[int, SidesChange] = {}
    for change in found[:MOST_CHANGES] if isinstance(found, list) else []:
        if isinstance(change, Mapping) and isinstance(change.get("sides"), list):
            at = int(untrusted.bounded(change.get("at"), 0, MOST_STEPS, 0))
            both = [*change["sides"], None, None][: len(base.sides)]
            sides = tuple(
                replace(side_of(side, base.sides[i]), pooling=base.sides[i].pooling) for i, side in enumerate(both)
            )
            changes[at] = SidesChange(at, sides, untrusted.bounded(change.get("rate"), *RATES, base.rate))
    return replace(base, changes=tuple(changes[at] for at in sorted(changes)))


def side_of(data: Any, usual: LossSide) -> LossSide:
    """A valid side from untrusted data; what is missing is as in `usual`, hyper-parameters as in their loss."""
    data = data if isinstance(data, Mapping) else {}
    name = untrusted.loss_name(data.get("loss"), usual.loss, (*losses.names(), *losses.batch_names()))
    known = dict(usual.hyper) if name == usual.loss else {}
    given = data.get("hyper")
    hyper = untrusted.hyper(name, known | dict(given) if isinstance(given, Mapping) else known)
    moves = untrusted.one_of(data.get("moves"), MOVES if sided(name) else ("both",), "both")
    gate = {k: untrusted.bounded(data.get(k), low, high, getattr(usual, k)) for k, (low, high, _) in GATE.items()}
    pooled = untrusted.one_of(data.get("pooling"), POOLINGS, usual.pooling)
    return LossSide(name, hyper, moves, pooled, **gate)  # type: ignore[arg-type]  # one of MOVES


def sided(loss: str) -> bool:
    """Whether pulls or pushes of a loss can act alone: those of pairs and triplets, not of proxies."""
    return loss in losses.names() or loss == "contrastive"


def _classes(toy: Toy) -> int:
    dataset = toy.dataset
    return len(set(dataset.labels[dataset.parts["train"]].tolist()))


def to_json(toy: Toy) -> dict[str, Any]:
    """Plain data that `toy_of` reads back; infinity, which JSON lacks, becomes None."""
    plain = {k: getattr(toy, k) for k in ("data", "part", "normalize", "optimiser", "rate", *LIMITS)}
    changes = [{"at": c.at, "sides": [_side(s) for s in c.sides], "rate": c.rate} for c in toy.changes]
    return plain | {"sides": [_side(s) for s in toy.sides], "changes": changes}


def _side(side: LossSide) -> dict[str, Any]:
    plain = {"loss": side.loss, "hyper": untrusted.jsonable(side.hyper), "moves": side.moves}
    return plain | {k: getattr(side, k) for k in GATED}


# ---- links, for example ?data=moons&dim=3&a.loss=facenet&a.m=0.2&sides=1&then=40:a.m=0.5;60:rate=0.01
def from_query(query: Mapping[str, str]) -> Toy:
    """The state of a link."""
    usual = Toy()
    count = 1 if query.get("sides") == "1" else 2
    plain = {k: query[k] for k in ("data", "part", "normalize", "optimiser", "rate", *LIMITS) if k in query}
    toy = toy_of(plain | {"sides": [_side_query(query, LETTERS[i], usual.sides[i]) for i in range(count)]})
    changes = []
    sides, rate = toy.sides, toy.rate
    for part in query.get("then", "")[:4000].split(";")[:MOST_CHANGES]:
        at, _, settings = part.partition(":")
        if untrusted.finite(at) is None:
            continue
        named = dict(setting.split("=", 1) for setting in settings.split(",") if "=" in setting)
        sides = tuple(side_of(_side_query(named, LETTERS[i], s), s) for i, s in enumerate(sides))
        rate = untrusted.bounded(named.get("rate"), *RATES, rate)
        changes.append({"at": at, "sides": [_side(s) for s in sides], "rate": rate})
    return toy_of(to_json(toy) | {"changes": changes})


def _side_query(query: Mapping[str, str], letter: str, before: LossSide) -> dict[str, Any]:
    given = {k.removeprefix(f"{letter}."): v for k, v in query.items() if k.startswith(f"{letter}.")}
    same = given.get("loss", before.loss) == before.loss
    named = {"loss": given.get("loss", before.loss), "moves": given.get("moves", before.moves)}
    named |= {k: given.get(f"pooling.{k}".removesuffix(".pooling"), getattr(before, k)) for k in GATED}
    return named | {"hyper": (dict(before.hyper) if same else {}) | given}


def to_query(toy: Toy) -> dict[str, str]:
    """What differs from the defaults, as readable query parameters."""
    usual = Toy()
    names = ("data", "part", "optimiser", *LIMITS)
    query = {k: str(getattr(toy, k)) for k in names if getattr(toy, k) != getattr(usual, k)}
    if toy.normalize != usual.normalize:
        query["normalize"] = str(int(toy.normalize))
    if toy.rate != usual.rate:
        query["rate"] = untrusted.plain(toy.rate)
    if len(toy.sides) == 1:
        query["sides"] = "1"
    query |= _sides_to_query(toy.sides, usual.sides)
    parts, before, rate = [], toy.sides, toy.rate
    for change in toy.changes:
        named = _sides_to_query(change.sides, before)
        if change.rate != rate:
            named["rate"] = untrusted.plain(change.rate)
        if named:
            parts.append(f"{change.at}:{','.join(f'{k}={v}' for k, v in named.items())}")
        before, rate = change.sides, change.rate
    return query | ({"then": ";".join(parts)} if parts else {})


def _sides_to_query(sides: tuple[LossSide, ...], before: tuple[LossSide, ...]) -> dict[str, str]:
    query: dict[str, str] = {}
    for letter, side, old in zip(LETTERS, sides, before, strict=False):
        if side.loss != old.loss:
            query[f"{letter}.loss"] = side.loss
        if side.moves != old.moves:
            query[f"{letter}.moves"] = side.moves
        for key in GATED:
            if getattr(side, key) != getattr(old, key):
                name = f"pooling.{key}".removesuffix(".pooling")
                query[f"{letter}.{name}"] = untrusted.plain(getattr(side, key))
        known = old.hyper if side.loss == old.loss else losses.describe(side.loss).defaults
        query |= {f"{letter}.{k}": untrusted.plain(v) for k, v in side.hyper.items() if v != known[k]}
    return query
