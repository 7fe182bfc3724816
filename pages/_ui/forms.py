"""Widgets from declarations: fields of a RunSpec, and sliders from the parameter table of a loss."""

from __future__ import annotations

import math
import re
import types
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import streamlit as st
from pydantic.fields import FieldInfo

from dmlcore.params import Choice, Parameter, Slider

STOPS = 60  # of a logarithmic slider
Words = Callable[[str], str]


class Form:
    """Values by key that outlive their widgets, so that other pages and hidden fields lose nothing.

    Each widget has the key `widget_key(key)`; `fill` before the widgets are drawn (in a callback) sets many at once.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.values: dict[str, Any] = st.session_state.setdefault(f"{name}-values", {})
        self._filled: dict[str, Any] = st.session_state.setdefault(f"{name}-filled", {})

    def widget_key(self, key: str) -> str:
        return f"{self._name}-{re.sub(r'[^a-z0-9]+', '-', key)}"

    def fill(self, values: Mapping[str, Any]) -> None:
        """Replace the values that are named; the others stay."""
        self.values.update(values)
        self._filled.update(values)
        for key in values:
            st.session_state.pop(self.widget_key(key), None)

    def field(
        self,
        key: str,
        label: str,
        info: FieldInfo,
        *,
        words: Words = str,
        without: Collection[str] = (),
        **shown: Any,
    ) -> Any:
        """The widget that fits the type of a field, with its bounds and its description as help.

        without: words among the choices of the field that cannot be chosen here.
        """
        bare = _without_none(info.annotation)
        shown = {"help": info.description} | shown
        if get_origin(bare) is Literal:
            options = [option for option in get_args(bare) if option not in without]
            return self.choice(key, label, options, words=words, **shown)
        low, high = _bounds(info)
        if bare is bool:
            return self._draw(key, st.toggle, label, **shown)
        if bare is int:
            shown = {"min_value": low, "max_value": high, "step": 1} | shown
            return self._draw(key, st.number_input, label, **shown)
        if bare is float:
            limits = {
                "min_value": None if low is None else float(low),
                "max_value": None if high is None else float(high),
            }
            return self._draw(key, st.number_input, label, **limits, **({"step": 1e-4, "format": "%g"} | shown))
        longest = _most_characters(info) if bare is str else None  # of a tuple it counts the items
        return self._draw(key, st.text_input, label, max_chars=longest, **shown)

    def choice(self, key: str, label: str, options: Sequence[str], *, words: Words = str, **shown: Any) -> str:
        """One of `options`; a value that is none of them gives way to the first.

        Streamlit tells options apart by their words, so that those which share them are followed by their names.
        """
        if self.values.get(key) not in options:
            self.fill({key: options[0]})
        count = Counter(map(words, options))

        def told(option: str) -> str:
            return words(option) if count[words(option)] < 2 else f"{words(option)} ({option})"

        return str(self._draw(key, st.selectbox, label, options=list(options), format_func=told, **shown))

    def switch(self, key: str, label: str, options: Sequence[str]) -> str:
        """One of a few, all in sight; pressing the chosen one keeps it."""
        chosen = self._draw(key, st.segmented_control, label, options=list(options), required=True, width="stretch")
        return str(chosen or options[0])

    def text(self, key: str, label: str, **shown: Any) -> str:
        """Free text that is no key of the spec."""
        return str(self._draw(key, st.text_input, label, **shown) or "")

    def range(self, key: str, label: str, info: FieldInfo, low: float, high: float) -> tuple[float, float]:
        """A slider with two ends, between low and high or what the spec we started from asks beyond them."""
        start = self._filled.get(key) or (low, high)
        shown = {"min_value": float(min(low, start[0])), "max_value": float(max(high, start[1])), "step": 0.01}
        found: tuple[float, float] = self._draw(key, st.slider, label, help=info.description, **shown)
        return found

    def parameter(self, key: str, name: str, parameter: Parameter, default: float | str) -> float | str:
        """The slider of a hyper-parameter; with a switch for "open", that is infinity, where it may be."""
        self.values.setdefault(key, default)
        if isinstance(parameter, Slider) and isinstance(self.values[key], str):  # of a run that another version wrote
            self.fill({key: default})
        if isinstance(parameter, Choice):
            return self.choice(key, name.capitalize(), parameter.options, help=parameter.help)
        gloss = re.split(r"[:;,]", parameter.help)[0]
        label = f"${parameter.symbol}$ · {gloss}"
        if parameter.optional:
            opened = f"{key}-open"
            if self.values[key] == math.inf:
                self.fill({opened: True, key: _middle(parameter)})
            if self._draw(
                opened, st.toggle, f"${parameter.symbol}$ open: no {gloss}", help=parameter.help, default=False
            ):
                return math.inf
        start = float(self._filled.get(key, default))
        start = start if math.isfinite(start) else _middle(parameter)
        if parameter.log:
            stops = _log_stops(parameter, start)
            return float(
                self._draw(key, st.select_slider, label, options=stops, format_func="{:g}".format, help=parameter.help)
            )
        # Papers use values outside the slider; then it reaches as far.
        low, high = float(min(parameter.low, start)), float(max(parameter.high, start))
        step = float(parameter.step)  # Streamlit refuses a mixture of int and float
        shown = {"min_value": low, "max_value": high, "step": step, "format": "%g", "help": parameter.help}
        return float(self._draw(key, st.slider, label, **shown))

    def _draw(self, key: str, widget: Callable[..., Any], label: str, *, default: Any = None, **shown: Any) -> Any:
        """Draw a widget that starts from our value, and note what it returns."""
        name = self.widget_key(key)
        if name not in st.session_state:
            st.session_state[name] = self.values.get(key, default)
        self.values[key] = widget(label, key=name, **shown)
        return self.values[key]


def _without_none(annotation: Any) -> Any:
    """T of T | None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def _bounds(info: FieldInfo) -> tuple[Any, Any]:
    """Smallest and largest value; an exclusive bound is given as it is, as the spec refuses it by name."""
    low: Any = None
    high: Any = None
    for rule in info.metadata:
        if isinstance(rule, annotated_types.Ge):
            low = rule.ge
        elif isinstance(rule, annotated_types.Gt):
            low = rule.gt
        elif isinstance(rule, annotated_types.Le):
            high = rule.le
    return low, high


def _most_characters(info: FieldInfo) -> int | None:
    return next((rule.max_length for rule in info.metadata if isinstance(rule, annotated_types.MaxLen)), None)


def _middle(slider: Slider) -> float:
    middle = math.sqrt(slider.low * slider.high) if slider.log else (slider.low + slider.high) / 2
    return float(f"{middle:.2g}")


def _log_stops(slider: Slider, start: float) -> list[float]:
    """Values from low to high in equal ratios, of two digits, and the one it starts from."""
    ratio = (slider.high / slider.low) ** (1 / STOPS)
    grid = {float(f"{slider.low * ratio**i:.2g}") for i in range(STOPS + 1)}
    return sorted(grid | {start})
