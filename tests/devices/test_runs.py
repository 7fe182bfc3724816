"""Complete runs on a device (trained, stopped and resumed, forked, evaluated) compared with those on the CPU."""

from __future__ import annotations

import contextlib
import functools
import threading
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore, scores
from dmlcore.training import batches, build, loop, metrics_log, samplers
from tests.devices.pretended import NAME, REAL, Record, pretended
from tests.devices.samples import few_of

SHORT = RunSpec().with_overrides(
    [
        *("model.hidden=[8]", "model.embedding_dim=8", "batch.classes=4", "batch.samples=2", "schedule.steps=5"),
        *("schedule.validate_every=3", "schedule.checkpoint_every=2", "schedule.measure_every=2"),
    ]
)
IMAGES = [
    *("model.name=conv4_32", "model.embedding_dim=8", "batch.classes=3", "batch.samples=2", "data.augment=true"),
    *("data.validation=none", "schedule.monitor_part=test"),
]
KINDS: dict[str, list[str]] = {
    "memory, consistent margin, warm-up, sgd": [
        *("loss.name=contrastive", "loss.memory=3", "loss.memory_start=2", "loss.tcm=0.3", "optimiser.name=sgd"),
        *("optimiser.clip_norm=1.0", "schedule.warm_up=3", "schedule.decay=cosine"),
    ],
    "proxies, plateau, adamw": [
        *("loss.name=proxy_nca", "loss.learning_rate=0.1", "optimiser.name=adamw", "schedule.plateau=1"),
        *("optimiser.clip_value=0.1", "schedule.cluster=true", "schedule.covering_every=3"),
    ],
    "mined batches, rmsprop": [
        *("batch.sampler=mined", "miner.name=semi_hard", "batch.refresh=3", "optimiser.name=rmsprop"),
    ],
    "neighbourhoods, random miner": [
        *("batch.sampler=neighbourhood", "batch.neighbours=2", "batch.refresh=3", "miner.name=distance_weighted"),
    ],
    "projections": [
        *("loss.name=triplet_proxy", "loss.per_class=2", "loss.batch_pairs=0.1", "loss.learning_rate=0.1"),
        *("projection.pool=4", "projection.patience=1", "projection.weight=0.5", "model.normalize=false"),
        *("model.lipschitz=true", "optimiser.learning_rate=1", "schedule.covering_every=2"),
        "schedule.validate_every=1",
    ],
    "read with neighbours": [
        *("loss.name=tuplet", "model.normalize=false", "conditioning.neighbours=3", "conditioning.after=2"),
        *("conditioning.continued=true", "batch.refresh=2", "conditioning.order=random"),
    ],
    "ensemble": [
        *("loss.name=wedl", "loss.compression=on", "loss.learning_rate=0.05", "loss.classifier=off"),
        *("loss.weights_rate=network", "model.embedding_dim=12"),
    ],
    "tokens with prototypes": [
        *("data.name=tokens", "model.name=tokens", "pooling.name=gsp", "pooling.prototypes=4", "pooling.memory=16"),
        *("pooling.warmup=1", "pooling.zero_shot=0.1", "loss.name=contrastive"),
    ],
    "images, resized crops, bfloat16": [
        *(*IMAGES, "data.crop=resized", "compute.precision=bfloat16"),
        *("pooling.name=gsp", "pooling.prototypes=4", "pooling.memory=8"),
    ],
    "images, read by processes": [*IMAGES, "data.crop=resized", "compute.workers=2"],
    "images, shifts, frozen backbone": [*IMAGES, "data.crop=shift", "model.freeze=backbone", "data.views=2"],
}


@pytest.fixture(autouse=True)
def _cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))


def without_a_card() -> contextlib.AbstractContextManager[object]:
    return mock.patch.object(build, "has_cuda", return_value=False)


@functools.cache
def noise() -> Dataset:
    labels = np.arange(36) % 3
    images = np.random.default_rng(0).integers(0, 256, (36, 3, 28, 28), np.uint8)
    splits = {"train": np.arange(24), "validation": np.arange(0), "test": np.arange(24, 36)}
    return Dataset("noise", images, labels, tuple("abc"), splits, None, ())


def train(run: Run, upto: int | None = None) -> Run:
    steps = iter(range(1000))
    with run.lock():
        run.update(state="queued")
        data = noise() if run.spec.model.name.startswith("conv") else few_of(run.spec.data.name)
        state = loop.train(run, dataset=data, stop=lambda: upto is not None and next(steps) == upto - 1)
    assert state.state == ("done" if upto is None else "cancelled"), state.message
    return run


@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_on_a_device_is_the_run_on_the_cpu_and_goes_on_bit_for_bit(kind: str, tmp_path: Path) -> None:
    store, spec = RunStore(tmp_path), SHORT.with_overrides(KINDS[kind])
    on_cpu = train(store.create(spec.with_overrides(["device=cpu"])))
    with pretended():
        whole, stopped = train(store.create(spec)), store.create(spec)
        train(stopped, upto=3)
        train(stopped)
    saved = [checkpoint.load(run.path) for run in (whole, stopped)]
    assert saved[0].digest == saved[1].digest
    assert saved[0].facts["device"] == NAME
    assert (whole.path / "metrics.jsonl").read_bytes() == (stopped.path / "metrics.jsonl").read_bytes()
    rows, expected = whole.metrics()[0], on_cpu.metrics()[0]
    assert {row["kind"] for row in rows} == {row["kind"] for row in expected}
    losses, wanted = ([row["loss"] for row in each if row["kind"] == "step"] for each in (rows, expected))
    # Kernels differ in their last digit, which grows from step to step, most of all with steps as large as one.
    # The kernel that crops images rounds some pixels to the next grey value.
    far = "bfloat16" in kind or (REAL and (spec.optimiser.learning_rate == 1 or "images" in kind))
    assert losses[:3] == pytest.approx(wanted[:3], rel=0.05 if far else 5e-3)


def test_a_fork_and_an_evaluation_on_a_device(tmp_path: Path) -> None:
    store, spec = (
        RunStore(tmp_path),
        SHORT.with_overrides(
            [
                *(*KINDS["proxies, plateau, adamw"], "schedule.keep_every=3"),
                *("batch.sampler=neighbourhood", "batch.neighbours=2", "batch.refresh=4"),
            ]
        ),
    )
    with pretended():
        parent = train(store.create(spec))
        fork = [f"fork.run={parent.id}", "fork.step=3"]
        same, changed = (
            train(store.create(spec.with_overrides([*fork, *more]))) for more in ([], ["loss.temperature=0.5"])
        )
        with parent.lock():
            tested = loop.evaluate(parent)
    assert scores(parent.metrics()[0])["trained"]["map_at_r"] == tested
    later = [[r for r in run.metrics()[0] if r["kind"] == "step" and r["step"] > 3] for run in (parent, same, changed)]
    assert later[0] == later[1] != later[2]


def test_a_run_begun_on_the_cpu_goes_on_there_and_back(tmp_path: Path) -> None:
    run = RunStore(tmp_path).create(SHORT.with_overrides(KINDS["memory, consistent margin, warm-up, sgd"]))
    with without_a_card():
        train(run, upto=2)
    with pretended():
        train(run, upto=2)
    with without_a_card():
        train(run)
    assert f"device {NAME} before, CPU now" in run.state().message


@pytest.mark.parametrize("name", ["adam", "rmsprop", "sgd"])
def test_a_plain_step_waits_for_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_log, "LATER", 1e9)
    waited: list[Record] = []
    spec = SHORT.with_overrides(
        [
            f"optimiser.name={name}",
            "loss.name=proxy_anchor",
            "schedule.measure_every=100",
            "schedule.validate_every=100",
        ]
    )
    with pretended() as record:
        run = RunStore(tmp_path).create(spec.with_overrides(["schedule.checkpoint_every=100", "data.validation=none"]))

        def after_step() -> bool:
            waited.append(Record(record.waits.copy()))
            record.clear()
            return False

        with run.lock():
            assert loop.train(run, stop=after_step).state == "done"
    assert [dict(each.waits) for each in waited[2:-1]] == [
        {}
    ] * 2  # on a real GPU, `dml bench gpu --only checks` counts them


def test_batches_are_mined_once_and_pinned_where_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mined: list[int] = []
    pinned: list[str] = []
    batch, pin = samplers.MinedSampler.batch, batches.Gathered.pinned

    def counted(self: samplers.MinedSampler, step: int, table: object) -> object:
        mined.append(step)
        return batch(self, step, table)

    def pinning(self: batches.Gathered) -> batches.Gathered:
        pinned.append(threading.current_thread().name.partition("_")[0])
        return pin(self)

    monkeypatch.setattr(samplers.MinedSampler, "batch", counted)
    monkeypatch.setattr(batches.Gathered, "pinned", pinning)
    with pretended():
        train(RunStore(tmp_path).create(SHORT.with_overrides([*KINDS["mined batches, rmsprop"], "schedule.steps=8"])))
    assert mined == [1, 2, 3, 4, 5, 6, 7, 8, 9][: len(mined)]
    assert len(mined) >= 8
    # the table is computed again just before, or no two batches have been made yet
    at_once = [step for step in range(1, 9) if step % 3 == 1 or step == 2]
    assert pinned == ["MainThread" if step in at_once else "batches" for step in mined]
