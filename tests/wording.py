"""What a sentence must say, whichever way it is worded."""

from __future__ import annotations

import re


def says(text: str, *named: str) -> bool:
    """Whether a text says these things in this order: the input, the numbers, what follows, the remedy.

    A number stands for itself alone: "7" is not said by "17" or "7.5".
    """
    inside = [rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)" for part in named]
    return re.search(".*".join(inside), text, re.DOTALL) is not None
