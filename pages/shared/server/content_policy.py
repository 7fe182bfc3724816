"""What a page of the app may load and run: what comes from the app, and no script but those written for it."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from pages.shared.server.host import STATIC

# Streamlit's components of version 2 are imported from blob: addresses that its own scripts make.
# Its styles (emotion) and those of our st.html are inline; a style runs nothing.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
ASSETS = Path(__file__).resolve().parents[3] / "assets"
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@cache
def content_policy() -> str:
    """The Content-Security-Policy of every answer; the few scripts written into a page are allowed by their digests."""
    page = (STATIC / "index.html").read_bytes()
    scripts = _INLINE.findall(page) + [path.read_bytes() for path in sorted(ASSETS.rglob("inline.js"))]
    digests = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(s).digest()).decode()}'" for s in scripts)
    return "; ".join(f"{name} {value}{digests if name == 'script-src' else ''}" for name, value in POLICY.items())
