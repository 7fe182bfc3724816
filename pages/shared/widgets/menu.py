"""Menu of the app, and links between pages. Links use page addresses (paths such as "explore"), never file names.

A Place is one menu entry. It has one or several pages, each with its own address; the entry opens the first one. The
other pages are either linked next to the title of the page, or opened from the first page (as the page that forks a
run).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from pages.shared.server import host
from pages.shared.widgets.component import HANDED_ON

Query = Mapping[str, Any]
FOLDER = Path(__file__).resolve().parents[2]
UNKNOWN = "unknown"  # used instead of an address for the page that reports an unknown address
_HERE = "address of the menu"  # session key
_LOST = "address without a page"  # session key that holds the unknown address with which the session was opened


@dataclass(frozen=True)
class Page:
    """Page with its own address; `file` is the path of its script below pages/."""

    title: str
    icon: str
    file: str

    @property
    def symbol(self) -> str:
        """Icon in Streamlit's notation."""
        return f":material/{self.icon}:"


@dataclass(frozen=True)
class Place:
    """Menu entry with its pages by address; it opens the first of them.

    `row` holds the titles of the links next to the page title, in the order of `pages`. If `unfolded` is True, the menu
    lists every page. `short` replaces a long title next to the name of the section, where little space is left.
    """

    title: str
    pages: Mapping[str, Page]
    row: tuple[str, ...] = ()
    unfolded: bool = False
    short: str = ""

    @property
    def address(self) -> str:
        """Address of the page that the menu entry opens."""
        return next(iter(self.pages))


def _one(title: str, icon: str, address: str, file: str, *, short: str = "", **beside: Page) -> Place:
    """Return a menu entry that opens one page.

    The further keyword arguments, by address, are pages that are opened from this page.
    """
    return Place(title, {address: Page(title, icon, file)} | beside, short=short)


FIRST = "home"  # page at the root address
NOT_FOUND = "Page not found"
HOME = Place("DML Lab", {FIRST: Page("Home", "home", "home/page.py")})
LESSONS = Place("Lessons", {"lessons": Page("Lessons", "school", "lessons/page.py")})
BRAND = (HOME, LESSONS)  # menu entries for newcomers, shown before the sections of the menu
SECTIONS: Mapping[str, tuple[Place, ...]] = {
    "Losses": (
        Place(
            "Fields",
            {
                "fields": Page("Fields", "explore", "losses/fields/plane/page.py"),
                "compare": Page("Compare", "compare", "losses/fields/compare/page.py"),
                "sphere": Page("Sphere", "public", "losses/fields/sphere/page.py"),
                "pair_weights": Page("Pair weights", "biotech", "losses/fields/pair_weights/page.py"),
            },
            ("Plane", "Compare", "Sphere", "Pair weights"),
        ),
        _one("Charges", "bolt", "charges", "losses/charges/page.py"),
        _one("Toy training", "toys", "toy_training", "losses/toy_training/page.py"),
    ),
    "Training": (
        Place(
            "New run",
            {
                "data": Page("Data", "model_training", "training/new_run/data/page.py"),
                "settings": Page("Settings", "tune", "training/new_run/settings/page.py"),
                "start": Page("Start", "play_circle", "training/new_run/start.py"),
                "bring_your_own": Page("Bring your own", "upload_file", "training/new_run/bring_your_own/page.py"),
            },
            ("1 Data", "2 Settings", "3 Start", "Bring your own"),
        ),
        _one(
            "Runs",
            "monitoring",
            "runs",
            "training/runs/page.py",
            fork=Page("Fork", "fork_right", "training/runs/fork/page.py"),
        ),
        _one("Studies", "leaderboard", "studies", "training/studies/page.py"),
    ),
    "Inspection": (
        Place(
            "Explore",
            {
                "explore": Page("Explore", "bubble_chart", "inspection/explore/page.py"),
                "neighbours": Page("Neighbours", "grid_view", "inspection/neighbours/page.py"),
            },
            ("Explore", "Neighbours"),
            unfolded=True,
        ),
        _one("Failures", "query_stats", "failures", "inspection/failures/page.py"),
        _one("Confusions", "grid_on", "confusions", "inspection/confusions/page.py"),
        _one("Thresholds", "straighten", "thresholds", "inspection/thresholds/page.py"),
        _one("Differences", "compare_arrows", "differences", "inspection/differences/page.py"),
    ),
    "Pooling": (
        Place(
            "In four steps",
            {
                "prototypes": Page("Prototypes", "hive", "pooling/prototypes/page.py"),
                "transport": Page("Transport", "conversion_path", "pooling/transport/page.py"),
                "gap_vs_gsp": Page("GAP vs GSP", "balance", "pooling/gap_vs_gsp/page.py"),
                "collage": Page("Collage", "dashboard", "pooling/collage/page.py"),
            },
            ("1 Prototypes", "2 Transport", "3 GAP vs GSP", "4 Collage"),
            unfolded=True,
        ),
    ),
    "Library": (
        _one("Errata", "fact_check", "errata", "library/errata/page.py"),
        _one("Claims", "rule", "claims", "library/claims/page.py"),
        _one(
            "Published results",
            "menu_book",
            "published_results",
            "library/published_results/page.py",
            short="Published",
        ),
    ),
}
INSPECT = ("explore", "failures", "confusions")
# Old addresses and their replacements; redirects keep the URL parameters.
MOVED: Mapping[str, str] = {
    "maps": "explore",
    "microscope": "pair_weights",
    "toys": "toy_training",
    "train": "settings",
    "gallery": "neighbours",
    "failure": "failures",
    "gap_or_gsp": "gap_vs_gsp",
    "truth": "errata",
    "published": "published_results",
}

PLACES: Mapping[str, Place] = {
    address: place for places in [BRAND, *SECTIONS.values()] for place in places for address in place.pages
}
PAGES: Mapping[str, Page] = {address: page for place in PLACES.values() for address, page in place.pages.items()}


def navigation(here: str) -> dict[str, list[StreamlitPage]]:
    """Return the navigation for st.navigation; the section and menu entry of the address `here` are highlighted.

    Each session receives copies of the pages, because Streamlit stores on a page object that a session may run it.
    """
    place = PLACES.get(here, HOME)
    marked = _menu(here if place.unfolded else place.address)
    return {label: [copy.copy(page) for page in pages] for label, pages in marked.items()}


@cache
def _menu(here: str) -> dict[str, list[StreamlitPage]]:
    """Return the pages by section; `here` is the address of the page to highlight. The result is cached."""
    current = PLACES[here]
    title = PAGES[here].title if current.unfolded else current.short or current.title
    shown = {"": [page for place in BRAND for page in _pages(place, here)]}
    for section, places in SECTIONS.items():
        label = f":blue[**{section} · {title}**]" if current in places else section
        shown[label] = [page for place in places for page in _pages(place, here)]
    shown[""] += [
        st.Page(_redirect(to), title=PAGES[to].title, url_path=old, visibility="hidden") for old, to in MOVED.items()
    ]
    return shown


def _pages(place: Place, here: str) -> list[StreamlitPage]:
    def title(address: str, page: Page) -> str:
        shown = page.title if place.unfolded or address != place.address else place.title
        marked = address == here if place.unfolded else place is PLACES[here] and address == place.address
        # Streamlit itself highlights the pages of BRAND, and would reserve space for the Markdown characters.
        return f":blue[**{shown}**]" if marked and place not in BRAND else shown

    return [
        st.Page(
            FOLDER / page.file,
            title=title(address, page),
            icon="" if place in BRAND else page.symbol,
            url_path=address,
            default=address == FIRST,
            visibility="visible" if place.unfolded or address == place.address else "hidden",
        )
        for address, page in place.pages.items()
    ]


@cache
def _pages_by_address() -> dict[str, StreamlitPage]:
    """Return one page per address, to be used as link targets."""
    return {page.url_path or FIRST: page for pages in _menu(FIRST).values() for page in pages}


def _redirect(to: str) -> Callable[[], None]:
    return lambda: go(to, st.query_params.to_dict())


def shown() -> StreamlitPage:
    """Send the menu to the browser with the current page highlighted, and return that page."""
    if (lost := host.requested_page().strip()) and "/" not in lost and lost not in PAGES.keys() | MOVED.keys():
        st.session_state[_LOST] = lost
    here = st.session_state.setdefault(_HERE, FIRST)
    page = _sent(here)
    # only Streamlit knows the current address, and only after it has received a menu
    if (address := page.url_path or FIRST) != here:
        st.session_state[_HERE] = address
        page = _sent(address)
    return page


def _sent(here: str) -> StreamlitPage:
    pages = navigation(here)
    # the unknown address is registered as a page; otherwise Streamlit would show Home and change the address
    if lost := st.session_state.get(_LOST):
        pages[""] += [st.Page(partial(_not_found, lost), title=NOT_FOUND, url_path=lost, visibility="hidden")]
    # Expanded, because on a phone the menu is a drawer that also holds the form of the Train page.
    return st.navigation(pages, position="top", expanded=True)


def _not_found(address: str) -> None:
    """Show an error that no page has this address, links to pages with similar addresses, and all menu entries."""
    st.title(NOT_FOUND, anchor=False)
    st.text(f"No page has the address /{address}.")  # plain text, because the address may come from an untrusted link
    if close := get_close_matches(address.casefold(), PAGES, n=3):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("Did you mean:", width="content")
            for page in close:
                link(page)
    for section, places in {"Start": BRAND, **SECTIONS}.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{section}**", width=90)
            for place in places:
                link(place.address, "Home" if place is HOME else place.title)


def title_of(page: StreamlitPage) -> str:
    """Return the title for the browser tab."""
    address = address_of(page)
    title = NOT_FOUND if address == UNKNOWN else PAGES[MOVED.get(address, address)].title
    return HOME.title if address == FIRST else f"{title} · {HOME.title}"


def address_of(page: StreamlitPage) -> str:
    """Return the address of a page; UNKNOWN for the page that reports an unknown address."""
    address = page.url_path or FIRST
    return address if address in PAGES.keys() | MOVED.keys() else UNKNOWN


def views(here: str, title: str) -> None:
    """Show the title of a page and, on the same line, links to all pages of its menu entry."""
    line = st.container(horizontal=True, vertical_alignment="center", key="views")
    line.title(title, anchor=False, width="content")
    # on narrow screens, the links wrap to the next line together
    row(here, line.container(horizontal=True, width="content"))


def row(here: str, into: DeltaGenerator, query: Query | None = None) -> None:
    """Show in the container `into` links to all pages of the menu entry that contains the page `here`.

    `query` holds the URL parameters for the links to the other pages.
    """
    place = PLACES[here]
    for name, address in zip(place.row, place.pages, strict=True):
        link(address, name, query if address != here else None, into=into)


def link(
    page: str,
    label: str | None = None,
    query: Query | None = None,
    *,
    icon: str | None = None,
    into: DeltaGenerator | None = None,
    disabled: bool = False,
) -> None:
    """Show a link to a page, by default with the title and icon of that page; `query` holds its URL parameters."""
    about = PAGES[page]
    symbol = f":material/{icon}:" if icon else about.symbol
    (into or st).page_link(
        _pages_by_address()[page],
        label=label or about.title,
        icon=symbol,
        query_params=onward(query or {}),
        disabled=disabled,
    )


def inspect(run: str) -> None:
    """Show a row of links to the Inspection pages of a trained run."""
    with st.container(horizontal=True, width="content", gap="small", key=f"primary-links-{run}"):
        for address in INSPECT:
            link(address, PLACES[address].title, {"run": run})


def go(page: str, query: Query) -> None:
    """Switch to another page with the URL parameters `query`; this ends the current script."""
    st.switch_page(PAGES[page].file, query_params=onward(query))


def onward(query: Query) -> dict[str, Any]:
    """Return the URL parameters for a link to another page: `query`, and the display parameters of the current URL."""
    return {name: st.query_params[name] for name in HANDED_ON if name in st.query_params} | dict(query)
