"""Files of the Thresholds page: numbers of pairs, rates and intervals are those of dmlcore, and pairs are real."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import metrics
from dmlcore.inspection.neighbours import read
from dmlcore.storage.runs import RunStore
from pages.inspection.thresholds import service
from pages.shared.server.wire import unpack
from tests.inspection.threshold_runs import OPEN, QUICK, THREE
from tests.once import once
from tests.pages.conftest import make_run


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = once(tmp_path_factory, "run for thresholds", lambda folder: make_run(folder, *OPEN, *QUICK, THREE))
    (run,) = RunStore(root).list()
    return service.measure(run, run.embeddings())


@pytest.fixture
def client(found, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(found.run.path.parent))
    with TestClient(Starlette(routes=service.ROUTES)) as client:
        yield client


def get(client, found, name):
    return unpack(client.get(f"{found.address}{name}.bin").raise_for_status().content)


def test_curves_are_those_of_verification(client, found):
    told = get(client, found, "curves")
    arrays = told["arrays"]
    at = found.thresholds
    assert arrays["thresholds"] == pytest.approx(at)
    assert at[arrays["even"]] == pytest.approx(found.even)
    for name, side in found.sides.items():
        curve = metrics.verification(side.embeddings, side.labels)
        facts = told["sides"][name]
        assert (facts["same"], facts["different"], facts["classes"]) == (curve.same, curve.different, side.classes)
        assert facts["eer"] == curve.eer
        rates = np.array([curve.rates_at(t) for t in at])
        # verification rounds similarities to 2^-24, so that one pair may be on the other side of a step
        assert arrays[f"{name}_different"] == pytest.approx(rates[:, 0] * curve.different, abs=1.01)
        assert arrays[f"{name}_same"] == pytest.approx((1 - rates[:, 1]) * curve.same, abs=1.01)
        middle = len(at) // 2
        drawn = np.array([one.rates_at(at[middle]) for one in curve.resampled])
        exact = np.quantile(drawn, [0.025, 0.975], axis=0).T.reshape(-1)
        assert arrays[f"{name}_within"][:, middle] == pytest.approx(exact, abs=1e-6)
    for promised, row in zip(service.RATES, told["recommended"], strict=False):
        assert row["promised"] == promised
        k = int(np.searchsorted(at, row["threshold"]))
        assert at[k] == row["threshold"]
        seen = arrays["seen_different"][k] / told["sides"]["seen"]["different"]
        assert seen <= promised
        assert row["fmr"] == pytest.approx(arrays["unseen_different"][k] / told["sides"]["unseen"]["different"])


def test_unknown_intervals_are_nan():
    two = metrics.verification([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [0, 0, 1])
    assert np.isnan(service._intervals(two, np.array([0.5, 0.7]))).all()


def test_class_rates_are_those_of_dmlcore(client, found):
    told = get(client, found, "curves")
    side, facts = found.unseen, told["sides"]["unseen"]
    exact = metrics.class_rates(side.embeddings, side.labels, told["class_thresholds"])
    rows = np.searchsorted(exact.classes, facts["class_labels"])
    assert sorted(facts["class_labels"]) == sorted(set(side.labels.tolist()))
    assert told["arrays"]["unseen_fmr"][:-1] / 65535 == pytest.approx(exact.fmr[rows], abs=1e-5)
    assert told["arrays"]["unseen_fnmr"][:-1] / 65535 == pytest.approx(1 - exact.tpr[rows], abs=1e-5)
    assert told["arrays"]["unseen_fmr"][-1] / 65535 == pytest.approx(np.median(exact.fmr, axis=0), abs=1e-5)


def test_pairs_are_samples_of_the_side_with_their_similarity(client, found):
    for name, side in found.sides.items():
        told = get(client, found, f"pairs-{name}")
        arrays, row = told["arrays"], {int(index): place for place, index in enumerate(side.indices)}
        unit = side.embeddings / np.linalg.norm(side.embeddings, axis=1, keepdims=True)
        for kind in ("same", "different"):
            first, second = (
                np.array([row[i] for i in arrays[f"{kind}_{end}"].tolist()]) for end in ("first", "second")
            )
            assert (unit[first] * unit[second]).sum(1) == pytest.approx(arrays[f"{kind}_value"], abs=1e-5)
            assert ((side.labels[first] == side.labels[second]) == (kind == "same")).all()
            names = np.array(told["class_names"])[arrays[f"{kind}_label"].astype(int)]
            assert names.tolist() == [[str(label) for label in side.labels[rows]] for rows in (first, second)]
            # every test sample of this run is a query; the validation split is in no other page
            assert set(arrays[f"{kind}_opened"].tolist()) == {3 if name == "unseen" else 0}


def test_a_pair_is_opened_in_failures_with_a_query_and_a_searched_sample(found):
    side, known = found.unseen, read(found.source)
    same, _ = service._examples(found, found.address, "unseen")
    gallery = np.arange(len(known.labels)) % 2 == 0
    first, second, opened = service._linked(replace(known, is_gallery=gallery), side, same)
    mixed = gallery[same.first] != gallery[same.second]
    assert mixed.any()
    assert (opened == np.where(mixed, 3, 1)).all()
    assert (~gallery[first[mixed]]).all()
    assert gallery[second[mixed]].all()


@pytest.mark.parametrize("file", ["curves.csv", "pairs-all.bin", "../curves.bin", "secret.bin"])
def test_no_other_file_is_served(client, found, file):
    assert client.get(f"{found.address}{file}").status_code == 404


def test_another_version_or_run_is_not_found(client, found):
    address = found.address
    assert client.get(f"{address.replace(found.tag, 'f' * 16)}curves.bin").status_code == 404
    assert client.get(f"{address.replace(found.run.id, '20260101-0000-x-0000')}curves.bin").status_code == 404
    assert "immutable" in client.get(f"{address}curves.bin").headers["cache-control"]
