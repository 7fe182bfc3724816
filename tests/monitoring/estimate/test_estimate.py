import dataclasses
import json
import os
from pathlib import Path

import pytest

from dmlcore.monitoring.estimate import estimate, speed
from dmlcore.monitoring.estimate.estimate import DataSize
from dmlcore.monitoring.estimate.speed import Speed
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore

SPEED = Speed(flop=1e-11, byte=1e-9, operation=1e-5, parameter=1e-9, step=1e-3, test=1.0, base=3e8, measured=True)
DIGITS = DataSize((64,), 10, 724, 177, 896)
CIFAR = DataSize((3, 32, 32), 37, 18500, 6500, 25000)
IMAGES = RunSpec().with_overrides(["data.name=cifar100", "model.name=resnet20", "device=cpu"])


@pytest.fixture(autouse=True)
def _constant_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "loss_seconds", lambda *_: 0.002)


def make_estimate(spec: RunSpec, size: DataSize, runs: list[Run] | tuple[()] = ()) -> estimate.Estimate:
    found = estimate.estimate(spec, size, runs, SPEED)
    assert found is not None
    return found


def make_finished_run(store: RunStore, spec: RunSpec, seconds: float) -> Run:
    run = store.create(spec)
    with run.lock():
        run.update(state="running")
        run.update(state="done", step=spec.schedule.steps, seconds=seconds)
    return run


def test_the_share_of_validation_is_what_fewer_validations_save() -> None:
    often, seldom = (
        make_estimate(IMAGES.with_overrides(["schedule.steps=800", f"schedule.validate_every={every}"]), CIFAR)
        for every in (8, 800)
    )
    assert 1 > often.validation_share > 0.3 > seldom.validation_share > 0
    saved = often.seconds - seldom.seconds
    assert saved == pytest.approx(
        often.validation_share * often.seconds - seldom.validation_share * seldom.seconds, rel=1e-6
    )


def test_steps_batches_images_and_evaluations_cost_time() -> None:
    base = make_estimate(IMAGES, CIFAR)
    assert base.basis == "from this machine's speed"
    assert base.flops == pytest.approx(3 * 64 * 81e6, rel=0.01)
    double = make_estimate(IMAGES.with_overrides(["schedule.steps=800", "schedule.validate_every=100"]), CIFAR)
    assert 1.3 * base.seconds < double.seconds < 2 * base.seconds  # equal number of evaluations, twice the steps
    assert make_estimate(IMAGES.with_overrides(["batch.samples=16"]), CIFAR).seconds > 1.3 * base.seconds
    assert make_estimate(IMAGES.with_overrides(["schedule.validate_every=400"]), CIFAR).seconds < base.seconds
    assert make_estimate(IMAGES.with_overrides(["schedule.monitor_part=test"]), CIFAR).seconds > base.seconds


def test_memory_grows_with_batch_optimiser_and_images() -> None:
    small = make_estimate(IMAGES.with_overrides(["optimiser.name=sgd"]), CIFAR)
    adam = make_estimate(IMAGES, CIFAR)
    assert adam.memory > small.memory > SPEED.base + 3072 * 50_000  # the images themselves
    large = make_estimate(IMAGES.with_overrides(["batch.classes=64", "batch.samples=16"]), CIFAR)
    assert large.memory - adam.memory > 0.5 * 1024 * 1.5e6  # 1.5 MB are kept per sample


def test_memory_counts_every_proxy_and_what_projections_keep_of_the_network() -> None:
    one = IMAGES.with_overrides(["loss.name=contrastive_proxy", "loss.per_class=1", "schedule.steps=4"])
    plain, more = make_estimate(one, CIFAR), make_estimate(one.with_overrides(["loss.per_class=501"]), CIFAR)
    proxies = CIFAR.classes * one.model.embedding_dim * 4
    assert more.memory - plain.memory >= 4 * 500 * proxies  # weights, gradient and both moments
    ccp = make_estimate(one.with_overrides(["projection.pool=4"]), CIFAR)
    network = 4 * (ccp.parameters)
    # theta*, the candidate with its proxies, and both again in an assembled checkpoint, if that is the peak
    assert 2 * network + proxies <= ccp.memory - plain.memory <= 2 * (2 * network + proxies) + 1


def test_finished_runs_with_the_same_network_and_data_correct_it(tmp_path: Path) -> None:
    store, alone = RunStore(tmp_path), make_estimate(IMAGES, CIFAR)
    runs = [make_finished_run(store, IMAGES, 3 * alone.seconds) for _ in range(2)]
    runs += [make_finished_run(store, IMAGES.with_overrides(["loss.name=contrastive"]), 50 * alone.seconds)]
    runs += [make_finished_run(store, IMAGES.with_overrides(["model.name=resnet18"]), 70 * alone.seconds)]
    runs += [store.create(IMAGES)]  # not finished
    same = make_estimate(IMAGES, CIFAR, runs)
    assert (same.runs, same.basis) == (2, "from 2 finished runs like it")
    assert same.seconds == pytest.approx(3 * alone.seconds)
    longer = IMAGES.with_overrides(["schedule.steps=4000", "schedule.validate_every=500"])
    assert make_estimate(longer, CIFAR, runs).seconds == pytest.approx(3 * make_estimate(longer, CIFAR).seconds)
    other = make_estimate(
        IMAGES.with_overrides(["loss.name=margin"]), CIFAR, runs
    )  # no run has this loss: all three are used
    assert other.runs == 3
    assert make_estimate(RunSpec(), DIGITS, runs).runs == 0


def test_a_network_that_is_not_known_has_no_estimate() -> None:
    assert estimate.estimate(IMAGES.with_overrides(['model.name="timm:resnet26"']), CIFAR) is None


def test_the_loss_is_timed_and_one_that_cannot_be_made_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    spec = RunSpec()
    assert estimate.loss_seconds(spec, 10) > 0
    large = spec.with_overrides(["batch.classes=64", "batch.samples=16"])  # larger than the timed batch
    assert estimate.loss_seconds(large, 70) > estimate.loss_seconds(spec, 70)
    assert estimate.loss_seconds(spec.with_overrides(["loss.name=nonsense"]), 10) == 0


def test_speed_is_kept_and_a_damaged_file_is_no_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    assert speed.known_speed("cpu") is None
    monkeypatch.setattr(speed, "_fit", lambda device: SPEED)
    assert speed.measure()["cpu"] == SPEED == speed.known_speed("cpu")
    file = next(tmp_path.glob("speed-*.json"))
    plain = json.loads(file.read_text())
    file.write_text(json.dumps({"cpu": plain["cpu"] | {"later": 1}}))  # written by a later release
    os.utime(file, ns=(1, 1))
    assert speed.known_speed("cpu") == dataclasses.replace(SPEED)
    file.write_text("{")
    os.utime(file, ns=(2, 2))
    assert speed.known_speed("cpu") is None


def test_a_frozen_backbone_costs_its_images_once() -> None:
    frozen = IMAGES.with_overrides(["model.freeze=backbone", "data.augment=true"])
    once, plain = make_estimate(frozen, CIFAR).seconds, make_estimate(IMAGES, CIFAR).seconds
    assert once < plain / 2
    assert make_estimate(frozen.with_overrides(["schedule.steps=800"]), CIFAR).seconds - once < plain / 10
    assert make_estimate(frozen.with_overrides(["data.views=4"]), CIFAR).seconds > 2 * once
