"""Scatter plot of two scores of a study."""

from dmlcore.figures.study_scatter import scatter


def test_each_variant_is_a_point_with_both_scores():
    spec, columns = scatter({"a": (0.5, 0.2), "b": (0.7, 0.1)}, title="radius", measure="test MAP@R", note="−0.90")
    assert columns["variant"].tolist() == ["a", "b"]
    assert (columns["x"].tolist(), columns["y"].tolist()) == ([0.5, 0.7], [0.2, 0.1])
    assert (spec["encoding"]["x"]["title"], spec["encoding"]["y"]["title"]) == (["radius"], "test MAP@R")
    assert spec["title"]["text"] == "−0.90"


def test_a_long_title_takes_several_lines():
    spec, _ = scatter({"a": (0.5, 0.2)}, title="covering radius / distance of class means", measure="MAP@R")
    assert len(spec["encoding"]["x"]["title"]) == 2
    assert "title" not in spec
