"""State of the Toy training page, parsed from untrusted URLs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self, get_args

from dmlcore import losses, pooling
from dmlcore.replay import recorded_training, toy_runs
from dmlcore.replay.recorded_training import LiveSpec, Moves
from dmlcore.spec import RunSpec
from pages.shared.state import page_state, untrusted
from pages.shared.state.page_state import ChoiceKind, Flag, Hyper, Kind, Loss, NumberKind, PageState, Whole
from pages.shared.timeline.changes import Changes

MOST_CHANGES = 10
MOST_STEPS = 4000
RATE = NumberKind(1e-5, 0.5)
WATCHED, WATCHED_IMAGES = 320, 170  # approximate number of samples that are drawn: for other data, and for images
LETTERS = ("a", "b")
MOVES: tuple[Moves, ...] = get_args(Moves)
# allowed embedding dimensions; embeddings with 64 dimensions are drawn by two principal components
DIMENSIONS = (2, 3, 64)
# the excluded poolings are too slow for live training
POOLINGS = tuple(name for name in pooling.names() if name not in ("gsop", "solar"))
# parameters of poolings with prototypes, smaller than the defaults to train faster
PROTOTYPES = {"prototypes": 32, "memory": 512}


def every_loss() -> tuple[str, ...]:
    """Return the names of all triplet and batch losses."""
    return (*losses.names(), *losses.batch_names())


class Acting(ChoiceKind):
    """State field for the active forces, which train the network: "both", "pulls" or "pushes".

    Losses in which pulls and pushes cannot be separated allow only "both".
    """

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> Any:
        options = MOVES if sided(fields["loss"]) else ("both",)
        return untrusted.one_of(data.get(name), options, default.moves if default.moves in options else "both")


@dataclass(frozen=True)
class LossSide(PageState):
    """Settings that can differ between the two sides (training runs): loss, active forces, and pooling."""

    loss: Annotated[str, Loss(every_loss)] = "ranking"
    hyper: Annotated[Mapping[str, float | str], Hyper()] = field(
        default_factory=lambda: untrusted.hyper("ranking", {"m": 0.1})
    )
    moves: Annotated[Moves, Acting(MOVES)] = "both"
    pooling: Annotated[str, ChoiceKind(POOLINGS)] = "gap"  # for image data sets only; cannot change during training
    # mu and epsilon apply only if the pooling has a gate
    mu: Annotated[float, NumberKind(0.05, 1.0, key="pooling.mu")] = 0.3
    epsilon: Annotated[float, NumberKind(0.5, 200.0, key="pooling.epsilon")] = 5.0

    @property
    def gated(self) -> bool:
        """True if the pooling has a gate with the parameters mu and epsilon."""
        return self.pooling in ("gsp", "gsp_gmp")


@dataclass(frozen=True)
class SidesChange:
    """Settings in force after step `at`: those of each side, and the learning rate of all sides."""

    at: int
    sides: tuple[LossSide, ...]
    rate: float


SECOND = LossSide("distance_sensitive", untrusted.hyper("distance_sensitive", {"m1": -2.25}))  # as in Table 4.1


class SidesKind(Kind):
    """State field for the settings of the sides after a change; number and poolings of the sides cannot change.

    In a URL, the parameters of the first side start with "a.", those of the second with "b.".
    """

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> tuple[LossSide, ...]:
        given = data.get(name)
        sides = zip([*(given if isinstance(given, list) else []), None, None], default.sides, strict=False)
        return tuple(replace(LossSide.of(each, side), pooling=side.pooling) for each, side in sides)

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        prefixes = [f"{letter}." for letter in LETTERS]
        named = [{k.removeprefix(p): v for k, v in query.items() if k.startswith(p)} for p in prefixes]
        return [page_state.from_query(LossSide.kinds, each) for each in named]

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        pairs = zip(LETTERS, state.sides, default.sides, strict=False)
        query = [(letter, page_state.to_query(LossSide.kinds, side, old)) for letter, side, old in pairs]
        return {f"{letter}.{k}": text for letter, texts in query for k, text in texts.items()}

    def json(self, value: Any) -> Any:
        return [side.to_json() for side in value]


class OneOrTwo(SidesKind):
    """State field for the initial settings of the sides; there are two unless the URL contains sides=1."""

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> tuple[LossSide, ...]:
        given = data.get(name)
        given = given[:2] if isinstance(given, list) and given else [None, None]
        return tuple(LossSide.of(each, side) for each, side in zip(given, default.sides, strict=False))

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        return super().from_query(name, query)[: 1 if query.get("sides") == "1" else 2]

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        return ({"sides": "1"} if len(state.sides) == 1 else {}) | super().to_query(name, state, default)


def _first(toy: Any) -> SidesChange:
    return SidesChange(0, toy.sides, toy.rate)


ON_THE_WAY = {"sides": SidesKind(), "rate": RATE}


@dataclass(frozen=True)
class Toy(PageState):
    """One or two training runs (sides) on the same data and with the same seed, compared step by step."""

    data: Annotated[str, ChoiceKind(toy_runs.list_sets, always=True)] = "toy"
    split: Annotated[str, ChoiceKind(("train", "test"), key="part")] = "train"
    seed: Annotated[int, Whole(0, 2**31 - 1)] = 0
    dim: Annotated[int, Whole(2, 64)] = 2
    normalize: Annotated[bool, Flag()] = False
    hidden: Annotated[int, Whole(2, 256)] = toy_runs.HIDDEN
    classes: Annotated[int, Whole(2, 16)] = 4
    samples: Annotated[int, Whole(2, 32)] = 8
    optimiser: Annotated[str, ChoiceKind(("rmsprop", "adam"))] = "rmsprop"
    rate: Annotated[float, RATE] = 0.005
    sides: Annotated[tuple[LossSide, ...], OneOrTwo()] = (LossSide(), SECOND)
    changes: Annotated[tuple[SidesChange, ...], Changes(_first, ON_THE_WAY, MOST_CHANGES, MOST_STEPS, key="then")] = ()

    def settled(self) -> Self:
        """Return a copy with a dimension in DIMENSIONS and with no more classes per batch than the data set has."""
        dims = [d for d in DIMENSIONS if d <= self.dim and (self.images or d <= 3)]
        labels = self.dataset.labels[self.dataset.splits["train"]]
        return replace(self, dim=dims[-1], classes=min(self.classes, len(set(labels.tolist()))))

    def in_force(self, step: int) -> tuple[tuple[LossSide, ...], float]:
        """Return the settings of the sides and the learning rate that training uses after step `step`."""
        change = next((c for c in reversed(self.changes) if c.at <= step), None)
        return (change.sides, change.rate) if change else (self.sides, self.rate)

    def run(self, index: int, step: int = 0, steps: int = 400) -> RunSpec:
        """Return the spec of a run of `steps` steps with the settings of side `index` that are in force at `step`.

        Later changes are ignored.
        """
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
        """Return the spec of the training run of side `index`, including all changes during training."""
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
        classes = len(set(self.dataset.labels[self.dataset.splits[self.split]].tolist()))
        watched = WATCHED_IMAGES if self.images else WATCHED
        return LiveSpec(self.run(index), tuple(changes), max(2, watched // classes), (self.split,))

    @property
    def images(self) -> bool:
        """True if the data are images, which are embedded by pooling the feature maps of a frozen network."""
        return self.data in toy_runs.IMAGES

    @property
    def shown_dim(self) -> int:
        """Number of dimensions in which the embeddings are drawn; embeddings with more than 3 are projected to 2."""
        return self.dim if self.dim <= 3 else 2

    @property
    def dataset(self) -> Any:
        """Data set of both training runs."""
        return toy_runs.dataset(self.data, self.seed)


def _pooled(side: LossSide) -> dict[str, Any]:
    more: dict[str, Any] = PROTOTYPES | {"mu": side.mu, "epsilon": side.epsilon} if side.gated else {}
    return {"name": side.pooling, "parameters": more}


def _toml(value: float | str) -> str:
    return value if isinstance(value, str) else repr(float(value))


def sided(loss: str) -> bool:
    """Return True if pulls and pushes of the loss can be separated, see `recorded_training`."""
    return loss in losses.names() or loss in ("contrastive", "threshold_consistent_margin")
