"""What the server asks of Streamlit: where the app is served, and the files that Streamlit serves itself."""

from __future__ import annotations

from pathlib import Path

import streamlit
from streamlit import net_util

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
