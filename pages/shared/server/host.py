"""Access to Streamlit's server and its internals.

Provides the base path of the app and Streamlit's static files, opens pages in advance (so that no visitor waits for
computations that can be cached), and drops fragments of pages that a visitor has left.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

import streamlit
from starlette.types import Scope
from streamlit import net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

STATIC = Path(streamlit.__file__).parent / "static"
LONGEST = 120.0  # maximum number of seconds to wait for one page before opening the next one


def base() -> str:
    """Return the base path of the app (server.baseUrlPath), with a leading and a trailing slash."""
    return f"/{streamlit.get_option('server.baseUrlPath') or ''}/".replace("//", "/")


def route(scope: Scope) -> str:
    """Return the path of a request relative to the base path, without a leading slash; "" outside the base path."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return path.removeprefix(base()) if path.startswith(base()) else ""


def scheme() -> str:
    """Return "https" if Streamlit has a certificate, else "http"."""
    return "https" if streamlit.get_option("server.sslCertFile") else "http"


def internal_address() -> str | None:
    """Return the IP address of this machine in its local network; None if it is unknown."""
    return net_util.get_internal_ip()


def requested_page() -> str:
    """Return the page named in the URL if the session is new, else "" (the browser then refers to pages by hash)."""
    context = get_script_run_ctx()
    manager = context.pages_manager if context else None
    return (manager.intended_page_name or "") if manager and not manager.intended_page_script_hash else ""


def sessions() -> int:
    """Return the number of connected browser tabs."""
    stats = Runtime.instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY]) if Runtime.exists() else {}
    return sum(int(stat.value) for stat in stats.get(ACTIVE_SESSIONS_FAMILY, ()) if isinstance(stat, GaugeStat))


def uploaded_bytes() -> dict[str, int]:
    """Return the total size of the uploaded files in bytes, by session id."""
    files = getattr(Runtime.instance().uploaded_file_mgr, "file_storage", {}) if Runtime.exists() else {}
    return {session: sum(len(file.data) for file in list(of.values())) for session, of in list(files.items())}


def remove_orphaned_uploads() -> None:
    """Remove uploaded files of closed sessions. A session that lost its connection keeps its files until it expires.

    Streamlit checks for expired sessions only when another session closes, so the files of the last session would stay.
    """
    if uploaded := uploaded_bytes():
        runtime = Runtime.instance()
        open_sessions = {info.session.id for info in runtime._session_mgr.list_sessions()}
        for session in uploaded.keys() - open_sessions:
            runtime.uploaded_file_mgr.remove_session_files(session)


def remove_own_uploads() -> None:
    """Remove the uploaded files of the current session from memory."""
    context = get_script_run_ctx()
    if context and Runtime.exists():
        Runtime.instance().uploaded_file_mgr.remove_session_files(context.session_id)


def be_done_with_left_pages() -> None:
    """Patch Streamlit so that no fragment of a page runs after the visitor has requested another page.

    Without the patch, Streamlit runs the fragment after the new page, does not find it, and reports the previous page
    as the current one, which hides the new page. Components that communicate through Streamlit send requests until they
    are removed, so that about one in fifteen pages opened from a page with such a component stayed empty.
    """
    request = AppSession.request_rerun
    # the page that a session showed before it requested the current one
    left: WeakKeyDictionary[AppSession, str] = WeakKeyDictionary()

    def request_rerun(session: AppSession, state: ClientState | None) -> None:
        page = state.page_script_hash if state else ""
        if state and state.fragment_id:
            if page and page == left.get(session):
                return
        elif page:
            shown = session._client_state.page_script_hash
            left[session] = shown if page != shown else ""
        request(session, state)

    AppSession.request_rerun = request_rerun  # type: ignore[method-assign,assignment]


class _Visitor(SessionClient):
    """Streamlit client that replaces a browser and signals when the script of a page has finished."""

    def __init__(self) -> None:
        self.complete = asyncio.Event()

    @property
    def client_context(self) -> None:
        """Always None; the interface requires the property."""
        return None

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        """Set `complete` when a message reports that the page's script has finished."""
        if msg.WhichOneof("type") == "script_finished":
            self.complete.set()


async def open_pages(addresses: Iterable[str]) -> None:
    """Run the pages at these addresses one after another in a temporary session; do nothing if Streamlit is not
    running.
    """
    if not Runtime.exists():
        return
    runtime, visitor = Runtime.instance(), _Visitor()
    session = runtime.connect_session(client=visitor, user_info={})
    try:
        for address in addresses:
            visitor.complete.clear()
            message = BackMsg()
            message.rerun_script.query_string = ""
            message.rerun_script.page_name = address
            runtime.handle_backmsg(session, message)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(visitor.complete.wait(), LONGEST)
    finally:
        runtime.close_session(session)
