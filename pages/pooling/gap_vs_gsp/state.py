"""The state of the page GAP or GSP: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from dmlcore.data.synthetic import tokens
from dmlcore.models.networks import TOKEN_BOUND
from dmlcore.replay import recorded_training
from dmlcore.replay.recorded_training import LiveSpec
from dmlcore.spec import RunSpec
from pages.shared.state.page_state import Kind, NumberKind, PageState, Preset, Whole
from pages.shared.timeline.changes import Changes

Pooled = Literal["gap", "gsp"]
POOLINGS: tuple[Pooled, ...] = get_args(Pooled)
DATA = {tokens.FEW: tokens.FEW_INFO.name, tokens.CLASSES: tokens.INFO.name}  # by number of classes
BATCH = 64  # bags
MOST_CHANGES = 12
MOST_STEPS = 6000  # of a history here; a run goes on
UNASKED = 600  # steps that play when the page opens by itself
SPLIT = "validation"
PER_CLASS = 16  # bags of each class that are watched and scored
MEMORY = 1024  # pooled vectors from which the prototypes of GSP are chosen, as in the source


@dataclass(frozen=True)
class GateChange:
    """What is in force after step `at`."""

    at: int
    mu: float
    epsilon: float
    rate: float
    margin: float


MU, EPSILON, RATE, MARGIN = NumberKind(0.05, 1.0), NumberKind(0.5, 200.0), NumberKind(1e-5, 1e-2), NumberKind(0.02, 0.8)
ON_THE_WAY = {"mu": MU, "epsilon": EPSILON, "rate": RATE, "margin": MARGIN}  # can change while it trains


class ClassCount(Kind):
    """How many classes there are: as many as a data set has."""

    def read(self, value: Any, default: Any) -> Any:
        return int(value) if str(value) in map(str, DATA) else default


def _first(study: Any) -> GateChange:
    return GateChange(0, study.mu, study.epsilon, study.rate, study.margin)


@dataclass(frozen=True)
class PoolingStudy(PageState):
    """Two training runs of the same tokens on the same bags, in the same order: one with GAP, one with GSP.

    mu, epsilon, prototypes, warmup: of GSP, warmup in steps that average before its prototypes are placed; rate: of
    Adam; margin: what the contrastive loss keeps between bags of two classes; tau: a token is active in a class above
    this pooling weight. (1/680 is 1/(10 m) for 68 tokens: so low that the shared tokens are active under any pooling.)
    """

    classes: Annotated[int, ClassCount(always=True)] = tokens.CLASSES
    mu: Annotated[float, MU] = 0.2
    epsilon: Annotated[float, EPSILON] = 20.0
    prototypes: Annotated[int, Whole(1, 256)] = 64  # twice as many must fit into the memory
    rate: Annotated[float, RATE] = 5e-4
    margin: Annotated[float, MARGIN] = 0.3841
    warmup: Annotated[int, Whole(0, 5000)] = 0
    seed: Annotated[int, Whole(0, 2**31 - 1)] = 0
    tau: Annotated[float, NumberKind(0.0, 0.2)] = 0.05
    changes: Annotated[tuple[GateChange, ...], Changes(_first, ON_THE_WAY, MOST_CHANGES, MOST_STEPS, key="then")] = ()

    def in_force(self, step: int) -> dict[str, float]:
        """mu, epsilon, rate and margin that make step `step` + 1."""
        latest = next((c for c in reversed(self.changes) if c.at <= step), self)
        return {name: getattr(latest, name) for name in ON_THE_WAY}

    def run(self, pooling: Pooled, step: int = 0) -> RunSpec:
        """The run of one side with what is in force at a step, without the changes on the way."""
        return RunSpec().with_overrides(self.overrides(pooling, step))

    def overrides(self, pooling: Pooled, step: int = 0) -> list[str]:
        """That run as key=value for the command line."""
        now = self.in_force(step)
        gsp = [
            f"pooling.prototypes={self.prototypes}",
            f"pooling.mu={now['mu']!r}",
            f"pooling.epsilon={now['epsilon']!r}",
            f"pooling.memory={MEMORY}",
            f"pooling.warmup={self.warmup}",
        ]
        return [
            f'name="Tokens, {pooling.upper()}"',
            f"seed={self.seed}",
            f"data.name={DATA[self.classes]}",
            "model.name=tokens",
            "model.embedding_dim=2",
            "model.normalize=false",
            f"pooling.name={pooling}",
            *(gsp if pooling == "gsp" else []),
            "loss.name=contrastive",
            "loss.m_pos=0.0",
            f"loss.m_neg={now['margin']!r}",
            f"batch.classes={self.classes}",
            f"batch.samples={BATCH // self.classes}",
            "optimiser.name=adam",
            f"optimiser.learning_rate={now['rate']!r}",
            "schedule.steps=2000",
            "schedule.validate_every=100",
        ]

    def live(self, pooling: Pooled) -> LiveSpec:
        """The training run of one side, changes on the way included; those that do not concern it are left out."""
        changes, before = [], self.in_force(-1)
        keys = {"rate": "optimiser.learning_rate", "margin": "loss.m_neg"}
        if pooling == "gsp":
            keys |= {"mu": "pooling.mu", "epsilon": "pooling.epsilon"}
        for change in self.changes:
            given = [f"{key}={getattr(change, n)!r}" for n, key in keys.items() if getattr(change, n) != before[n]]
            if given:
                changes.append(recorded_training.SpecChange(change.at, tuple(given)))
            before = self.in_force(change.at)
        base = replace(self, changes=())
        return LiveSpec(base.run(pooling), tuple(changes), PER_CLASS, (SPLIT,))


PRESETS = (  # the first: what a bare address opens
    Preset(
        "four classes",
        "There is room in the plane for four classes. A fifth of each bag passes a sharp gate; at step 16 its "
        "prototypes are placed where the bags are, and from then on prototypes and own tokens find each other. Under "
        "GAP the shared tokens keep half of the weight for ever.",
        "classes=4",
    ),
    Preset(
        "soft gate",
        "Half of each bag passes, and ε = 5 makes little difference between near and far: much of the shared tokens' "
        "weight stays.",
        "classes=4&mu=0.5&epsilon=5",
    ),
    Preset("μ = 1", "With μ = 1 everything passes the gate: GSP is GAP, step for step.", "classes=4&mu=1"),
    Preset(
        "sixteen classes",
        "As in the source. The plane is crowded: at first the gate prefers the shared tokens, amid which its "
        "prototypes were placed, and then slowly leaves them out.",
        "classes=16",
    ),
    Preset(
        "decided settings",
        "Sixteen classes, as the study from the command line has them: μ = 0.5, ε = 5, learning rate 0.0001, and 4,096 "
        "steps of plain averaging before the prototypes are placed. Until then both sides are the same training run.",
        "classes=16&mu=0.5&epsilon=5&rate=0.0001&warmup=4096&tau=0.00147059",
    ),
    Preset(
        "a margin that fits",
        "Sixteen classes cannot all stay 0.384 apart in a box of side 0.6: that margin drives tokens into its corners. "
        "With 0.15 there is room: the plain average does far better too, and GSP's lead is smaller.",
        "classes=16&margin=0.15",
    ),
    Preset(
        "few prototypes",
        "Four prototypes for sixteen classes do much of the work: the gate only has to tell near from far, not one "
        "class from another.",
        "classes=16&prototypes=4",
    ),
)


def options() -> dict[str, Any]:
    """What the panel offers."""
    return {
        "limits": PoolingStudy.limits() | {"steps": MOST_STEPS, "changes": MOST_CHANGES, "unasked": UNASKED},
        "onTheWay": tuple(ON_THE_WAY),
        "memory": MEMORY,
        "bound": TOKEN_BOUND,
        "classes": [f"tokens {ids[0]} to {ids[-1]}" for ids in map(tokens.token_ids_of, range(tokens.CLASSES))],
        "sentence": f"Both sides start from the same tokens and see the same {BATCH} bags a step; only the pooling "
        "differs. Change a slider while it runs: from that step on it is another training run.",
        "hint": "Point at a token or a bag, or choose a class: its tokens, bags and hull stand out, and here is said "
        "which shared tokens it still uses.",
        "presets": [p.to_json(PoolingStudy) for p in PRESETS],
    }
