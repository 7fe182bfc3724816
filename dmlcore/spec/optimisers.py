"""Table of the optimisers of training runs. A new optimiser is one entry; form, checks and estimates follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OptimiserEntry:
    """Description of an optimiser of `torch.optim`.

    Attributes:
        title: Name shown to users.
        torch_class: Name of the class in `torch.optim`.
        arguments: Keyword arguments of the class, each with the setting of `OptimiserSpec` that it takes.
        values_per_parameter: Numbers kept for each parameter, such as its moments.
        scale_free: True if the first step has about the same length whatever the size of the gradient.
        fused: True if the class has fused kernels.
        fused_on_cpu: True if the fused kernel is the faster one for large networks on a CPU.
        state: Optimisers of the same `state` keep the same moments, so that a fork may change between them.
    """

    title: str
    torch_class: str
    arguments: Mapping[str, str]
    values_per_parameter: int
    scale_free: bool = True
    fused: bool = True
    fused_on_cpu: bool = True
    state: str = ""


OPTIMISERS: Mapping[str, OptimiserEntry] = {
    "rmsprop": OptimiserEntry("RMSprop", "RMSprop", {"eps": "epsilon"}, values_per_parameter=1, fused=False),
    "adam": OptimiserEntry("Adam", "Adam", {"eps": "epsilon"}, values_per_parameter=2, state="adam"),
    "adamw": OptimiserEntry("AdamW", "AdamW", {"eps": "epsilon"}, values_per_parameter=2, state="adam"),
    # the fused CPU kernel of SGD is slower: 27 instead of 15 ms
    "sgd": OptimiserEntry(
        "SGD", "SGD", {"momentum": "momentum"}, values_per_parameter=1, scale_free=False, fused_on_cpu=False
    ),
}
