"""What the server asks of Streamlit: where the app is served, the files that Streamlit serves itself, to open pages
before visitors do, so that none of a crowd waits for what is computed once, and to be done with a page that is left."""

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
LONGEST = 120.0  # seconds that a page may take before the next one is opened


def base() -> str:
    """The path the app is served under, ending in a slash."""
    return f"/{streamlit.get_option('server.baseUrlPath') or ''}/".replace("//", "/")


def route(scope: Scope) -> str:
    """Return the path of a request below the path the app is served under, without a leading slash; "" elsewhere."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return path.removeprefix(base()) if path.startswith(base()) else ""


def scheme() -> str:
    """How a browser on this machine asks for a page: http, or https where Streamlit has a certificate."""
    return "https" if streamlit.get_option("server.sslCertFile") else "http"


def internal_address() -> str | None:
    """Under which address others of the same network find this machine."""
    return net_util.get_internal_ip()


def requested_page() -> str:
    """Return the page that the address names as the session opens; "" later, when the browser names it by a hash."""
    context = get_script_run_ctx()
    manager = context.pages_manager if context else None
    return (manager.intended_page_name or "") if manager and not manager.intended_page_script_hash else ""


def sessions() -> int:
    """How many tabs are connected now."""
    stats = Runtime.instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY]) if Runtime.exists() else {}
    return sum(int(stat.value) for stat in stats.get(ACTIVE_SESSIONS_FAMILY, ()) if isinstance(stat, GaugeStat))


def uploaded_bytes() -> dict[str, int]:
    """Return the bytes of the files that each session has uploaded."""
    files = getattr(Runtime.instance().uploaded_file_mgr, "file_storage", {}) if Runtime.exists() else {}
    return {session: sum(len(file.data) for file in list(of.values())) for session, of in list(files.items())}


def remove_orphaned_uploads() -> None:
    """Remove uploaded files whose session is closed; one that lost its connection keeps them while it may come back.

    Streamlit looks for sessions that expired only when another one closes, so the files of the last one would stay.
    """
    if uploaded := uploaded_bytes():
        runtime = Runtime.instance()
        open_sessions = {info.session.id for info in runtime._session_mgr.list_sessions()}
        for session in uploaded.keys() - open_sessions:
            runtime.uploaded_file_mgr.remove_session_files(session)


def be_done_with_left_pages() -> None:
    """Let no fragment of a page run once a visitor has asked for another page.

    Streamlit would run it after that page, find nothing to run, and tell the browser that the page before is the one
    shown, which hides what has come. A component whose answers travel through Streamlit asks until it is gone: every
    fifteenth page that was opened from there stayed empty.
    """
    request = AppSession.request_rerun
    left: WeakKeyDictionary[AppSession, str] = WeakKeyDictionary()  # the page that is shown, where another is asked for

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
    """A tab that shows nothing; it knows when a page is complete."""

    def __init__(self) -> None:
        self.complete = asyncio.Event()

    @property
    def client_context(self) -> None:
        """Of no connection."""
        return None

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        """A message for the browser."""
        if msg.WhichOneof("type") == "script_finished":
            self.complete.set()


async def open_pages(addresses: Iterable[str]) -> None:
    """Open these pages one after another, in a session of their own that ends; nothing without Streamlit's server."""
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
