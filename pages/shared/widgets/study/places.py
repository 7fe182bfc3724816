"""Pages that show studies other than the Studies page, and links to the results of any study."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

ELSEWHERE: Mapping[str, str] = {  # study -> address of its page
    "tokens": "gap_vs_gsp",
    "tokens-few": "gap_vs_gsp",
    "tokens-epsilon": "gap_vs_gsp",
    "tokens-sweep": "gap_vs_gsp",
    "omniglot-collage": "collage",
    "omniglot-collage-poolings": "collage",
    "collage": "collage",
    "prototypes": "prototypes",
    "prototypes-birds": "prototypes",
}


def address_of(name: str) -> str:
    """Return the address of the page that shows a study, relative to the root of the app."""
    return ELSEWHERE.get(name) or f"studies?{urlencode({'study': name})}"
