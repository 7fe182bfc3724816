"""Catalogue of the optimisers for training runs; forms, validation and memory estimates are derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OptimiserEntry:
    """Description of an optimiser of `torch.optim`.

    Attributes:
        title: Name shown to users.
        torch_class: Name of the class in `torch.optim`.
        arguments: Map from keyword arguments of the class to the `OptimiserSpec` settings that provide their values.
        values_per_parameter: Number of values of optimiser state per network parameter, such as moments.
        scale_free: True if the length of the first step hardly depends on the scale of the gradient.
        fused: True if the class has fused kernels.
        fused_on_cpu: True if the fused kernel is faster than the default one for large networks on a CPU.
        state: Kind of optimiser state. A fork with another optimiser than its parent keeps the optimiser state only if
            both kinds are equal and not "".
    """

    title: str
    torch_class: str
    arguments: Mapping[str, str]
    values_per_parameter: int
    scale_free: bool = True
    fused: bool = True
    fused_on_cpu: bool = True
    state: str = ""


OPTIMISERS: dict[str, OptimiserEntry] = {
    "rmsprop": OptimiserEntry("RMSprop", "RMSprop", {"eps": "epsilon"}, values_per_parameter=1, fused=False),
    "adam": OptimiserEntry("Adam", "Adam", {"eps": "epsilon"}, values_per_parameter=2, state="adam"),
    "adamw": OptimiserEntry("AdamW", "AdamW", {"eps": "epsilon"}, values_per_parameter=2, state="adam"),
    # fused_on_cpu is False, because on a CPU the fused kernel of SGD takes 27 ms instead of 15 ms
    "sgd": OptimiserEntry(
        "SGD", "SGD", {"momentum": "momentum"}, values_per_parameter=1, scale_free=False, fused_on_cpu=False
    ),
}
