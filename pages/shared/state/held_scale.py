"""Scales that stay while the hand moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pages.shared.state.untrusted import bounded


def held(asked: Any, fitting: Callable[[], float], settle: bool, *, lock: bool = False) -> float:
    """The scale a component asks to keep, or the fitting one if it asks for none.

    While the hand moves it stays; once it settles, it stays unless it misleads by 1.6 times or more, and if locked
    always. `fitting` is only computed where it is needed.
    """
    kept = bounded(asked, 1e-12, 1e12, 0.0)
    if kept and (lock or not settle):
        return kept
    fits = fitting()
    return kept if kept and 0.6 < kept / fits < 1.6 else fits
