"""Widgets generated from the declarations of RunSpec fields and of loss parameters."""

from __future__ import annotations

import math
import re
import types
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import streamlit as st
from pydantic.fields import FieldInfo

from dmlcore.catalogue import Choice, Parameter, Slider

STOPS = 60  # number of positions of a logarithmic slider
Words = Callable[[str], str]


@dataclass(frozen=True)
class Bounds:
    """Range of allowed numbers; each limit belongs to the range unless it is marked as open."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    @classmethod
    def of(cls, info: FieldInfo) -> Bounds:
        """Return the bounds that a pydantic field declares."""
        bounds: dict[str, Any] = {}
        for rule in info.metadata:
            for name, end, is_open in _RULES:
                if isinstance(rule, name):
                    side = "low" if end in ("ge", "gt") else "high"
                    bounds |= {side: getattr(rule, end), f"{side}_open": is_open}
        return cls(**bounds)

    def fault(self, label: str, value: float) -> str:
        """Return a sentence that starts with `label` and says why `value` is out of range; "" if it is in range."""
        below = self.low is not None and (value <= self.low if self.low_open else value < self.low)
        above = self.high is not None and (value >= self.high if self.high_open else value > self.high)
        if not below and not above:
            return ""
        ends = []
        if self.low is not None:
            ends.append(f"{'more than' if self.low_open else 'at least'} {spelled(self.low)}")
        if self.high is not None:
            ends.append(f"{'less than' if self.high_open else 'at most'} {spelled(self.high)}")
        allowed = f"be {' and '.join(ends)}"
        if len(ends) == 2 and not (self.low_open or self.high_open):
            allowed = f"be between {spelled(self.low)} and {spelled(self.high)}"
        return f"{label} must {allowed}, not {spelled(value)}."


_RULES = (
    (annotated_types.Ge, "ge", False),
    (annotated_types.Gt, "gt", True),
    (annotated_types.Le, "le", False),
    (annotated_types.Lt, "lt", True),
)


def spelled(number: float | None) -> str:
    """Return a number as text for display, for example 10,000,000 or 0.001; a dash if it is None."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:g}"


def number(
    label: str,
    key: str,
    bounds: Bounds,
    *,
    start: float | None = None,
    whole: bool = False,
    empty: bool = False,
    **shown: Any,
) -> tuple[Any, str]:
    """Show a number input; return its value and an error message ("" if valid), which is also shown below the input.

    `start` is the initial value; `whole` requires an integer; `empty` allows an empty input.

    The Streamlit widget gets no bounds, because the browser would not send values outside them and Python would
    continue with the previous number. It gets no default value, because an emptied input would then return its smallest
    number. It accepts fractions, because an integer input reads "1e9" as 1.
    """
    if key not in st.session_state:
        st.session_state[key] = None if start is None else float(start)
    step, spelling = float(shown.pop("step", 1 if whole else 1e-4)), shown.pop("format", "%g")
    value = st.number_input(label, value=None, key=key, step=step, format=spelling, **shown)
    if value is None:
        fault = "" if empty else f"{label} is required."
    elif whole and value != int(value):
        fault = f"{label} must be a whole number, not {spelled(value)}."
    else:
        fault = bounds.fault(label, value)
    if fault:
        st.markdown(f":small[:red[:material/error: {fault}]]")
    return int(value) if whole and value is not None and not fault else value, fault


FROM_THE_DATA = (
    "Chosen from the mean distance within classes in the first batch, so that the loss is active wherever the ranking "
    "loss with margin 0.1 is (Karaman 2021, App. B)."
)


class Form:
    """Form values by key, stored separately from the widgets so that they survive page changes and hidden widgets.

    Each widget has the key `widget_key(key)`. `fill` sets many values at once; call it in a callback, before the
    widgets are drawn. `faults` lists one error message per invalid number input drawn so far; an invalid input does not
    change the stored value.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.faults: list[str] = []
        self.values: dict[str, Any] = st.session_state.setdefault(f"{name}-values", {})
        self._filled: dict[str, Any] = st.session_state.setdefault(f"{name}-filled", {})

    def widget_key(self, key: str) -> str:
        return f"{self._name}-{re.sub(r'[^a-z0-9]+', '-', key)}"

    def fill(self, values: Mapping[str, Any]) -> None:
        """Set the given values and leave all others unchanged."""
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
        """Show the widget that suits the type of a pydantic field, and return its value.

        The widget has the field's bounds, and the field's description as help. `without` lists choices of the field
        that are not offered.
        """
        bare = _without_none(info.annotation)
        shown = {"help": info.description} | shown
        if get_origin(bare) is Literal:
            options = [option for option in get_args(bare) if option not in without]
            return self.choice(key, label, options, words=words, **shown)
        if bare is bool:
            return self._draw(key, st.toggle, label, **shown)
        if bare in (int, float):
            return self._number(key, label, info, whole=bare is int, **shown)
        # for a tuple, the declared maximum length counts items, not characters
        longest = _most_characters(info) if bare is str else None
        return self._draw(key, st.text_input, label, max_chars=longest, **shown)

    def _number(self, key: str, label: str, info: FieldInfo, *, whole: bool, **shown: Any) -> Any:
        """Show a number input and return the stored value; an invalid number is reported in `faults` and not stored."""
        value, fault = number(
            label,
            self.widget_key(key),
            Bounds.of(info),
            start=self.values.get(key),
            whole=whole,
            empty=type(None) in get_args(info.annotation),
            **shown,
        )
        if fault:
            self.faults.append(fault)
        else:
            self.values[key] = value
        return self.values.get(key)

    def choice(self, key: str, label: str, options: Sequence[str], *, words: Words = str, **shown: Any) -> str:
        """Show a select box and return the selected option; if the stored value is not an option, select the first one.

        Streamlit identifies options by their labels, so the option's name is appended to labels that occur more than
        once.
        """
        if self.values.get(key) not in options:
            self.fill({key: options[0]})
        count = Counter(map(words, options))

        def distinct(option: str) -> str:
            return words(option) if count[words(option)] < 2 else f"{words(option)} ({option})"

        return str(self._draw(key, st.selectbox, label, options=list(options), format_func=distinct, **shown))

    def switch(self, key: str, label: str, options: Sequence[str]) -> str:
        """Show a segmented control and return the selected option; clicking this option again does not deselect it."""
        chosen = self._draw(key, st.segmented_control, label, options=list(options), required=True, width="stretch")
        return str(chosen or options[0])

    def text(self, key: str, label: str, **shown: Any) -> str:
        """Show a text input for a value that is not part of the spec, and return the text."""
        return str(self._draw(key, st.text_input, label, **shown) or "")

    def range(self, key: str, label: str, info: FieldInfo, low: float, high: float) -> tuple[float, float]:
        """Show a range slider from `low` to `high` and return its range; values set by `fill` extend the limits."""
        start = self._filled.get(key) or (low, high)
        shown = {"min_value": float(min(low, start[0])), "max_value": float(max(high, start[1])), "step": 0.01}
        chosen: tuple[float, float] = self._draw(key, st.slider, label, help=info.description, **shown)
        return chosen

    def parameter(
        self, key: str, name: str, parameter: Parameter, default: float | str, *, words: bool = False
    ) -> float | str:
        """Show the widget of a hyper-parameter and return its value; add a toggle if infinity is allowed.

        If `words` is True, also show a toggle for each of the parameter's `words`, such as a margin from the data.
        """
        self.values.setdefault(key, default)
        for word in getattr(parameter, "words", ()) if words else ():
            chosen = f"{key}-{word}"
            if self.values[key] == word:
                self.fill({chosen: True, key: default})
            if self._draw(
                chosen, st.toggle, f"${parameter.symbol}$ from the {word}", help=FROM_THE_DATA, default=False
            ):
                return str(word)
        # a run written by another version stored a text
        if isinstance(parameter, Slider) and isinstance(self.values[key], str):
            self.fill({key: default})
        if isinstance(parameter, Choice):
            return self.choice(key, name.replace("_", " ").capitalize(), parameter.options, help=parameter.help)
        gloss = re.split(r"[:;,]", parameter.help)[0]
        label = f"${parameter.symbol}$ · {gloss}"
        if parameter.optional:
            opened = f"{key}-open"
            if self.values[key] == math.inf:
                self.fill({opened: True, key: _middle(parameter)})
            unset = f"${parameter.symbol} = \\infty$: no {gloss[0].lower()}{gloss[1:]}"
            if self._draw(opened, st.toggle, unset, help=parameter.help, default=False):
                return math.inf
        start = float(self._filled.get(key, default))
        start = start if math.isfinite(start) else _middle(parameter)
        if parameter.log:
            stops = _log_stops(parameter, start)
            return float(
                self._draw(key, st.select_slider, label, options=stops, format_func="{:g}".format, help=parameter.help)
            )
        # Papers use values outside the slider's range, so the range is extended to `start`.
        low, high = float(min(parameter.low, start)), float(max(parameter.high, start))
        step = float(parameter.step)  # st.slider does not accept a mixture of int and float
        shown = {"min_value": low, "max_value": high, "step": step, "format": "%g", "help": parameter.help}
        return float(self._draw(key, st.slider, label, **shown))

    def _draw(self, key: str, widget: Callable[..., Any], label: str, *, default: Any = None, **shown: Any) -> Any:
        """Show a widget with the stored value (else `default`), and store the value that the widget returns."""
        name = self.widget_key(key)
        if name not in st.session_state:
            st.session_state[name] = self.values.get(key, default)
        self.values[key] = widget(label, key=name, **shown)
        return self.values[key]


def _without_none(annotation: Any) -> Any:
    """Return T if the annotation is `T | None`, else the annotation itself."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def _most_characters(info: FieldInfo) -> int | None:
    return next((rule.max_length for rule in info.metadata if isinstance(rule, annotated_types.MaxLen)), None)


def _middle(slider: Slider) -> float:
    middle = math.sqrt(slider.low * slider.high) if slider.log else (slider.low + slider.high) / 2
    return float(f"{middle:.2g}")


def _log_stops(slider: Slider, start: float) -> list[float]:
    """Return geometrically spaced values from low to high, rounded to two significant digits, plus `start`."""
    ratio = (slider.high / slider.low) ** (1 / STOPS)
    grid = {float(f"{slider.low * ratio**i:.2g}") for i in range(STOPS + 1)}
    return sorted(grid | {start})
