import math
from pathlib import Path

import pytest

from dmlcore.monitoring.estimate import estimate
from dmlcore.monitoring.estimate.estimate import DataSize, Estimate
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore

DIGITS = DataSize((64,), 10, 724, 177, 896)
CIFAR = DataSize((3, 32, 32), 37, 18500, 6500, 25000)
IMAGES = RunSpec().with_overrides(["data.name=cifar100", "model.name=resnet20", "device=cpu"])


def make_estimate(spec: RunSpec, size: DataSize, runs: list[Run] | tuple[()] = ()) -> Estimate:
    found = estimate.estimate(spec, size, runs)
    assert found is not None
    return found


def make_finished_run(store: RunStore, spec: RunSpec, seconds: float) -> Run:
    run = store.create(spec)
    with run.lock():
        run.update(state="running")
        run.update(state="done", step=spec.schedule.steps, seconds=seconds)
    return run


def test_without_a_similar_run_the_time_is_unknown() -> None:
    alone = make_estimate(IMAGES, CIFAR)
    assert (alone.seconds, alone.runs) == (None, 0)
    assert alone.memory > 0


def test_the_share_of_validations_falls_if_they_are_rarer() -> None:
    often, seldom = (
        make_estimate(IMAGES.with_overrides(["schedule.steps=800", f"schedule.validate_every={every}"]), CIFAR)
        for every in (8, 800)
    )
    assert 1 > often.validation_share > 0.3 > seldom.validation_share > 0
    on_test = make_estimate(IMAGES.with_overrides(["schedule.monitor_part=test"]), CIFAR)
    assert on_test.validation_share > make_estimate(IMAGES, CIFAR).validation_share


def test_memory_grows_with_batch_optimiser_and_images() -> None:
    small = make_estimate(IMAGES.with_overrides(["optimiser.name=sgd"]), CIFAR)
    adam = make_estimate(IMAGES, CIFAR)
    assert adam.memory > small.memory > estimate.PROCESS + 3072 * 50_000  # the images themselves
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


def test_a_frozen_backbone_has_no_trained_parameters() -> None:
    frozen, plain = make_estimate(IMAGES.with_overrides(["model.freeze=backbone"]), CIFAR), make_estimate(IMAGES, CIFAR)
    assert plain.frozen_parameters == 0 < frozen.parameters
    assert frozen.frozen_parameters + frozen.parameters == plain.parameters


def test_the_time_is_that_of_similar_finished_runs(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    runs = [make_finished_run(store, IMAGES, seconds) for seconds in (100.0, 120.0, 500.0)]
    runs += [make_finished_run(store, IMAGES.with_overrides(["loss.name=contrastive"]), 3000.0)]
    runs += [make_finished_run(store, IMAGES.with_overrides(["model.name=resnet18"]), 7000.0)]
    runs += [store.create(IMAGES)]  # not finished
    same = make_estimate(IMAGES, CIFAR, runs)
    assert (same.runs, same.seconds) == (3, pytest.approx(120.0))
    longer = IMAGES.with_overrides(["schedule.steps=4000", "schedule.validate_every=500"])
    # ten times the steps and as many validations; a step of 64 samples counts as 192 passes
    ratio = (192 * 4000 + 9 * 6500 + 50_000) / (192 * 400 + 9 * 6500 + 50_000)
    assert make_estimate(longer, CIFAR, runs).seconds == pytest.approx(120.0 * ratio)
    # no run has this loss: all four are used
    assert make_estimate(IMAGES.with_overrides(["loss.name=margin"]), CIFAR, runs).runs == 4
    assert make_estimate(RunSpec(), DIGITS, runs).runs == 0


def test_the_time_of_embeddings_is_that_of_the_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    slow, fast = (make_finished_run(store, IMAGES, seconds) for seconds in (100.0, 10.0))
    assert estimate.embedding_seconds(slow, CIFAR, 50) == pytest.approx(
        10 * estimate.embedding_seconds(fast, CIFAR, 50)
    )
    assert 0 < estimate.embedding_seconds(slow, CIFAR, CIFAR.test) < 50
    assert estimate.embedding_seconds(store.create(IMAGES), CIFAR, 1) == math.inf


def test_a_network_that_is_not_known_has_no_estimate() -> None:
    assert estimate.estimate(IMAGES.with_overrides(['model.name="timm:resnet26"']), CIFAR) is None
