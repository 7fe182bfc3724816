"""What the address of the page consists of, and how the page goes on with what its plane has written there."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

OF = ("query", "right", "wrong")
OF_POINTS = ("a", "p", "n", "view", "line", "cut")  # senseless with another neighbour
OF_TRIPLET = ("right", "wrong", *OF_POINTS)  # and with another query
CLASS = "class"  # whose failures are shown
OWN = ("selection", CLASS)  # what Streamlit writes: of this it knows better than the plane
LONGEST = 4000  # characters


def followed(now: Mapping[str, str], written: object) -> dict[str, str]:
    """The address after the plane has said how it stands there now; as it was where that is of another run.

    now: the address as Streamlit knows it. Of a failure that is shown no more, as what a plane says comes late, only
    the loss and the step hold.
    """
    there = dict(parse_qsl(written[:LONGEST])) if isinstance(written, str) else {}
    if not there or there.get("run") != now.get("run", there.get("run")):
        return dict(now)
    late = any(there.get(name) != now.get(name, there.get(name)) for name in OF)
    better = (*OF, *OF_TRIPLET, *OWN) if late else OWN
    own = {name: now[name] for name in better if name in now and (name in OF or name in OWN)}
    return {name: own.get(name, value) for name, value in there.items() if name not in better or name in own} | own
