"""The menu: five sections with fifteen places, each page highlights its own; old addresses open the same pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import dmlcore
from pages.shared.widgets import about, menu
from tests.browser.harness import ROOT
from tests.pages.conftest import MAIN, load_page

OF_BEFORE = {
    *("fields", "compare", "sphere", "charges", "microscope", "truth", "transport", "gap_or_gsp", "prototypes"),
    *("collage", "toys", "data", "train", "runs", "fork", "studies", "gallery", "failure", "maps", "differences"),
    *("confusions", "published"),
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Collect the pages passed to each call of st.navigation."""
    calls: list[dict] = []
    navigation = menu.st.navigation

    def noted(pages: dict, **options: object):
        calls.append(pages)
        return navigation(pages, **options)

    monkeypatch.setattr(menu.st, "navigation", noted)
    return calls


def marked(pages: dict) -> list[str]:
    """Return the highlighted section and places."""
    titles = [section for section in pages if section.startswith(":blue")]
    return titles + [page.title for group in pages.values() for page in group if page.title.startswith(":blue")]


def test_every_address_of_before_is_a_page_or_leads_to_one() -> None:
    known = menu.PAGES.keys() | menu.MOVED.keys()
    assert OF_BEFORE - known == set()
    assert set(menu.MOVED.values()) <= menu.PAGES.keys()
    assert not menu.MOVED.keys() & menu.PAGES.keys()
    assert all((Path(MAIN).parent / page.file).is_file() for page in menu.PAGES.values())


def test_a_page_has_one_word_for_its_title_address_and_folder() -> None:
    for address, page in menu.PAGES.items():
        folder = Path(page.file).with_suffix("") if page.file.endswith("start.py") else Path(page.file).parent
        name = "plane" if address == "fields" else address  # Plane is the first of the four views of Fields
        assert folder.name == name, page.file
        assert address == page.title.lower().replace(" ", "_")


def test_no_place_has_a_row_that_leaves_out_a_view() -> None:
    assert [place.title for place in menu.PLACES.values() if place.row and len(place.row) != len(place.pages)] == []


@pytest.mark.parametrize(
    ("address", "label", "place"),
    [
        ("published_results", "Library · Published", "Published results"),
        ("sphere", "Losses · Fields", "Fields"),
        ("fork", "Training · Runs", "Runs"),
        ("collage", "Pooling · Collage", "Collage"),
    ],
)
def test_the_place_of_a_page_is_marked_though_the_page_stands_in_no_menu(
    sent: list[dict], address: str, label: str, place: str
) -> None:
    app = load_page(address)
    assert not app.exception
    assert marked(sent[-1]) == [f":blue[**{label}**]", f":blue[**{place}**]"]
    shown = [page for group in sent[-1].values() for page in group if page.visibility == "visible"]
    assert len(shown) == 21  # including Home, Lessons, Neighbours and the four steps of Pooling
    assert [page.title for page in sent[-1][""] if page.visibility == "visible"] == ["DML Lab", "Lessons"]
    calls = len(sent)
    app.run()
    assert len(sent) == calls + 1  # a second call is only needed if the page has changed


def test_beside_the_brand_no_section_or_place_is_marked_but_by_streamlit(sent: list[dict]) -> None:
    load_page("lessons", lesson="triplet", step="2")
    assert marked(sent[-1]) == []


def test_an_address_of_the_fields_at_the_root_goes_on_working_with_its_state() -> None:
    app = load_page("home", loss="ranking", n="0.3,0.2")
    assert not app.exception
    assert app.title[0].value == "Force fields of triplet losses"
    assert {name: app.query_params[name] for name in ("loss", "n")} == {"loss": "ranking", "n": "0.3,0.2"}


def test_an_unknown_address_says_so_and_links_to_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a rerun the browser sends a hash instead of the address."""
    address = "explor<b>"
    monkeypatch.setattr(menu.host, "requested_page", lambda: address)
    app = load_page(address)
    for _ in range(2):
        assert not app.exception
        assert app.title[0].value == "Page not found"
        assert app.text[0].value == "No page has the address /explor<b>."
        links = [link.proto.page for link in app.page_link]
        assert links[0] == "explore"
        assert {place.address for place in menu.PLACES.values()} - {menu.FIRST} <= set(links)
        monkeypatch.setattr(menu.host, "requested_page", lambda: "")
        app.run()


def test_how_pages_are_shown_goes_along_and_what_they_show_does_not() -> None:
    """The modes for networks without WebSockets and for hidden controls must stay active."""

    def led(app: AppTest) -> set[str]:
        assert not app.exception
        return {link.proto.query_string for link in app.page_link}

    home = load_page("home", socket="off")
    assert home.title[0].value.startswith("See what a loss does")
    assert all("socket=off" in query for query in led(home))
    shown = {"hide": "presets", "present": "1", "controls": "n", "n": "0.3,0.2"}
    assert led(load_page("compare", **shown)) == {"hide=presets&present=1"}


def test_the_menu_of_streamlit_says_what_this_is_and_how_to_cite_it() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f'title: "{about.TITLE}"' in citation
    assert f"- name: {about.AUTHORS}" in citation
    assert f"version = {{{dmlcore.__version__}}}" in about.text()


def test_a_moved_address_carries_what_stands_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(menu, "MOVED", {"plane": "fields"})
    app: AppTest = load_page("plane", loss="ranking")
    assert not app.exception
    assert app.title[0].value == "Force fields of triplet losses"
    assert app.query_params["loss"] == "ranking"


def test_the_icon_is_set_before_the_menu_else_a_browser_fetches_that_of_the_page(
    monkeypatch: pytest.MonkeyPatch, sent: list[dict]
) -> None:
    menus_before: list[int] = []
    configure = menu.st.set_page_config

    def noted(**options: object) -> None:
        if "page_icon" in options:
            menus_before.append(len(sent))
            assert options["menu_items"] == {"About": about.text()}
        configure(**options)

    monkeypatch.setattr(menu.st, "set_page_config", noted)
    assert not load_page("published_results").exception
    assert menus_before == [0]
