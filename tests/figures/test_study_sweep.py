"""Line chart of the scores of a study against one setting."""

import pytest

from dmlcore.figures.study_sweep import lines


def test_means_and_deviations_stand_at_ascending_values():
    spec, columns = lines({"a": {0.5: [0.1, 0.3], 0.0: [0.2]}, "b": {10.0: [0.4]}}, title="lambda", measure="MAP@R")
    assert columns["value"].tolist() == ["0.5", "0", "10"]
    assert columns["mean"].tolist() == pytest.approx([0.2, 0.2, 0.4])
    assert (columns["high"] - columns["mean"]).tolist() == pytest.approx([0.02**0.5, 0, 0])
    x = spec["layer"][0]["encoding"]["x"]
    assert (x["sort"], x["title"]) == (["0", "0.5", "10"], "lambda")


def test_a_single_line_has_no_legend():
    spec, _ = lines({"a": {1.0: [0.1], 2.0: [0.2]}}, title="mu", measure="MAP@R")
    assert spec["layer"][0]["encoding"]["color"]["legend"] is None
