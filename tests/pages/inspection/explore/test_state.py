"""Values of a link to the map: positions and zoom stay in the square, lists are bounded, names are encodable."""

from __future__ import annotations

import pytest

from pages.inspection.explore.keeping import _viewed
from pages.inspection.explore.state import CLOSEST, MOST_CLASSES, MOST_TAGS, Look, menus
from tests.members import in_one_case


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("2,-1,3", (1.0, 0.0, 3.0)),
        ("0.25,0.75,0.1", (0.25, 0.75, 1.0)),
        ("0.25,0.75,9000", (0.25, 0.75, CLOSEST)),
        ("nan,0,inf", Look().window),
    ],
)
def test_the_window_lies_on_the_square_and_no_nearer_than_points_are_told(given, seen):
    assert Look.from_query({"at": given}).window == seen


def test_lists_of_a_link_end():
    numbers = range(MOST_CLASSES + 9)
    assert Look.from_query({"classes": ",".join(map(str, numbers))}).classes == tuple(numbers[:MOST_CLASSES])
    assert len(Look.of({"classes": list(numbers)}).classes) == MOST_CLASSES
    assert len(Look.of({"tags": [f"t{k}" for k in numbers]}).tags) == MOST_TAGS


@in_one_case(name=["a,b", "", "x" * 41, "a\nb", 5, None])
def test_what_cannot_be_the_name_of_a_tag_is_left_out(name):
    assert Look.of({"tags": [name, "kept"]}).tags == ("kept",)


def test_a_view_that_was_kept_says_nothing_but_what_views_say():
    assert _viewed({"colour": "rank", "selection": "ab", "run": "other", "embed": "true"}) == {
        "colour": "rank",
        "selection": "ab",
    }


def test_a_link_may_name_metadata_columns_by_number():
    seen = Look.from_query({"colour": "meta-3", "meta": "3-7,0-20-254,1-255"})
    assert seen.colour == "meta-3"
    assert seen.meta == ("3-7", "0-20-254", "1-255")
    assert Look.from_query(seen.to_query()) == seen


@in_one_case(name=["meta-20", "meta--1", "meta-03", "meta-", "meta-1.5", "meta-<b>", "meta-٣"])
def test_other_columns_are_not_coloured(name):
    assert Look.from_query({"colour": name}).colour == "class"


@in_one_case(text=["20-1", "1", "1-256", "1-2-3-4", "1--2", "a-1", "1-2-999", "01-2", "1-٣"])
def test_senseless_filters_of_metadata_are_left_out(text):
    assert Look.from_query({"meta": f"{text},5-6"}).meta == ("5-6",)


def test_menus_offer_what_the_samples_have():
    full = menus(labels=True, gallery=True, metadata=["price", "<b>"])
    assert next(iter(full["colour"])) == "class"
    assert full["colour"]["meta-1"] == "<b>"
    bare = menus(labels=False, gallery=False, metadata=["price"])
    assert list(bare["colour"]) == ["density", "hubness", "tags", "meta-0"]
    assert list(bare["sort"]) == ["sample", "hubness"]
