"""The reference of the losses: properties of section 3, margins of 1.3, results of the tables, and the docs page."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dmlcore import losses
from dmlcore.losses.engine.formula import LOSSES, Margin, triplet_loss
from dmlcore.published import karaman
from dmlcore.published.reference import invariances, markdown, reference
from tests.members import in_one_case

ROOT = Path(__file__).parents[2]

# Karaman's losses, section 3 of the specification.
NOT_TRANSLATION = {"moving", "npairs", "location_aware"}
EXCHANGE = {"angular", "lifted", "entangle", "location_aware", "modified_entangle", "distance_sensitive"}
DEGREE = {"ranking": 1, "modified_entangle": 1, "facenet": 2, "facenet_mined": 2, "angular": 2, "entangle": 2}
DEGREE |= {"location_aware": 2}


@in_one_case(name=[name for name in losses.names() if "Karaman 2021" in losses.formula(name).source])
def test_properties_are_those_of_the_table(name):
    found = invariances(losses.create(name))
    holds = {what: yes for what, yes, _ in found.rows}
    assert list(holds.values())[:3] == [True, name not in NOT_TRANSLATION, name in EXCHANGE]
    assert found.degree == DEGREE.get(name)
    assert holds["forces along the edges of the triangle"] == (name not in NOT_TRANSLATION)
    assert holds["forces along the edges on the unit sphere, tangentially"]


@in_one_case(case=[(0.0, 1), (1.0, 2), (0.5, 1.5)])
def test_distance_sensitive_is_homogeneous_where_s_is_minus_r(case):
    s, degree = case
    assert invariances(losses.create("distance_sensitive", s=s, r=-s)).degree == pytest.approx(degree)
    assert invariances(losses.create("distance_sensitive", s=s, r=-s + 0.5)).degree is None


def test_ratio_becomes_homogeneous_as_its_margin_vanishes():
    assert invariances(losses.create("ratio", m=1e-12)).degree == pytest.approx(0, abs=1e-6)
    assert invariances(losses.create("ratio", m=0.1)).degree is None


MARGINS = {"ranking": "2.0000", "facenet": "4.0000", "entangle": "4.0000", "modified_entangle": "4.0000"}
MARGINS |= {"angular": f"{16 * math.tan(0.6) ** 2:.4f}", "lifted": "1.3069", "location_aware": "1.5000"}
MARGINS |= {"distance_sensitive": "-1.0000", "ratio": "2.0000"}


@in_one_case(case=MARGINS.items())
def test_the_margin_that_switches_the_clamp_off(case):
    name, margin = case
    assert f"= {margin} is the smallest margin" in reference(name).clamp_off


def test_what_has_no_such_margin_says_so():
    assert "falls without bound" in reference("moving").clamp_off
    for name in ("hoffer", "npairs"):
        assert "no triplet is ever satisfied" in reference(name).clamp_off


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "ranking": {"m": (-0.2, -0.1, 0, 0.01, 0.1, 0.2, 0.3, 2.5, 40)},
        "facenet": {"m": (0.01, 0.1, 0.2, 0.3, 2.5, 40)},
        "ratio": {"m": (0.01, 0.1, 0.2, 0.3, 40)},
        "angular": {"rho": (0.2, 0.3, 0.4, 0.5, 0.6, 0.63, 0.79, 0.8, 0.96, 2.0)},
        "location_aware": {"m": (0.01, 0.1, 0.2, 0.3, 2.5, 40)},
        "hoffer": {},
        "lifted": {},
    }.items(),
)
def test_tried_values_are_those_of_the_thesis(name, values):
    assert reference(name).tried == values


@pytest.mark.parametrize(
    ("name", "recall", "precision"),
    [("ranking", 52.80, 16.65), ("distance_sensitive", 51.86, 16.75), ("ratio", 52.31, 16.53), ("lifted", 0, 0)],
)
def test_best_rows(name, recall, precision):
    found = {r.dataset: r for r in reference(name).results}
    if not recall:
        assert not found
        return
    cub = found["CUB-200-2011"]
    assert cub.by_recall.scores["R@1"] == recall
    assert cub.by_precision.scores["MAP@R"] == precision


def test_no_row_of_the_tables_is_lost():
    named = [row for row in karaman.rows() if row.loss in losses.names()]
    assert len(karaman.rows()) == 180
    assert len(named) == 178  # two are reference rows of Table 4.1
    shown = sum(r.count for name in losses.names() for r in reference(name).results)
    quotes = sum(bool(row.quoted_from) for row in named)
    assert shown == len(named) - quotes + 2  # entangle and modified_entangle are only quoted


def test_a_loss_of_a_contributor_has_its_page():
    def mean_ranking(t):
        return t.d_ap - (t.d_an + t.d_pn) / 2

    with LOSSES.isolated():
        triplet_loss(title="Mean", latex="d", source="a test", sentence="A test.", margin=Margin(0.1, 0.0, 1.0))(
            mean_ranking
        )
        found = reference("mean_ranking")
        assert found.closed_form is None
        assert found.results == ()
        assert found.tried == {}
        assert found.invariances.degree == 1
        assert "## Mean (`mean_ranking`)" in markdown()
    reference.cache_clear()


def test_the_docs_page_is_up_to_date():
    written = (ROOT / "docs" / "losses.md").read_text("utf-8")
    assert written == markdown(), "run: python -m dmlcore.published.reference > docs/losses.md"
