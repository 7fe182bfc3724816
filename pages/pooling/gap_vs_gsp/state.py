"""State of the GAP vs GSP page, parsed from untrusted URLs and messages."""

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
DATA = {tokens.FEW: tokens.FEW_INFO.name, tokens.CLASSES: tokens.INFO.name}  # data set for each number of classes
BATCH = 64  # bags per batch
MOST_CHANGES = 12
MOST_STEPS = 6000  # maximum number of steps on this page; a run started from the page may have more
UNASKED = 600  # number of steps that play automatically when the page opens
SPLIT = "validation"
PER_CLASS = 16  # number of bags per class that are drawn and scored
MEMORY = 1024  # number of pooled vectors from which GSP chooses its prototypes, as in the source


@dataclass(frozen=True)
class GateChange:
    """Settings in force after step `at`: gate parameters, learning rate and margin."""

    at: int
    mu: float
    epsilon: float
    rate: float
    margin: float


MU, EPSILON, RATE, MARGIN = NumberKind(0.05, 1.0), NumberKind(0.5, 200.0), NumberKind(1e-5, 1e-2), NumberKind(0.02, 0.8)
# settings that can change during training
ON_THE_WAY = {"mu": MU, "epsilon": EPSILON, "rate": RATE, "margin": MARGIN}


class ClassCount(Kind):
    """State field for the number of classes; only those in DATA are valid."""

    def read(self, value: Any, default: Any) -> Any:
        return int(value) if str(value) in map(str, DATA) else default


def _first(study: Any) -> GateChange:
    return GateChange(0, study.mu, study.epsilon, study.rate, study.margin)


@dataclass(frozen=True)
class PoolingStudy(PageState):
    """Two training runs on the same bags in the same order, from the same initial tokens: one with GAP, one with GSP.

    Attributes:
        classes: Number of classes, 4 or 16.
        mu, epsilon, prototypes: Parameters of GSP.
        warmup: Steps of average pooling before the prototypes of GSP are placed.
        rate: Learning rate of Adam.
        margin: Margin of the contrastive loss: distance required between bags of different classes.
        seed: Seed of both runs.
        tau: Pooling weight above which a token is active in a class. The preset 1/680 is 1/(10 m) for m = 68 tokens,
            which is low enough for shared tokens to be active with any pooling.
        changes: Changes of the settings during training.
    """

    classes: Annotated[int, ClassCount(always=True)] = tokens.CLASSES
    mu: Annotated[float, MU] = 0.2
    epsilon: Annotated[float, EPSILON] = 20.0
    # the memory must hold at least twice as many vectors as there are prototypes
    prototypes: Annotated[int, Whole(1, 256)] = 64
    rate: Annotated[float, RATE] = 5e-4
    margin: Annotated[float, MARGIN] = 0.3841
    warmup: Annotated[int, Whole(0, 5000)] = 0
    seed: Annotated[int, Whole(0, 2**31 - 1)] = 0
    tau: Annotated[float, NumberKind(0.0, 0.2)] = 0.05
    changes: Annotated[tuple[GateChange, ...], Changes(_first, ON_THE_WAY, MOST_CHANGES, MOST_STEPS, key="then")] = ()

    def in_force(self, step: int) -> dict[str, float]:
        """Return the values of mu, epsilon, rate and margin that step `step` + 1 uses."""
        latest = next((c for c in reversed(self.changes) if c.at <= step), self)
        return {name: getattr(latest, name) for name in ON_THE_WAY}

    def run(self, pooling: Pooled, step: int = 0) -> RunSpec:
        """Return the spec of the run with this pooling and the settings in force at `step`, without later changes."""
        return RunSpec().with_overrides(self.overrides(pooling, step))

    def overrides(self, pooling: Pooled, step: int = 0) -> list[str]:
        """Return the spec of `run` as key=value overrides of the default spec."""
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
        """Return the training run with this pooling, including the setting changes that affect it."""
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


PRESETS = (  # a URL without parameters opens the first preset
    Preset(
        "Four classes",
        "The plane has room for four classes. A fifth of each bag passes a sharp gate. At step 16 its prototypes are "
        "placed among the bags; from then on they converge to the tokens of single classes. With GAP the shared tokens "
        "always keep about half of the weight.",
        "classes=4",
    ),
    Preset(
        "Soft gate",
        "Half of each bag passes, and ε = 5 hardly separates near tokens from far ones, so the shared tokens keep much "
        "of their weight.",
        "classes=4&mu=0.5&epsilon=5",
    ),
    Preset("μ = 1", "With μ = 1 everything passes the gate, so GSP equals GAP at every step.", "classes=4&mu=1"),
    Preset(
        "Sixteen classes",
        "The setting of the source. The plane is crowded: the prototypes are placed among the shared tokens, so the "
        "gate prefers these at first and leaves them out slowly.",
        "classes=16",
    ),
    Preset(
        "Settings of the study",
        "The settings of the study of sixteen classes: μ = 0.5, ε = 5, learning rate 0.0001, and 4,096 steps of plain "
        "averaging before the prototypes are placed. Until then both sides are identical.",
        "classes=16&mu=0.5&epsilon=5&rate=0.0001&warmup=4096&tau=0.00147059",
    ),
    Preset(
        "A margin that fits into the box",
        "Sixteen classes cannot all be 0.384 apart in a box of side 0.6; that margin drives tokens into the corners. A "
        "margin of 0.15 fits: the plain average improves a lot too, and GSP's lead is smaller.",
        "classes=16&margin=0.15",
    ),
    Preset(
        "Few prototypes",
        "Four prototypes suffice for much of the effect on sixteen classes, because the gate only has to separate near "
        "tokens from far ones, not one class from another.",
        "classes=16&prototypes=4",
    ),
)


def options() -> dict[str, Any]:
    """Return the limits, texts and presets for the page's component."""
    return {
        "limits": PoolingStudy.limits() | {"steps": MOST_STEPS, "changes": MOST_CHANGES, "unasked": UNASKED},
        "onTheWay": tuple(ON_THE_WAY),
        "memory": MEMORY,
        "bound": TOKEN_BOUND,
        "classes": [f"tokens {ids[0]} to {ids[-1]}" for ids in map(tokens.token_ids_of, range(tokens.CLASSES))],
        "sentence": f"Both sides start from the same tokens and train on the same {BATCH} bags per step; only the "
        "pooling differs. You can change a slider while it runs; the new value applies from that step on.",
        "hint": "Point at a token or a bag, or choose a class to highlight its tokens, bags and hull and to see which "
        "shared tokens it still uses.",
        "presets": [p.to_json(PoolingStudy) for p in PRESETS],
    }
