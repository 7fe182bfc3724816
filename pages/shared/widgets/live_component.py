"""Components that show the state of a page, and the state in the URL, with a notice about invalid values.

If no WebSocket opens, the page itself answers the requests of a component.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st

from dmlcore import losses
from pages.shared.state import untrusted
from pages.shared.state.page_state import PageState, Preset
from pages.shared.state.untrusted import Misread
from pages.shared.widgets.component import KEPT, component

if TYPE_CHECKING:
    from pages.shared.timeline.service import Timeline

# URL parameters that concern only a presentation, see assets/src/kit/present/stage.ts
LECTURE = {"present", "controls"}
State = TypeVar("State", bound=PageState)
_PLAIN = re.compile(r"[A-Za-z0-9_.,+-]{1,40}")  # text that needs no escaping in Markdown


@dataclass(frozen=True)
class Presentation:
    """Declaration of a page's appearance in presentation mode, in which its figure fills the window.

    In `caption`, {loss} is replaced with the title of the displayed loss; if a preset is selected, its caption is shown
    instead. `controls` lists the controls that are shown next to the figure until the speaker changes them, by their
    names in present/parts.js or the names of sliders; unavailable ones are skipped. `picture` describes the figure:
    "square", several "views" side by side, or "fill" for a figure that fits any window.
    """

    title: str
    caption: str
    controls: tuple[str, ...]
    notes: tuple[str, ...]
    picture: Literal["square", "views", "fill"] = "square"


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


def mount(
    folder: str,
    state: PageState,
    answer: Callable[[dict[str, Any]], bytes],
    *,
    key: str,
    name: str = "state",
    present: Presentation | None = None,
    hide: Sequence[str] = (),
    writes: Sequence[str] = ("ask",),
    heard: Mapping[str, Callable[[], None]] | None = None,
    **options: Any,
) -> None:
    """Mount a component that shows the state of a page and requests data through a WebSocket.

    The component receives the page state under `name`, the `options`, and the following entries, which `options` may
    override: `query` (the state as a query string), `menus` (titles of the choices), `hide` (elements that the page or
    the URL leaves out), `idle` (True if the URL has no parameters), `socket` (False if the URL disables WebSockets),
    `kept` (names of URL parameters that belong to no page state) and `present` (the declaration for presentations).

    `answer` computes responses if no WebSocket opens; `writes` lists the keys of the component's state that the
    component writes; `heard` maps such keys to the callbacks to call when their values change.
    """
    query = st.query_params.to_dict()
    written: dict[str, Any] = st.session_state.get(key) or {}
    data = {
        name: state.to_json(),
        "query": state.link(),
        "menus": state.menus(),
        "kept": KEPT,
        "hide": [*hide, *query.get("hide", "")[:200].split(",")],
        "idle": not query.keys() - LECTURE,
        "present": present and asdict(present),
        "socket": query.get("socket") != "off",
        "answer": fallback(written.get("ask"), answer),
    }
    calls = dict.fromkeys(writes, _nothing) | dict(heard or {})
    component(folder)(key=key, data=data | options, **{f"on_{each}_change": call for each, call in calls.items()})


def mount_timeline(folder: str, state: PageState, timeline: Timeline[Any, Any], *, key: str, **options: Any) -> None:
    """Mount the component of a page that plays a timeline, starting at the step in the URL."""
    step = timeline.step(st.query_params.to_dict())
    mount(folder, state, timeline.answer, key=key, query=state.to_query(), step=step, **options)


def fallback(ask: Any, answer: Callable[[dict[str, Any]], bytes]) -> dict[str, Any] | None:
    """Return the response to a request that the component wrote to its own state because no WebSocket opened."""
    if not isinstance(ask, dict):
        return None
    return {"id": ask.get("id", 0), "bytes": base64.b64encode(answer(ask)).decode()}


def _nothing() -> None:
    """Do nothing; used as a callback, because Streamlit drops what a component writes to keys without a callback."""
