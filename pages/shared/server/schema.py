"""Static data for all browser components as JSON: losses with formulas, sources and sliders, and presets of the Fields
page.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from functools import cache
from typing import Any

from dmlcore import losses
from dmlcore.catalogue import Parameter, Slider
from dmlcore.loss_analysis.thesis_figures import PRESETS
from pages.shared.state import untrusted
from pages.shared.words.lessons import PLAIN, SITUATIONS, TOUR


@cache
def schema() -> str:
    """Return the static data as JSON.

    Its keys are "losses" (by name), "presets", "plain" (plain-language texts), "situations" and "tour".
    """
    return json.dumps(
        {
            "losses": {name: loss(losses.formula(name)) for name in losses.names()},
            "presets": [asdict(p) | {"hyper": untrusted.jsonable(untrusted.hyper(p.loss, p.hyper))} for p in PRESETS],
            "plain": PLAIN,
            "situations": SITUATIONS,
            "tour": TOUR,
        },
        ensure_ascii=False,
    )


def loss(formula: losses.LossEntry) -> dict[str, Any]:
    """Return the description of a loss for the panel of a component: title, texts, formula and sliders."""
    margin = getattr(formula, "margin", None)
    return {
        "title": formula.title,
        "sentence": formula.sentence,
        "source": formula.source,
        "latex": f"E = {formula.energy_latex}",
        "margin": margin.name if margin else None,
        "controls": [_control(k, p, formula.defaults[k]) for k, p in formula.sliders.items()],
    }


def _control(name: str, parameter: Parameter, default: float | str) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": name, "symbol": parameter.symbol, "help": parameter.help}
    shown["default"] = None if default == math.inf else default
    if isinstance(parameter, Slider):
        return shown | {k: getattr(parameter, k) for k in ("low", "high", "step", "log", "optional")}
    return shown | {"options": parameter.options}
