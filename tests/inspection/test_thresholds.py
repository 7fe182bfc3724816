"""Recommended thresholds by their definition, and their text and JSON."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dmlcore
from dmlcore import metrics
from dmlcore.inspection import thresholds
from dmlcore.inspection.class_sides import ClassSides, Side, sides
from dmlcore.metrics.verification import Interval
from dmlcore.storage.runs import RunError, RunStore
from tests.inspection.threshold_runs import OPEN, QUICK
from tests.once import once
from tests.pages.conftest import make_run


def side(name, classes, each, noise, seed):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    embeddings = random.normal(size=(classes, 6))[labels] + noise * random.normal(size=(len(labels), 6))
    return Side(name, embeddings.astype(np.float32), labels, np.arange(len(labels)))


@pytest.fixture(scope="module")
def pair():
    return ClassSides(side("validation classes", 12, 6, 0.3, 0), side("test classes", 15, 5, 0.9, 1), "a note")


def rates(side, threshold):
    """Return FMR and FNMR at a threshold, pair by pair."""
    points = side.embeddings.astype(float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    accepted = points @ points.T >= threshold - 1e-7
    same = side.labels[:, None] == side.labels
    upper = np.triu(np.ones_like(same), 1)
    return accepted[upper & ~same].mean(), 1 - accepted[upper & same].mean()


def test_the_lowest_threshold_that_keeps_the_promise_is_recommended_and_measured_on_unseen_classes(pair):
    found = thresholds.recommend(pair, 0.02)
    assert (found.seen.fmr, found.seen.fnmr) == pytest.approx(rates(pair.seen, found.threshold))
    assert (found.unseen.fmr, found.unseen.fnmr) == pytest.approx(rates(pair.unseen, found.threshold))
    assert (
        found.seen.fmr <= 0.02 < rates(pair.seen, np.nextafter(found.threshold, 0) - 1e-3)[0] + 1 / found.seen.different
    )
    assert found.ratio == pytest.approx(found.unseen.fmr / 0.02)
    assert (found.seen.classes, found.seen.samples, found.seen.same) == (12, 72, 12 * 15)
    assert (found.unseen.classes, found.unseen.samples, found.unseen.different) == (15, 75, 75 * 74 // 2 - 15 * 10)
    for measured, of in ((found.seen, pair.seen), (found.unseen, pair.unseen)):
        assert measured.eer == metrics.verification(of.embeddings, of.labels).eer
        assert measured.opis == metrics.opis(of.embeddings, of.labels).score
        for name in ("fmr", "fnmr", "eer"):
            low, high = getattr(measured, f"{name}_interval")
            assert low <= getattr(measured, name) <= high
    assert found.threshold_interval.low <= found.threshold <= found.threshold_interval.high
    assert found.distance == pytest.approx(np.sqrt(2 - 2 * found.threshold))
    assert found.unseen.tpr == 1 - found.unseen.fnmr


def test_the_promise_is_kept_on_classes_like_the_seen_ones():
    alike = ClassSides(side("seen", 40, 8, 0.8, 0), side("unseen", 40, 8, 0.8, 1))
    found = thresholds.recommend(alike, 0.01)
    assert found.ratio_interval.low < 1 < found.ratio_interval.high
    assert found.unseen.fmr_interval.low < 0.01 < found.unseen.fmr_interval.high


def test_unknown_intervals_are_left_out_of_the_text_and_of_the_json():
    found = thresholds.recommend(ClassSides(side("seen", 2, 8, 0.8, 0), side("unseen", 9, 8, 0.8, 1)), 0.1)
    assert (found.threshold_interval, found.seen.eer_interval, found.unseen.fmr_interval) == (None, None, None)
    text = thresholds.describe(found)
    assert f"The threshold is a cosine similarity; as a distance of unit vectors at most {found.distance:.4f}." in text
    assert f"Measured by promised false match rate: {found.ratio:.2f}. It misses" in text
    assert thresholds.Recommendation.from_json(found.to_json()) == found


def test_rates_that_the_seen_classes_cannot_show_are_refused(pair):
    with pytest.raises(ValueError, match=r"below one of the 2,376 pairs .* choose a higher rate, or more samples"):
        thresholds.recommend(pair, 1e-4)
    with pytest.raises(ValueError, match=r"fmr must be in 0..1 and above 0, got 2"):
        thresholds.recommend(pair, 2)


def test_text_and_json_have_all_values(pair):
    found = thresholds.recommend(pair, 0.02)
    assert found.sentence.startswith(f"Recommended threshold for 2 % false matches: {found.threshold:.4f}; expect ")
    assert thresholds.percent(found.unseen.fmr, found.unseen.fmr_interval) in found.sentence
    lines = thresholds.describe(found).splitlines()
    assert lines[0] == found.sentence
    assert lines[-1] == "Note: a note."
    columns = next(line for line in lines if line.startswith("false non-match rate"))
    for measured in (found.seen, found.unseen):
        assert thresholds.percent(measured.fnmr, measured.fnmr_interval) in columns
    assert thresholds.Recommendation.from_json(found.to_json()) == found
    for text in ("", "{}", "[1]", found.to_json().replace('"ratio":', '"ratio":"x","of":')):
        with pytest.raises(ValueError, match="validation error"):
            thresholds.Recommendation.from_json(text)
    assert thresholds.percent(1.0) == "100 %"
    assert thresholds.percent(0.994, Interval(0.0126, 0.5)) == "99 % (1.3 to 50 %)"
    without = replace(found, note="")
    assert not thresholds.describe(without).endswith("Note: a note.")


def test_a_run_is_scored_like_its_sides(tmp_path_factory, monkeypatch):
    folder = once(tmp_path_factory, "threshold-digits", lambda root: make_run(root, *QUICK, *OPEN))
    run = next(iter(RunStore(folder).list()))
    expected = thresholds.recommend(sides(run), 0.05)
    monkeypatch.setenv("DML_RUNS", str(folder))
    for given in (run, run.id, run.path):
        assert dmlcore.inspection.threshold(given, fmr=0.05) == expected
    with pytest.raises(RunError, match="no run 'nothing'"):
        dmlcore.inspection.threshold("nothing")
