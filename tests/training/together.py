"""Steps of small training runs on several processes of this machine, and on one, for tests and ddp.py.

The processes are forked from one that has torch loaded, so that starting a group is cheap.
"""

import functools
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.losses import LOSSES
from dmlcore.mining import MINERS
from dmlcore.processes import group, local
from dmlcore.spec import RunSpec
from dmlcore.training import optimisers
from dmlcore.training.build import build, prepare_device
from dmlcore.training.loop import step
from dmlcore.training.methods.start_distance import StartDistance
from dmlcore.training.state import TrainingState
from dmlcore.typing import Floats

CLASSES, EACH = 6, 12
INPUTS = {
    "vectors": ["model.hidden=[16]", "batch.classes=4", "batch.samples=4"],
    # 15 samples: shares of two sizes
    "images": ["data.augment=false", "model.name=conv4_32", "batch.classes=5", "batch.samples=3"],
    "tokens": ["model.name=tokens", "batch.classes=5", "batch.samples=3"],
}
SHARED = ["model.embedding_dim=12", "optimiser.name=sgd", "optimiser.learning_rate=0.001", "device=cpu"]
GSP = ["pooling.name=gsp", "pooling.prototypes=4", "pooling.memory=20", "pooling.zero_shot=0.1"]
FEW = ("facenet", "multi_similarity", "facility_location", "proxy_anchor", "wedl", "batch_hard", "distance_weighted")


@dataclass(frozen=True)
class Case:
    """A training run whose gradients are compared: its settings, data, and number of steps."""

    name: str
    overrides: tuple[str, ...] = ()
    kind: Literal["vectors", "images", "tokens"] = "vectors"
    steps: int = 1
    held: bool = False  # keeps embeddings close to their start, which a spec allows only for pretrained weights
    few: bool = False  # True for the few cases that represent all others

    def spec(self) -> RunSpec:
        """Return the spec as the form would create it."""
        spec = RunSpec().with_overrides([*SHARED, *INPUTS[self.kind], *self.overrides])
        loss = spec.loss.model_copy(update={"start_weight": 0.5 if self.held else 0.0})
        return spec.model_copy(update={"loss": loss})


def cases() -> list[Case]:
    """Return a case for every loss, every miner, and everything that uses a batch as a whole."""
    losses = [Case(name, (f"loss.name={name}",), few=name in FEW) for name in LOSSES]
    miners = [
        Case(f"ranking, {name}", ("loss.name=ranking", f"miner.name={name}"), few=name in FEW)
        for name in MINERS
        if name != "all"
    ]
    batches = [
        Case("memory", ("loss.name=contrastive", "loss.memory=2", "loss.memory_start=0"), steps=4),
        Case("mined batches", ("miner.name=semi_hard", "batch.sampler=mined", "batch.refresh=2"), steps=3),
        Case("classifier of features", ("loss.name=wel", "loss.classifier_input=features"), steps=2),
        Case("held to the start", held=True, steps=3),
        Case("threshold-consistent margin", ("loss.tcm=0.5", "loss.tcm_m_neg=0.1"), steps=2),
        Case("clipped", ("optimiser.clip_norm=0.01",), steps=2),
        Case("batch norm", ("loss.name=multi_similarity",), kind="images", steps=3),
        Case("generalized sum pooling of images", ("loss.name=contrastive", *GSP), kind="images", steps=3),
        Case("generalized sum pooling of tokens", ("loss.name=contrastive", *GSP), kind="tokens", steps=3),
        Case("second-order pooling", ("pooling.name=gsop", "loss.name=margin"), kind="images"),
    ]
    return [*losses, *miners, *(replace(case, few=True) for case in batches)]


def data(kind: str, precision: str) -> Dataset:
    """Return classes that are slightly separated."""
    random = np.random.default_rng(0)
    labels = np.arange(CLASSES * EACH) % CLASSES
    shape = {"vectors": (10,), "images": (3, 32, 32), "tokens": (9,)}[kind]
    inputs: Any = random.normal(size=(CLASSES, *shape))[labels] + random.normal(size=(len(labels), *shape))
    if kind == "images":
        inputs = 128 + 40 * inputs
    inputs = (10 + 4 * inputs).clip(0, 29).astype(np.int64) if kind == "tokens" else inputs.astype(precision)
    rows = np.arange(len(labels))
    splits = {"train": rows[:48], "validation": rows[48:60], "test": rows[60:]}
    return Dataset("drawn", inputs, labels, tuple("abcdef"), splits, None, ())


def made(case: Case, precision: str, threads: int = 1, device: str = "cpu") -> TrainingState:
    """Return the state before the first step."""
    state = build(case.spec(), data(case.kind, precision), prepare_device(device, threads))
    if precision == "float64":
        state.model.double()
        state.loss.double()
        for moments in state.optimiser.state.values():
            moments.update({name: moment.double() for name, moment in moments.items()})
        for method in state.methods:
            if isinstance(method, StartDistance):
                method.reference.double()
    state.model.train()
    projection = getattr(getattr(state.model, "head", None), "projection", None)
    if projection is not None:
        # Prototypes start at pooled features. Those of long features are on the unit sphere, where clipping to the ball
        # has a kink, so that rounding decides their first gradient.
        with torch.no_grad():
            projection.weight *= 0.05
    return state


def gradients(case: Case, precision: str, device: str = "cpu") -> Floats:
    """Return the gradient of each step (steps, parameters), padded with zeros for steps with fewer parameters."""
    state = made(case, precision, device=device)
    if processes.shares_work():
        processes.synchronise(state.model)
    every = [*optimisers.parameters(state.optimiser)]
    rows = []
    for number in range(1, case.steps + 1):
        step(state, number)
        rows.append(torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in every]))
    assert processes.size() == 1 or _alike(torch.cat([p.detach().flatten() for p in every])), case.name
    return torch.stack(rows).double().cpu().numpy()


def _alike(numbers: Tensor) -> bool:
    """Return True if all processes have identical bits."""
    rows = processes.group.stack_over_processes(numbers)
    return all(torch.equal(row, numbers) for row in rows)


def error(one: Floats, other: Floats) -> float:
    """Return the largest |difference| / |gradient| of a step."""
    return float((np.linalg.norm(one - other, axis=1) / np.linalg.norm(other, axis=1)).max())


def run_together(
    count: int,
    work: Callable[..., Any],
    *arguments: Any,
    timeout: float = 120,
    fork: bool = False,
    one_card: bool = False,
) -> None:
    """Call work(*arguments), a function of a module, in each process of a group; raise an error if one process does.

    With `fork`, the processes are forked from this one, which has torch loaded and no threads. With `one_card`, they
    share a
    GPU, which NCCL refuses, so that gloo transfers its tensors.
    """
    context: Any = multiprocessing.get_context("fork" if fork else "forkserver")
    if not fork:
        context.set_forkserver_preload([__name__])
    with tempfile.TemporaryDirectory() as folder:
        members = [
            context.Process(target=_member, args=(Path(folder), rank, count, one_card, work, arguments))
            for rank in range(count)
        ]
        for member in members:
            member.start()
        for member in members:
            member.join(timeout)
            if member.exitcode is None:
                member.kill()
        codes = [member.exitcode for member in members]
        assert codes == [0] * count, codes


def _by_gloo(begin: Callable[..., None], backend: str, *where: Any, **more: Any) -> None:
    begin("gloo", *where, **more)


def _member(
    folder: Path, rank: int, count: int, one_card: bool, work: Callable[..., Any], arguments: Iterable[Any]
) -> None:
    torch.set_num_threads(1)
    os.environ.update(local._environment(folder, rank, count))
    if one_card:  # as if each were on a separate machine
        os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
        group.dist.init_process_group = functools.partial(_by_gloo, group.dist.init_process_group)
    local.join_local()
    try:
        work(*arguments)
    finally:
        group.leave()
