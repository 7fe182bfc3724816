"""Retrieval scores and neighbours against golden vectors and a brute-force float64 oracle."""

import json
from pathlib import Path

import numpy as np
import pytest

from dmlcore.metrics import retrieval

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text())["sets"]


def named(scores):
    """The scores under the names of the golden file."""
    table = {"P@R": scores.r_precision, "MAP@R": scores.map_at_r}
    for symbol, at in (("R", scores.recall_at), ("R2", scores.recall_fraction_at), ("P", scores.precision_at)):
        table |= {f"{symbol}@{k}": value for k, value in at.items()}
    return table


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_golden_sets(case):
    scores = retrieval(case["embeddings"], case["labels"])
    expected = {name: value for name, value in case["metrics"].items() if name != "MAP@R_printed"}
    assert named(scores) == pytest.approx(expected, abs=1e-9)
    assert np.flatnonzero(scores.per_query_matches == 0).tolist() == case["queries_excluded_R_is_0"]
    assert abs(scores.map_at_r - case["metrics"]["MAP@R_printed"]) > 1e-3
    for query in case["per_query"]:
        assert scores.per_query_matches[query["query"]] == query["R"]
        if query["R"]:
            assert scores.per_query_average_precision[query["query"]] == pytest.approx(query["AP@R"], abs=1e-9)
            assert scores.per_query_r_precision[query["query"]] == pytest.approx(query["P@R"], abs=1e-9)
