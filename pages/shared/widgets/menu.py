"""The pages: the menu, and links between pages, which name a page by its address and never by its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage


@dataclass(frozen=True)
class Place:
    """A page of the menu; file: its script, below pages/."""

    title: str
    icon: str
    file: str

    @property
    def symbol(self) -> str:
        """The icon as Streamlit writes it."""
        return f":material/{self.icon}:"


# By section and address; the first is what the root shows.
SECTIONS: Mapping[str, Mapping[str, Place]] = {
    "Geometry": {
        "fields": Place("Fields", "explore", "losses/fields/plane/page.py"),
        "compare": Place("Compare", "compare", "losses/fields/compare/page.py"),
        "sphere": Place("Circle and sphere", "public", "losses/fields/sphere/page.py"),
        "charges": Place("Charges", "bolt", "losses/charges/page.py"),
        "microscope": Place("Pair weights", "biotech", "losses/fields/pair_weights/page.py"),
        "truth": Place("Errata", "fact_check", "library/errata/page.py"),
    },
    "Pooling": {
        "transport": Place("Transport", "conversion_path", "pooling/transport/page.py"),
        "gap_or_gsp": Place("GAP or GSP", "balance", "pooling/gap_or_gsp/page.py"),
        "prototypes": Place("Prototypes", "hive", "pooling/prototypes/page.py"),
        "collage": Place("Collage", "dashboard", "pooling/collage/page.py"),
    },
    "Training": {
        "toys": Place("Toys", "toys", "losses/toys/page.py"),
        "data": Place("Data", "folder_open", "training/train/data/page.py"),
        "train": Place("Train", "play_circle", "training/train/page.py"),
        "runs": Place("Runs", "monitoring", "training/runs/page.py"),
        "fork": Place("Fork", "fork_right", "training/runs/fork/page.py"),
        "studies": Place("Studies", "leaderboard", "training/studies/page.py"),
    },
    "Inspection": {
        "gallery": Place("Gallery", "grid_view", "inspection/gallery/page.py"),
        "failure": Place("Forces of a failure", "query_stats", "inspection/failures/page.py"),
        "maps": Place("Map", "bubble_chart", "inspection/map/page.py"),
        "differences": Place("Differences", "compare_arrows", "inspection/differences/page.py"),
        "confusions": Place("Confusions", "grid_on", "inspection/confusions/page.py"),
        "published": Place("Published", "menu_book", "library/published/page.py"),
    },
}
PLACES: Mapping[str, Place] = {name: place for section in SECTIONS.values() for name, place in section.items()}
FIRST = next(iter(PLACES))


def pages() -> dict[str, list[StreamlitPage]]:
    """What st.navigation shows."""
    return {
        section: [
            st.Page(place.file, title=place.title, icon=place.symbol, url_path=name, default=name == FIRST)
            for name, place in places.items()
        ]
        for section, places in SECTIONS.items()
    }


def link(
    page: str,
    label: str | None = None,
    query: Mapping[str, Any] | None = None,
    *,
    icon: str | None = None,
    into: DeltaGenerator | None = None,
) -> None:
    """A link to a page, with its own title and icon where no others are given."""
    place = PLACES[page]
    symbol = f":material/{icon}:" if icon else place.symbol
    (into or st).page_link(place.file, label=label or place.title, icon=symbol, query_params=dict(query or {}))


def go(page: str, query: Mapping[str, Any]) -> None:
    """Leave this page for another one; what stands below in the script does not run."""
    st.switch_page(PLACES[page].file, query_params=dict(query))
