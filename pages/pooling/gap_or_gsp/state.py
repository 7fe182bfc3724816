"""The state of the page GAP or GSP: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from dmlcore.data.synthetic import tokens
from dmlcore.models.networks import TOKEN_BOUND
from dmlcore.replay import recorded_training
from dmlcore.replay.recorded_training import LiveSpec
from dmlcore.spec import RunSpec
from pages.shared.state import untrusted

Pooled = Literal["gap", "gsp"]
POOLINGS: tuple[Pooled, ...] = get_args(Pooled)
MOST_CHANGES = 12
MOST_STEPS = 6000  # of a history here; a run goes on
UNASKED = 600  # steps that play when the page opens by itself
PART = "validation"
PER_CLASS = 16  # bags of each class that are watched and scored
MEMORY = 1024  # pooled vectors from which the prototypes of GSP are chosen, as in the source

# The ranges of what a link may say. Prototypes: twice as many must fit into the memory.
LIMITS: dict[str, tuple[float, float]] = {
    "mu": (0.05, 1.0),
    "epsilon": (0.5, 200.0),
    "rate": (1e-5, 1e-2),
    "margin": (0.02, 0.8),
    "prototypes": (1, 256),
    "warmup": (0, 5000),
    "seed": (0, 2**31 - 1),
    "tau": (0.0, 0.2),
}
WHOLE = ("prototypes", "warmup", "seed")
ON_THE_WAY = ("mu", "epsilon", "rate", "margin")  # can change while it trains


@dataclass(frozen=True)
class GateChange:
    """What is in force after step `at`."""

    at: int
    mu: float
    epsilon: float
    rate: float
    margin: float


@dataclass(frozen=True)
class PoolingStudy:
    """Two trainings of the same tokens on the same bags, in the same order: one with GAP, one with GSP.

    mu, epsilon, prototypes, warmup: of GSP, warmup in steps that average before its prototypes are placed; rate: of
    Adam; margin: what the contrastive loss keeps between bags of two classes; tau: a token is active in a class above
    this pooling weight. (1/680 is 1/(10 m) for 68 tokens: so low that the shared tokens are active under any pooling.)
    """

    mu: float = 0.2
    epsilon: float = 20.0
    prototypes: int = 64
    rate: float = 5e-4
    margin: float = 0.3841
    warmup: int = 0
    seed: int = 0
    tau: float = 0.05
    changes: tuple[GateChange, ...] = ()

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
            "data.name=tokens",
            "model.name=tokens",
            "model.embedding_dim=2",
            "model.normalize=false",
            f"pooling.name={pooling}",
            *(gsp if pooling == "gsp" else []),
            "loss.name=contrastive",
            "loss.m_pos=0.0",
            f"loss.m_neg={now['margin']!r}",
            "batch.classes=16",
            "batch.samples=4",
            "optimiser.name=adam",
            f"optimiser.learning_rate={now['rate']!r}",
            "schedule.steps=2000",
            "schedule.validate_every=100",
        ]

    def live(self, pooling: Pooled) -> LiveSpec:
        """The training of one side, changes on the way included; those that do not concern it are left out."""
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
        return LiveSpec(base.run(pooling), tuple(changes), PER_CLASS, (PART,))


@dataclass(frozen=True)
class StudyPreset:
    """A state worth a look, as the query of its link."""

    title: str
    caption: str
    query: str

    @property
    def parsed(self) -> dict[str, str]:
        """The query as a mapping."""
        return dict(parse_qsl(self.query))


PRESETS = (
    StudyPreset(
        "sharp gate",
        "A fifth of each bag passes a sharp gate. At step 16 its prototypes are placed where the bags are, amid the "
        "shared tokens, and at first it prefers these; then prototypes and own tokens find each other, and the shared "
        "ones lose their weight. Under GAP they keep half of it for ever.",
        "",
    ),
    StudyPreset(
        "decided settings",
        "What the study from the command line uses: μ = 0.5, ε = 5, learning rate 0.0001, and 4,096 steps of plain "
        "averaging before the prototypes are placed. Until then both sides are the same training.",
        "mu=0.5&epsilon=5&rate=0.0001&warmup=4096&tau=0.00147059",
    ),
    StudyPreset(
        "soft gate",
        "The decided gate, without its warm-up and ten times as fast: as μ = 0.5 lets half of each bag pass and ε = 5 "
        "makes little difference between near and far, much of the shared tokens' weight stays.",
        "mu=0.5&epsilon=5&rate=0.001",
    ),
    StudyPreset("μ = 1", "With μ = 1 everything passes the gate: GSP is GAP, step for step.", "mu=1"),
    StudyPreset(
        "a margin that fits",
        "Sixteen classes cannot all stay 0.384 apart in a box of side 0.6: that margin drives tokens into its corners. "
        "With 0.15 there is room: the plain average does far better too, and GSP's lead is smaller.",
        "margin=0.15",
    ),
    StudyPreset(
        "few prototypes",
        "Four prototypes for sixteen classes do much of the work: the gate only has to tell near from far, not one "
        "class from another.",
        "prototypes=4",
    ),
)


def study_of(data: Any) -> PoolingStudy:
    """A valid study from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
    data = data if isinstance(data, Mapping) else {}
    base = PoolingStudy(**_numbers(data, PoolingStudy(), tuple(LIMITS)))
    given = data.get("changes")
    found: dict[int, GateChange] = {}
    for change in given[:MOST_CHANGES] if isinstance(given, list) else []:
        if isinstance(change, Mapping):
            at = int(untrusted.bounded(change.get("at"), 0, MOST_STEPS, 0))
            found[at] = GateChange(at, **_numbers(change, base, ON_THE_WAY))
    return replace(base, changes=tuple(found[at] for at in sorted(found)))


def _numbers(data: Mapping[str, Any], usual: Any, names: tuple[str, ...]) -> dict[str, Any]:
    numbers = {n: untrusted.bounded(data.get(n), *LIMITS[n], getattr(usual, n)) for n in names}
    return {n: int(x) if n in WHOLE else x for n, x in numbers.items()}


def to_json(study: PoolingStudy) -> dict[str, Any]:
    """Plain data that `study_of` reads back."""
    plain = {field.name: getattr(study, field.name) for field in fields(PoolingStudy)}
    return plain | {"changes": [vars(change) for change in study.changes]}


def from_query(query: Mapping[str, str]) -> PoolingStudy:
    """The study of a link, for example ?mu=0.5&epsilon=5&then=200:mu=0.2;400:rate=0.0001."""
    base = study_of(dict(query) | {"changes": None})
    changes: list[dict[str, Any]] = []
    in_force: dict[str, Any] = base.in_force(0)
    for part in query.get("then", "")[:4000].split(";")[:MOST_CHANGES]:
        at, _, settings = part.partition(":")
        named = dict(pair.split("=", 1) for pair in settings.split(",") if "=" in pair)
        if untrusted.finite(at) is None or not named.keys() & set(ON_THE_WAY):
            continue
        in_force = in_force | {k: v for k, v in named.items() if k in ON_THE_WAY and untrusted.finite(v) is not None}
        changes.append({"at": at} | in_force)
    return study_of(to_json(base) | {"changes": changes})


def to_query(study: PoolingStudy) -> dict[str, str]:
    """What differs from the defaults, as readable query parameters."""
    usual = PoolingStudy()
    query = {n: _plain(getattr(study, n)) for n in LIMITS if getattr(study, n) != getattr(usual, n)}
    parts, before = [], study.in_force(-1)
    for change in study.changes:
        now = study.in_force(change.at)
        if settings := [f"{n}={_plain(x)}" for n, x in now.items() if x != before[n]]:
            parts.append(f"{change.at}:{','.join(settings)}")
        before = now
    return query | ({"then": ";".join(parts)} if parts else {})


def _plain(number: float) -> str:
    return str(number) if isinstance(number, int) else untrusted.plain(number)


def options() -> dict[str, Any]:
    """What the panel offers."""
    return {
        "limits": LIMITS | {"steps": MOST_STEPS, "changes": MOST_CHANGES, "unasked": UNASKED},
        "onTheWay": ON_THE_WAY,
        "memory": MEMORY,
        "bound": TOKEN_BOUND,
        "classes": [f"tokens {ids[0]} to {ids[-1]}" for ids in map(tokens.token_ids_of, range(tokens.CLASSES))],
        "sentence": "Both sides start from the same tokens and see the same batches of 16 × 4 bags; only the pooling "
        "differs. Change a slider while it runs: from that step on it is another training.",
        "hint": "Point at a token or a bag, or choose a class: its tokens, bags and hull stand out, and here is said "
        "which shared tokens it still uses.",
        "presets": [{"title": p.title, "caption": p.caption, "state": to_json(from_query(p.parsed))} for p in PRESETS],
    }
