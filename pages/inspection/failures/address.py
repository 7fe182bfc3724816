"""Parameters of the page's address, and the merge with the address that the plane has written."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

OF = ("query", "right", "wrong")
OF_POINTS = ("a", "p", "n", "view", "line", "cut")  # invalid with another neighbour
OF_TRIPLET = ("right", "wrong", *OF_POINTS)  # invalid with another query
CLASS = "class"  # class whose failures are shown
OWN = ("selection", CLASS)  # parameters that Streamlit writes and knows better than the plane
LONGEST = 4000  # maximum length in characters


def followed(now: Mapping[str, str], written: object) -> dict[str, str]:
    """Merge the plane's state into the URL, unless the URL belongs to another run.

    Messages of the plane arrive late: if another failure is shown by now, only the loss and the step are taken over.

    Args:
        now: The address as Streamlit knows it.
    """
    there = dict(parse_qsl(written[:LONGEST])) if isinstance(written, str) else {}
    if not there or there.get("run") != now.get("run", there.get("run")):
        return dict(now)
    late = any(there.get(name) != now.get(name, there.get(name)) for name in OF)
    better = (*OF, *OF_TRIPLET, *OWN) if late else OWN
    own = {name: now[name] for name in better if name in now and (name in OF or name in OWN)}
    return {name: own.get(name, value) for name, value in there.items() if name not in better or name in own} | own
