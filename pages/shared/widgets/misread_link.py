"""Notice about the parts of an address that were replaced by defaults, so that typing errors in links are visible."""

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
from pages.shared.widgets.component import KEPT, LECTURE

State = TypeVar("State", bound=PageState)
_PLAIN = re.compile(r"[A-Za-z0-9_.,+-]{1,40}")  # text that needs no escaping in Markdown


@contextmanager
def explained() -> Iterator[None]:
    """Show a notice after the block if it replaced values of the address by defaults."""
    with untrusted.misreading() as misread:
        yield
    if misread:
        st.caption(f":material/link_off: {sentence(misread)}")


def opened(kind: type[State], default: State | None = None, first: Preset | None = None) -> State:
    """Return the state in the address, and show a notice if parts of the address are invalid.

    `first` is the preset to open if the address contains no state. Values missing from any other address come from
    `default`, so that old links open the same state as before.
    """
    query = st.query_params.to_dict()
    if first and not query.keys() - LECTURE - set(KEPT):
        return first.state(kind)
    with explained():
        return kind.from_query(query, default)


def sentence(misread: list[Misread]) -> str:
    """Return a sentence with the first invalid value and the number of further ones."""
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
