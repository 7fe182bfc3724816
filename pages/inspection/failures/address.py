"""URL parameters of the Failures page, and the merging of URL changes made by the force-field component."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

OF = ("query", "right", "wrong")
OF_POINTS = ("a", "p", "n", "view", "line", "cut")  # parameters that become invalid when another neighbour is chosen
OF_TRIPLET = ("right", "wrong", *OF_POINTS)  # parameters that become invalid when another query is chosen
CLASS = "class"  # parameter that holds the label of the class whose failures are shown
OWN = ("selection", CLASS)  # parameters that Streamlit writes; the component's values for them may be outdated
LONGEST = 4000  # maximum length of a query string in characters


def followed(now: Mapping[str, str], written: object) -> dict[str, str]:
    """Return the current query parameters, updated from the URL that the force-field component wrote.

    If the written URL belongs to another run, it is ignored. If it shows another triplet of the run, because the
    message arrived late, only the loss parameters and the step are taken from it.

    Args:
        now: Current query parameters, as known to Streamlit.
        written: Query string written by the component; values of other types are ignored.
    """
    there = dict(parse_qsl(written[:LONGEST])) if isinstance(written, str) else {}
    if not there or there.get("run") != now.get("run", there.get("run")):
        return dict(now)
    late = any(there.get(name) != now.get(name, there.get(name)) for name in OF)
    better = (*OF, *OF_TRIPLET, *OWN) if late else OWN
    own = {name: now[name] for name in better if name in now and (name in OF or name in OWN)}
    return {name: own.get(name, value) for name, value in there.items() if name not in better or name in own} | own
