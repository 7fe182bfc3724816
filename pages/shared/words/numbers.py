"""Functions that format numbers for display."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """Return a duration in seconds as text for display, for example 8 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def unbroken(text: str) -> str:
    """Return a sentence in which no line ends between a number and its per cent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def percent(value: float | None) -> str:
    """Return a score in 0..1 as a percentage for display; a dash if it is None or NaN."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f} %"
