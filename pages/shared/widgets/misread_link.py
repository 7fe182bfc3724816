"""Notice about values in the URL that were replaced with defaults, so that typing errors in links are visible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from dmlcore import losses
from pages.shared.state import untrusted
from pages.shared.state.page_state import PageState, Preset
from pages.shared.state.untrusted import Misread
from pages.shared.widgets.component import KEPT
from pages.shared.widgets.live_component import LECTURE

State = TypeVar("State", bound=PageState)
_PLAIN = re.compile(r"[A-Za-z0-9_.,+-]{1,40}")  # text that needs no escaping in Markdown


@contextmanager
def explained() -> Iterator[None]:
    """Run the block, then show a notice if it replaced values of the URL with defaults."""
    with untrusted.misreading() as misread:
        yield
    if misread:
        st.caption(f":material/link_off: {sentence(misread)}")


def opened(kind: type[State], default: State | None = None, first: Preset | None = None) -> State:
    """Return the page state in the URL, and show a notice if some values in the URL are invalid.

    `first` is the preset to open if the URL contains no state. If the URL contains a state, missing values come from
    `default`, so that old links still open the state that they were made for.
    """
    query = st.query_params.to_dict()
    if first and not query.keys() - LECTURE - set(KEPT):
        return first.state(kind)
    with explained():
        return kind.from_query(query, default)


def sentence(misread: list[Misread]) -> str:
    """Return a sentence that names the first invalid value and the number of other invalid values."""
    first, more = misread[0], len({(each.what, each.asked, each.name) for each in misread}) - 1
    quoted = f" (“{first.asked}”)" if _PLAIN.fullmatch(first.asked) else ""
    if first.what == "loss":
        complaint = f"names an unknown loss{quoted}; {losses.describe(first.used).title} is shown"
    elif first.what == "number":
        place = f" for {first.name}" if first.name else ""
        complaint = f"gives no number{place}{quoted}; the default is used"
    else:
        complaint = f"names an unknown option{quoted}; the default is used"
    others = f" {more} more {'value is' if more == 1 else 'values are'} invalid." if more else ""
    return f"This address {complaint}.{others}"
