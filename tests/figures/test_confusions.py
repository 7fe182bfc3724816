"""Charts of confusions: their numbers, escaped names, and specifications that Vega-Lite accepts."""

import json

import altair as alt
import numpy as np
import pytest
from scipy.stats import binom

from dmlcore.figures import confusions, distance_densities
from dmlcore.figures.palette import INK

HOSTILE = '<img src=x onerror=alert(1)>"]; alert(2); names["$x$ \u202edrow ![](http://evil.test/a.png)'

NAMED = {"white": "#ffffff", "black": "#000000"}


def rgb(colour):
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)], float)


def relative_luminance(colours):
    x = colours / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def valid(chart):
    """Check a specification against the schema of Vega-Lite and return it with its columns."""
    spec, columns = chart
    assert len({len(column) for column in columns.values()}) == 1
    alt.Chart.from_dict(spec | {"data": {"values": [{"a": 1}]}}, validate=True)
    return spec, columns


def test_the_matrix_holds_what_is_not_zero_and_frames_the_chosen_cell():
    shares = np.array([[0.5, 0.5, 0], [0, 1, 0], [0.1, 0, 0.9]])
    spec, columns = valid(confusions.matrix(shares, np.array([7, 3, 9]), ["a", "b", "c"], (3, 9)))
    cells = {(i, j): s for i, j, s in zip(columns["i"], columns["j"], columns["share"], strict=True)}
    assert cells == {(7, 7): 0.5, (7, 3): 0.5, (3, 3): 1, (9, 7): 0.1, (9, 9): 0.9, (3, 9): 0}
    assert [(i, j) for i, j, m in zip(columns["i"], columns["j"], columns["marked"], strict=True) if m] == [(3, 9)]
    rect, frame, number = spec["layer"]
    assert rect["encoding"]["opacity"]["scale"]["domain"] == [0, 0.5], "the colour scale shows errors only"
    assert frame["transform"] == [{"filter": "datum.marked"}]
    assert number["encoding"]["text"]["field"] == "percent"
    assert columns["percent"].tolist() == ["50", "50", "100", "10", "90", "0.0"]
    assert spec["encoding"]["x"]["scale"]["domain"] == [7, 3, 9], "in the given order"


@pytest.mark.parametrize("dark", [False, True])
def test_each_number_is_legible_on_its_cell(dark):
    shares = np.outer(np.linspace(0.01, 0.9, 15), np.linspace(0.05, 1, 15))
    names = [str(number) for number in range(15)]
    spec, columns = valid(confusions.matrix(shares, np.arange(15), names, (0, 1), dark=dark))
    rect, _, number = spec["layer"]
    assert number["encoding"]["color"]["field"] == "ink"
    scale, page = rect["encoding"]["opacity"]["scale"], rgb(INK[dark]["page"])
    (low, high), (least, most) = scale["domain"], scale["range"]
    place = np.sqrt(np.clip((columns["share"] - low) / (high - low), 0, 1))
    opacity = (least + (most - least) * place)[:, None]
    own = (columns["i"] == columns["j"])[:, None]
    cell = opacity * np.where(own, rgb(confusions.RIGHT), rgb(confusions.WRONG)) + (1 - opacity) * page
    a, b = (
        relative_luminance(colours) + 0.05
        for colours in (cell, np.array([rgb(NAMED.get(x, x)) for x in columns["ink"]]))
    )
    assert (np.maximum(a, b) / np.minimum(a, b)).min() >= 4.45, "colours of a screen are rounded"
    assert INK[dark]["text"] in columns["ink"]


@pytest.mark.parametrize(("names", "angle"), [(["7", "3"], 0), (["Kaldoon 04", "Ionteq 01"], -60)])
def test_short_names_above_the_matrix_are_level(names, angle):
    spec, _ = valid(confusions.matrix(np.eye(2), np.arange(2), names, None))
    assert spec["encoding"]["x"]["axis"]["labelAngle"] == angle


@pytest.mark.parametrize(
    ("classes", "letters", "cell", "numbered"),
    [
        (10, 8, 44, True),
        (18, 8, 30, True),
        (40, 8, 13, False),
        (40, 30, 11, False),
        (60, 8, 10, False),
        (60, 30, 10, False),
        (200, 30, 3, False),
    ],
)
def test_cells_are_square_fit_one_side_with_their_names_and_up_to_forty_are_named(classes, letters, cell, numbered):
    names = [f"{i}".zfill(letters) for i in range(classes)]
    spec, columns = valid(confusions.matrix(np.full((classes, classes), 1 / classes), np.arange(classes), names, None))
    assert spec["width"] == spec["height"] == {"step": cell}
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rect", "rect", "text"][: 2 + numbered]
    assert len(columns["share"]) == classes**2
    for axis in (spec["encoding"][of]["axis"] for of in "xy"):
        assert axis["labelOverlap"] is False
        assert axis["labels"] == (classes <= 40)
        assert not axis["labels"] or axis["labelFontSize"] < cell, "labels must not overlap"
    assert classes * cell + (classes <= 40) * 5.5 * min(letters, 23) <= 600


def test_a_hostile_name_is_data_and_no_part_of_an_expression():
    spec, columns = confusions.matrix(np.eye(2), np.array([0, 1]), [HOSTILE, "b"], None)
    (names,) = [p for p in spec["params"] if p["name"] == "names"]
    assert names["value"]["0"] == HOSTILE == columns["query"][0]
    rest = json.dumps(spec | {"params": []})
    assert "alert" not in rest
    assert "evil" not in rest
    assert {"title", "image"}.isdisjoint(columns), "fields that a tooltip shows as a heading or an image"


def test_the_ranking_keeps_every_class_or_even_ranks():
    _, columns = valid(confusions.ranking(["a", "b"], np.array([0.1, 0.4]), np.array([0.2, 1.0]), np.array([3, 4])))
    assert columns["score"].tolist() == [0.1, 0.4, 0.2, 1.0]
    many = np.linspace(0, 1, 11_316)
    _, columns = confusions.ranking([str(n) for n in range(11_316)], many, many, np.ones(11_316, int))
    assert len(columns["rank"]) == 2 * confusions.MOST_POINTS
    assert columns["rank"][[0, -1]].tolist() == [1, 11_316]


def test_occurrences_are_binned_without_loss_and_chance_is_binomial():
    counts = np.random.default_rng(0).integers(9, size=173)
    chance = confusions.by_chance(50, 40, 5, 172)
    assert chance[:41] == pytest.approx(50 * binom.pmf(np.arange(41), 40, 5 / 49))
    assert not chance[41:].any()
    _, columns = valid(confusions.occurrences(counts, chance, 12.0))
    assert columns["samples"].sum() == counts.sum()
    assert len(columns["samples"]) <= confusions.MOST_BARS
    assert (columns["from"][1:] == columns["to"][:-1]).all()
    assert columns["N_k"][0] == "0 to 3"


def test_histograms_are_shares_of_each_run():
    edges = np.array([0.0, 0.5, 1.0])
    runs = [distance_densities.Histograms(name, edges, np.array([3, 1]), np.array([0, 5])) for name in ("a", "b")]
    spec, columns = valid(distance_densities.distances(runs, [(0.2, 0.4)], 0.3))
    assert columns["share"].tolist() == [0.75, 0.25, 0, 1] * 2
    assert columns["density"].tolist() == [1.5, 0.5, 0, 2] * 2, "area 1"
    assert columns["number"].tolist() == [0] * 4 + [1] * 4
    assert spec["layer"][0]["data"]["values"] == [{"a": 0.2, "b": 0.4}]
    assert spec["layer"][-1]["data"]["values"] == [{"a": 0.3}]


def test_a_portrait_counts_each_triplet_once():
    random = np.random.default_rng(0)
    d_ap, d_an = random.random((2, 500)) * 1.5
    lines = [np.array([[0.0, 0.2], [1.0, 1.2]])], []
    spec, columns = valid(distance_densities.portrait(d_ap, d_an, 1.5, lines))
    assert columns["triplets"].sum() == 500
    cell = (columns["ap"] <= d_ap[0]) & (d_ap[0] < columns["ap_to"])
    cell &= (columns["an"] <= d_an[0]) & (d_an[0] < columns["an_to"])
    assert cell.sum() == 1
    assert len(spec["layer"]) == 3
    assert len(distance_densities.portrait(d_ap, d_an, 1.5)[0]["layer"]) == 2
