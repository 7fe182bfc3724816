"""Optimisers without the hooks of torch.compile, whose imports would take one second in every process."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

import torch

Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


def uncompiled(kind: type[Kind]) -> type[Kind]:
    """Return a subclass of a PyTorch optimiser whose methods are not wrapped for the compiler; results are
    bit-identical.
    """
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return cast(type[Kind], type(kind.__name__, (kind,), methods))
