"""Content-Security-Policy of the pages: resources only from the app itself, inline scripts only if their digest is
listed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from pages.shared.server.host import STATIC

# blob: is needed because Streamlit imports version 2 components from blob: URLs that its own scripts create. Inline
# styles are allowed because Streamlit (emotion) and our st.html elements use them; a style cannot run code.
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
    """Return the Content-Security-Policy header of all responses; it allows known inline scripts by digest."""
    page = (STATIC / "index.html").read_bytes()
    scripts = _INLINE.findall(page) + [path.read_bytes() for path in sorted((ASSETS / "built").rglob("inline.js"))]
    digests = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(s).digest()).decode()}'" for s in scripts)
    return "; ".join(f"{name} {value}{digests if name == 'script-src' else ''}" for name, value in POLICY.items())
