"""Widgets for single keys of a spec."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore.catalogue import Slider
from dmlcore.spec import keys
from pages.shared.widgets.forms import Form, Words
from pages.shared.words.labels import EMPTY, LABELS, WORDS, WORDS_OF


def field(form: Form, key: str, **shown: Any) -> Any:
    """Show the widget for a key of a spec, such as "model.freeze", and return its value."""
    words = {**WORDS, **WORDS_OF.get(key, {}), **shown.pop("words", {})}
    if key in EMPTY:
        shown = {"placeholder": EMPTY[key]} | shown
    return form.field(key, LABELS[key], keys()[key], words=lambda value: words.get(value, value), **shown)


def choice(form: Form, key: str, options: list[str], words: Words, **shown: Any) -> str:
    """Show a select box for a key of a spec, such as "loss.name", with the options that apply; return the option."""
    return form.choice(key, LABELS[key], options, words=words, **{"help": keys()[key].description} | shown)


def slider(form: Form, key: str, symbol: str, low: float, high: float, step: float = 0.01) -> float:
    """Show a slider from `low` to `high` for a number in a spec, with its LaTeX `symbol`, and return the number."""
    info = keys()[key]
    return float(form.parameter(key, key, Slider(low, high, symbol, info.description or "", step=step), info.default))


def row(form: Form, *keys: str, **shown: Any) -> None:
    """Show the widgets for several keys of a spec next to each other."""
    for place, key in zip(st.columns(len(keys)), keys, strict=True):
        with place:
            field(form, key, **shown)
