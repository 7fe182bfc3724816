"""What the server asks of Streamlit: where the app is served, and the files that Streamlit serves itself."""

from __future__ import annotations

from pathlib import Path

import streamlit
from streamlit import net_util
from streamlit.runtime import Runtime
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

STATIC = Path(streamlit.__file__).parent / "static"


def base() -> str:
    """The path the app is served under, ending in a slash."""
    return f"/{streamlit.get_option('server.baseUrlPath') or ''}/".replace("//", "/")


def scheme() -> str:
    """How a browser on this machine asks for a page: http, or https where Streamlit has a certificate."""
    return "https" if streamlit.get_option("server.sslCertFile") else "http"


def internal_address() -> str | None:
    """Under which address others of the same network find this machine."""
    return net_util.get_internal_ip()


def sessions() -> int:
    """How many tabs are connected now."""
    stats = Runtime.instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY]) if Runtime.exists() else {}
    return sum(int(stat.value) for stat in stats.get(ACTIVE_SESSIONS_FAMILY, ()) if isinstance(stat, GaugeStat))
