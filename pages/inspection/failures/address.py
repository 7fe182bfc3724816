"""URL parameters of the Failures page, and the merge with the URL that the force-field component writes."""

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
    """Merge the URL written by the force-field component into the current URL.

    The current URL is returned if it belongs to another run. If it shows another triplet of the run, because the
    message arrived late, only the parameters of the loss and the step are taken from the message.

    Args:
        now: Current query parameters, as known to Streamlit.
        written: Query string written by the component; anything else is ignored.
    """
    there = dict(parse_qsl(written[:LONGEST])) if isinstance(written, str) else {}
    if not there or there.get("run") != now.get("run", there.get("run")):
        return dict(now)
    late = any(there.get(name) != now.get(name, there.get(name)) for name in OF)
    better = (*OF, *OF_TRIPLET, *OWN) if late else OWN
    own = {name: now[name] for name in better if name in now and (name in OF or name in OWN)}
    return {name: own.get(name, value) for name, value in there.items() if name not in better or name in own} | own
