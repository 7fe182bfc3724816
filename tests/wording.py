"""Checks of the contents of a message that do not depend on its wording."""

from __future__ import annotations

import re


def says(text: str, *named: str) -> bool:
    """Return True if a text contains these parts in this order, for example input, numbers, consequence, remedy.

    A number matches only as a whole: "7" is not found in "17" or "7.5".
    """
    inside = [rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)" for part in named]
    return re.search(".*".join(inside), text, re.DOTALL) is not None
