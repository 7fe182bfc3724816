"""Catalogue of the optimisers for training runs.

The settings of a spec, form and command line, memory estimates, forks and ejected files are derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field


@dataclass(frozen=True)
class OptimiserSetting:
    """Number that some optimisers take, a key of the section `optimiser` of a spec.

    Attributes:
        argument: Keyword argument of the class in `torch.optim`.
        label: Label in the form.
        description: Help text; the names of the optimisers that take the setting are appended to it.
        default: Default value.
        step: Difference between two values in the form.
        limits: Range, with the keywords gt, ge, lt and le of `pydantic.Field`.
    """

    argument: str
    label: str
    description: str
    default: float
    step: float
    limits: Mapping[str, Any]


@dataclass(frozen=True)
class OptimiserEntry:
    """Description of an optimiser of `torch.optim`.

    Attributes:
        title: Name shown to users.
        torch_class: Name of the class in `torch.optim`.
        settings: Settings that it takes, by key. Optimisers that share a key share its `OptimiserSetting`.
        values_per_parameter: Number of values of optimiser state per network parameter, such as moments.
        scale_free: True if the length of the first step hardly depends on the scale of the gradient.
        fused: True if the class has fused kernels.
        fused_on_cpu: True if the fused kernel is faster than the default one for large networks on a CPU.
        state: Kind of optimiser state. A fork with another optimiser than its parent keeps the optimiser state only if
            both kinds are equal and not "".
    """

    title: str
    torch_class: str
    settings: Mapping[str, OptimiserSetting] = field(default_factory=dict)
    values_per_parameter: int = 1
    scale_free: bool = True
    fused: bool = True
    fused_on_cpu: bool = True
    state: str = ""

    def arguments(self, section: object) -> dict[str, float]:
        """Return the keyword arguments of the class for the section `optimiser` of a spec."""
        return {setting.argument: getattr(section, key) for key, setting in self.settings.items()}


MOMENTUM = {"momentum": OptimiserSetting("momentum", "Momentum", "Momentum", 0.9, 0.05, {"ge": 0, "lt": 1})}
EPSILON = {"epsilon": OptimiserSetting("eps", "Epsilon", "Smallest denominator", 1e-8, 1e-8, {"gt": 0, "le": 1})}

OPTIMISERS: dict[str, OptimiserEntry] = {
    "rmsprop": OptimiserEntry("RMSprop", "RMSprop", EPSILON, fused=False),
    "adam": OptimiserEntry("Adam", "Adam", EPSILON, values_per_parameter=2, state="adam"),
    "adamw": OptimiserEntry("AdamW", "AdamW", EPSILON, values_per_parameter=2, state="adam"),
    # fused_on_cpu is False, because on a CPU the fused kernel of SGD takes 27 ms instead of 15 ms
    "sgd": OptimiserEntry("SGD", "SGD", MOMENTUM, scale_free=False, fused_on_cpu=False),
}


def settings() -> dict[str, OptimiserSetting]:
    """Return the settings of all optimisers by key."""
    return {key: setting for entry in OPTIMISERS.values() for key, setting in entry.settings.items()}


def fields() -> dict[str, Any]:
    """Return the settings of all optimisers as arguments of `pydantic.create_model`."""
    takers = {key: ", ".join(name for name, entry in OPTIMISERS.items() if key in entry.settings) for key in settings()}
    return {
        key: (float, Field(setting.default, description=f"{setting.description} of {takers[key]}", **setting.limits))
        for key, setting in settings().items()
    }
