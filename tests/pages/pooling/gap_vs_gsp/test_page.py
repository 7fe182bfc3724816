"""The state of GAP or GSP, and its answers compared with the live training runs that they come from."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dmlcore import data
from dmlcore.geometry import hulls
from dmlcore.replay.recorded_training import LiveTraining
from dmlcore.spec import RunSpec
from pages.pooling.gap_vs_gsp import service
from pages.pooling.gap_vs_gsp import state as spec
from pages.pooling.gap_vs_gsp.state import GateChange, PoolingStudy
from pages.shared.server.wire import unpack
from pages.shared.timeline.history_cache import HistoryCache
from tests.members import in_one_case

SMALL = PoolingStudy(prototypes=8)


def change(at, study=SMALL, **different):
    return GateChange(at, **(study.in_force(0) | different))


@pytest.fixture
def kept(monkeypatch):
    """Replace the cache of histories by an empty one."""
    fresh = HistoryCache(service.Views)
    monkeypatch.setattr(service.TIMELINE, "kept", fresh)
    return fresh


def training(study, pooling):
    """Return the live training run behind the cached history of one side."""
    return service.TIMELINE.kept.of(service.TIMELINE.specs(study)[pooling]).training


def get_answer(study, **more):
    request = {"state": study.to_json(), "have": -1, "want": 0, "id": 1} | more
    answer = unpack(service.TIMELINE.answer(request))
    while answer["ready"] < request["want"]:
        answer = unpack(service.TIMELINE.answer(request))
    return answer


def test_four_classes_train_on_bags_of_four_classes(kept):
    answer = get_answer(replace(SMALL, classes=4), want=2)
    assert answer["arrays"]["gap_weights"].shape[1:] == (4, 20)
    assert set(answer["arrays"]["labels"].tolist()) == {0, 1, 2, 3}
    # All tokens are equally frequent, so about half of the weight of an average is on the shared tokens.
    assert answer["arrays"]["gap_on_shared"][0] == pytest.approx(0.5, abs=0.05)
    run = replace(SMALL, classes=4).run("gsp")
    assert (run.data.name, run.batch.classes * run.batch.samples) == ("tokens_few", 64)


@in_one_case(bad=[None, "x", "nan", math.inf, -1e300, [], {}, True, "9" * 99])
def test_whatever_a_browser_sends_can_be_trained(bad):
    study = PoolingStudy.of(dict.fromkeys(PoolingStudy.kinds, bad) | {"changes": [{"at": bad, "mu": bad}, bad] * 20})
    for pooling in spec.POOLINGS:
        study.live(pooling)


def test_sides_differ_in_their_pooling_alone():
    gap, gsp = (SMALL.run(p) for p in spec.POOLINGS)
    assert {line.split(":")[0].rsplit(".", 1)[0] for line in gap.differences(gsp)} <= {
        "name",
        "pooling",
        "pooling.parameters",
    }
    assert RunSpec.from_toml(gsp.to_toml()) == gsp


def test_changes_reach_the_side_they_concern():
    study = PoolingStudy(prototypes=8, changes=(change(4, mu=0.6), change(6, mu=0.6, rate=1e-4)))
    assert [c.overrides for c in study.live("gsp").changes] == [
        ("pooling.mu=0.6",),
        ("optimiser.learning_rate=0.0001",),
    ]
    assert [c.step for c in study.live("gap").changes] == [6]
    assert study.in_force(3)["mu"] == study.mu
    assert study.run("gsp", 4).pooling.parameters["mu"] == 0.6


# ---- answers
def test_an_answer_holds_what_the_training_recorded(kept):
    answer = get_answer(SMALL, want=10)
    arrays = answer["arrays"]
    assert (answer["first"], answer["count"], answer["ready"]) == (0, 11, 10)
    bags = data.load("tokens", seed=SMALL.seed)
    for pooling in spec.POOLINGS:
        training = LiveTraining(SMALL.live(pooling), bags)
        frame = training.frame(10)
        assert arrays[f"{pooling}_tokens"][10] * answer["scale"] == pytest.approx(frame.tokens, abs=1e-5)
        assert arrays[f"{pooling}_samples"][10] * answer["scale"] == pytest.approx(frame.embeddings, abs=1e-5)
        assert (arrays["labels"] == bags.labels[training.watched]).all()
        measures = dict(zip(answer["measures"], arrays[f"{pooling}_measures"][10], strict=True))
        assert measures["loss"] == pytest.approx(frame.loss)
        assert measures["map_at_r"] == pytest.approx(frame.map_at_r)
        expected = hulls.overlaps(frame.tokens, frame.histograms, np.arange(16), tau=SMALL.tau)
        assert measures["iou"] == pytest.approx(expected.mean("hull_iou"), abs=1e-6)
        assert measures["intersection"] == pytest.approx(expected.mean("histogram_intersection"), abs=1e-6)
        assert measures["on_shared"] == pytest.approx(frame.histograms[:, 64:].sum(1).mean(), abs=1e-6)
        active = np.unpackbits(arrays[f"{pooling}_active"][10], axis=1, bitorder="little", count=68)
        assert (active == expected.active).all()
        assert arrays[f"{pooling}_weights"][10] / 65535 == pytest.approx(frame.histograms, abs=1e-5)
        assert len(arrays[f"{pooling}_corners"]) == arrays[f"{pooling}_sizes"].sum()
        assert len(arrays[f"{pooling}_prototypes"]) == arrays[f"{pooling}_placed"].sum()
    assert not arrays["gap_placed"].any()


def test_at_mu_1_both_are_the_same_training(kept):
    arrays = get_answer(PoolingStudy(prototypes=8, mu=1.0), want=18)["arrays"]
    assert arrays["gsp_placed"][-1] == 8
    assert arrays["gsp_tokens"] == pytest.approx(arrays["gap_tokens"], abs=2)


def test_another_threshold_is_the_same_training_with_other_hulls(kept):
    get_answer(SMALL, want=3)
    other = PoolingStudy(prototypes=8, tau=0.0)
    few, many = get_answer(SMALL, want=3)["arrays"], get_answer(other, want=3)["arrays"]
    assert (few["gsp_tokens"] == many["gsp_tokens"]).all()
    assert many["gsp_sizes"].sum() >= few["gsp_sizes"].sum()
    assert training(SMALL, "GSP").frames[3] is training(other, "GSP").frames[3]


def test_a_resting_answer_brings_link_and_runs(kept):
    answer = get_answer(PoolingStudy(prototypes=8, mu=0.5), rest=True, show=0)
    assert answer["query"] == {"classes": "16", "mu": "0.5", "prototypes": "8"}
    assert RunSpec.from_toml(answer["runs"]["gsp"]) == PoolingStudy(prototypes=8, mu=0.5).run("gsp")
    lines = service.curves(PoolingStudy(prototypes=8, mu=0.5)).splitlines()
    assert lines[0].startswith('"step","gap_loss","gap_map_at_r"')
    assert len(lines) == 2


# ---- full study
