"""Retrieval scores and neighbours against golden vectors and a brute-force float64 oracle."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore.metrics import nearest_neighbours, per_class, retrieval

retrieval_module = sys.modules["dmlcore.metrics.retrieval"]  # the package exports the function under the same name

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text())["sets"]


def named(scores):
    """Return the scores under the names of the golden file."""
    table = {"P@R": scores.r_precision, "MAP@R": scores.map_at_r}
    table |= {"kNN": scores.knn3, "kNN majority": scores.knn3_majority}
    for symbol, at in (("R", scores.recall_at), ("R2", scores.recall_fraction_at), ("P", scores.precision_at)):
        table |= {f"{symbol}@{k}": value for k, value in at.items()}
    return table


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_golden_sets(case):
    scores = retrieval(case["embeddings"], case["labels"])
    expected = {name: value for name, value in case["metrics"].items() if name != "MAP@R_printed"}
    found = {name: value for name, value in named(scores).items() if not name.startswith("kNN")}
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.flatnonzero(scores.per_query_matches == 0).tolist() == case["queries_excluded_R_is_0"]
    assert abs(scores.map_at_r - case["metrics"]["MAP@R_printed"]) > 1e-3
    for query in case["per_query"]:
        assert scores.per_query_matches[query["query"]] == query["R"]
        if query["R"]:
            assert scores.per_query_average_precision[query["query"]] == pytest.approx(query["AP@R"], abs=1e-9)
            assert scores.per_query_r_precision[query["query"]] == pytest.approx(query["P@R"], abs=1e-9)


def golden_batch(labels, dim, p):
    """Embeddings of tests/golden/losses.json by the rule in its header."""
    i, d, y = np.arange(len(labels))[:, None], np.arange(dim), np.asarray(labels)[:, None]
    return 0.8 * np.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * np.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)


@pytest.mark.parametrize("name", ["balanced", "uneven"])
def test_golden_batches_of_the_losses(name):
    golden = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
    batch, expected, voted = golden["batches"][name], golden["retrieval"][name], golden["metrics"]
    points = golden_batch(batch["labels"], batch["dim"], batch["p"])
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    scores = retrieval(unit, batch["labels"], ks=(1, 2, 4))
    assert scores.queries == expected["queries"]
    assert scores.recall_at == pytest.approx({k: expected[f"recall_at_{k}"] for k in (1, 2, 4)}, abs=1e-9)
    assert scores.r_precision == pytest.approx(expected["precision_at_R"], abs=1e-9)
    assert scores.map_at_r == pytest.approx(expected["map_at_R"], abs=1e-9)
    if name == voted["knn3_batch"]:  # computed on unnormalised vectors, unlike the neighbours above
        scores = retrieval(points, batch["labels"])
        assert scores.knn3 == pytest.approx(voted["knn3_two_of_three"], abs=1e-12)
        assert scores.knn3_majority == pytest.approx(voted["knn3_mode_nearest_tiebreak"], abs=1e-12)


def oracle(embeddings, labels, ks, gallery=None, gallery_labels=None):
    """The formulas of science/triplet-losses.md section 10, query by query; None where no query has a match."""
    alone = gallery is None
    gallery, gallery_labels = (embeddings, labels) if alone else (gallery, gallery_labels)
    rows = []
    for i, query in enumerate(np.asarray(embeddings, np.float64)):
        distance = np.sqrt(((np.asarray(gallery, np.float64) - query) ** 2).sum(axis=1))
        order = [j for j in np.argsort(distance, kind="stable") if not (alone and j == i)]
        rel = [int(gallery_labels[j]) == int(labels[i]) for j in order]
        r = sum(rel)
        if r == 0:
            continue
        row = {"P@R": sum(rel[:r]) / r}
        row["kNN"] = float(sum(rel[:3]) >= 2)
        voters = [int(gallery_labels[j]) for j in order[:3]]
        votes = {label: voters.count(label) for label in voters}
        row["kNN majority"] = float(max(voters, key=lambda label: (votes[label], -voters.index(label))) == labels[i])
        row["MAP@R"] = sum(rel[j] * sum(rel[: j + 1]) / (j + 1) for j in range(r)) / r
        for k in ks:
            row |= {f"R@{k}": float(any(rel[:k])), f"R2@{k}": sum(rel[:k]) / r, f"P@{k}": sum(rel[:k]) / k}
        rows.append(row)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]} if rows else None, len(rows)


def agree(embeddings, labels, ks=(1, 2, 4, 8), **sides):
    scores = retrieval(embeddings, labels, ks=ks, **sides)
    expected, queries = oracle(embeddings, labels, ks, **sides)
    assert (scores.queries, scores.skipped) == (queries, len(labels) - queries)
    if expected is None:
        assert set(named(scores).values()) <= {None}
    else:
        assert named(scores) == pytest.approx(expected, abs=1e-12)


@st.composite
def labelled_points(draw):
    """Points on a small lattice (copies and ties) or off it, with labels small, huge or negative."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    items, dimensions = draw(st.integers(1, 50)), draw(st.integers(1, 6))
    points = rng.integers(0, 3, (items, dimensions)).astype(np.float64)
    if draw(st.booleans()):
        points = rng.normal(size=points.shape) + draw(st.sampled_from([0, 1000]))
    labels = rng.integers(0, draw(st.integers(1, 12)), items) + draw(st.sampled_from([0, -5, 2**24, 2**40, -(2**40)]))
    return points, labels


@settings(max_examples=150)
@given(labelled_points())
def test_every_score_equals_its_formula(case):
    agree(*case)


@settings(max_examples=80)
@given(labelled_points(), st.data())
def test_a_separate_gallery_leaves_nothing_out(case, data):
    points, labels = case
    cut = data.draw(st.integers(0, len(points) - 1))
    agree(points, labels, (1, 3, 100), gallery=points[cut:], gallery_labels=labels[cut:])


@pytest.mark.parametrize(
    ("relevances", "average"), [([1, 0, 1, 0, 0, 1], 5 / 9), ([1, 1, 0, 1], 2 / 3), ([0, 1, 1, 1], 7 / 18)]
)
def test_worked_examples_of_the_specification(relevances, average):
    gallery = 1.0 + np.arange(len(relevances))[:, None]
    scores = retrieval([[0.0]], [1], gallery=gallery, gallery_labels=relevances)
    assert scores.map_at_r == pytest.approx(average, abs=1e-15)
    assert scores.r_precision == pytest.approx(2 / 3, abs=1e-15)


@pytest.mark.parametrize("first", [2**24, 2**40, -(2**40), 2**62])
def test_neighbouring_large_labels_stay_distinct(first):
    """In float32, 2**24 and 2**24 + 1 are one label (reliability.md, row 45)."""
    scores = retrieval([[0.0], [1.0], [2.0], [3.0]], [first, first + 1, first, first + 1])
    assert scores.queries == 4
    assert scores.recall_at == {1: 0.0, 2: 0.5, 4: 1.0, 8: 1.0}


def test_singletons_are_skipped_but_stay_in_the_gallery():
    scores = retrieval([[0.0], [0.1], [1.0]], [7, 3, 7])
    assert (scores.queries, scores.skipped) == (2, 1)
    assert scores.recall_at[1] == 0.0
    assert scores.per_query_matches.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(scores.per_query_average_precision, [0.0, np.nan, 0.0])


@pytest.mark.parametrize(
    "arguments",
    [
        {"embeddings": np.eye(4), "labels": np.arange(4)},
        {"embeddings": [[1.0]], "labels": [0]},
        {"embeddings": np.eye(2), "labels": [0, 0], "gallery": np.eye(2), "gallery_labels": [1, 2]},
    ],
    ids=["all singletons", "one item", "no label in common"],
)
def test_where_no_query_has_a_match_every_score_is_none(arguments):
    scores = retrieval(**arguments)
    assert set(named(scores).values()) == {None}
    assert (scores.queries, scores.skipped) == (0, len(arguments["labels"]))


def test_collapsed_embeddings_are_ranked_by_index():
    agree(np.full((60, 5), 0.3), np.arange(60) % 3)


def test_far_off_clusters():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 5
    agree(1000 + rng.normal(size=(200, 8)) * 1e-3 + np.eye(8)[labels] * 1e-3 + (labels % 2)[:, None] * 500, labels)


def test_one_huge_class_does_not_change_the_others(monkeypatch):
    """Chunks follow the k that their queries need, largest classes first."""
    rng = np.random.default_rng(1)
    labels = np.concatenate([np.zeros(150, int), rng.integers(1, 30, 60)])
    points = rng.normal(size=(210, 4))
    monkeypatch.setattr(nearest_neighbours, "CHUNK", 500)
    monkeypatch.setattr(retrieval_module, "CHUNK", 500)
    agree(points, labels)


def test_scores_of_each_class_are_means_over_its_queries():
    rng = np.random.default_rng(5)
    labels = np.append(rng.integers(0, 4, 60) * 1000 - 7, 12345)  # the last one has no match
    points = rng.normal(size=(61, 3))
    scores = retrieval(points, labels)
    found = per_class(scores, labels)
    assert found.labels.tolist() == sorted(set(labels[:-1].tolist()))
    assert found.queries.sum() == scores.queries == 60
    assert np.average(found.map_at_r, weights=found.queries) == pytest.approx(scores.map_at_r, abs=1e-12)
    assert np.average(found.recall_at_1, weights=found.queries) == pytest.approx(scores.recall_at[1], abs=1e-12)
    one = labels == found.labels[2]
    alone = retrieval(points[one], labels[one], gallery=points, gallery_labels=labels)  # each query finds itself first
    assert alone.recall_at[1] == 1.0
    own = np.flatnonzero(one)
    assert found.map_at_r[2] == pytest.approx(scores.per_query_average_precision[own].mean(), abs=1e-12)
    with pytest.raises(ValueError, match="labels must have shape"):
        per_class(scores, labels[:5])


def test_a_vote_among_three_different_labels_goes_to_the_nearest():
    gallery, labels = [[1.0], [2.0], [3.0], [9.0]], [5, 6, 7, 5]
    right = retrieval([[0.0]], [5], gallery=gallery, gallery_labels=labels)
    assert (right.knn3, right.knn3_majority) == (0.0, 1.0)
    outvoted = retrieval([[0.0]], [5], gallery=gallery, gallery_labels=[5, 6, 6, 5])
    assert (outvoted.knn3, outvoted.knn3_majority) == (0.0, 0.0)
    assert retrieval([[0.0]], [5], gallery=gallery, gallery_labels=[6, 5, 5, 7]).knn3 == 1.0


def test_tensors_and_arrays_agree():
    rng = np.random.default_rng(2)
    points, labels = rng.normal(size=(40, 4)).astype(np.float32), rng.integers(0, 5, 40)
    tensors = retrieval(torch.from_numpy(points).requires_grad_(), torch.from_numpy(labels))
    assert tensors == retrieval(points, labels)


def test_a_perfect_and_a_hopeless_embedding():
    labels = np.repeat(np.arange(5), 4)
    assert retrieval(labels[:, None] * 1.0, labels).map_at_r == 1.0
    assert retrieval(np.tile(np.eye(4), (2, 1)) * 5, np.arange(8)).map_at_r is None
    assert retrieval([[0.0], [5.0], [0.1], [5.1]], [0, 0, 1, 1]).map_at_r == 0.0


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (ValueError, {"embeddings": [[np.nan]], "labels": [0]}, "embeddings must be finite"),
        (ValueError, {"embeddings": np.eye(2), "labels": [0]}, r"labels must have shape \(2,\)"),
        (TypeError, {"embeddings": np.eye(2), "labels": [0.0, 1.0]}, "labels must be integers"),
        (
            ValueError,
            {"embeddings": np.eye(2), "labels": np.array([0, 2**63], np.uint64)},
            "labels must fit into int64",
        ),
        (ValueError, {"embeddings": np.eye(2), "labels": [0, 1], "gallery": np.eye(2)}, "gallery_labels is missing"),
        (ValueError, {"embeddings": np.eye(2), "labels": [0, 1], "gallery_labels": [0, 1]}, "gallery is missing"),
        (ValueError, {"embeddings": np.eye(2), "labels": [0, 1], "ks": (0,)}, "ks must hold integers"),
        (ValueError, {"embeddings": np.eye(2), "labels": [0, 1], "ks": (True,)}, "ks must hold integers"),
        (ValueError, {"embeddings": np.zeros((0, 2)), "labels": []}, "embeddings must have shape"),
    ],
)
def test_bad_input_is_named(error, arguments, message):
    with pytest.raises(error, match=message):
        retrieval(**arguments)
