"""The Claims page: all rows with links to their studies, filters from the link, and text that is escaped."""

from __future__ import annotations

from dataclasses import replace

from dmlcore.experiments import source_claims, studies
from pages.library.claims import markup
from pages.shared.widgets import menu
from pages.shared.widgets.study.places import ELSEWHERE, address_of
from tests.pages.conftest import load_page


def tables(app) -> str:
    return "".join(element.proto.body for element in app.main if element.type == "html") or "".join(
        element.proto.body for element in app.get("html")
    )


def test_every_claim_is_shown_with_its_verdict_and_a_link_to_its_study():
    app = load_page("claims")
    assert not app.exception
    assert [title.value for title in app.subheader] == list(
        dict.fromkeys(row.claim.source for row in source_claims.table())
    )
    html = "".join(markup.table([row]) for row in source_claims.table())
    for row in source_claims.table():
        assert row.verdict in html
        if row.study in studies.names():
            assert f'href="{address_of(row.study)}"' in html


def test_filters_come_from_the_link_and_an_empty_result_says_so():
    app = load_page("claims", source="Can 2018")
    assert [title.value for title in app.subheader] == ["Can 2018"]
    assert {*app.get("button_group")[1].options} == {row.verdict for row in source_claims.table()}
    app = load_page("claims", source="<b>nobody", verdict="x")
    assert not app.exception
    assert len(app.subheader) > 1


def test_text_of_claims_is_escaped_and_tests_share_the_cell_of_their_claim():
    row = next(row for row in source_claims.table() if row.numbers)
    hostile = replace(row, claim=row.claim.model_copy(update={"claim": "<script>"}), numbers="<img>")
    html = markup.table([hostile, hostile])
    assert "&lt;script&gt;" in html
    assert "&lt;img&gt;" in html
    assert 'rowspan="2"' in html
    assert html.count('class="claim"') == 1


def test_studies_on_other_pages_are_linked_there():
    assert {*ELSEWHERE.values()} <= menu.PAGES.keys()
    assert address_of("collage") == "collage"
    assert address_of("forces-birds") == "studies?study=forces-birds"
