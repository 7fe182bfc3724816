"""What torch does without torch.compile, less the imports that only its compiler needs: a second of every process."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

import torch

Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


def plain(kind: type[Kind]) -> type[Kind]:
    """An optimiser of torch whose methods are not wrapped for its compiler; to the bit the same, never compiled."""
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return cast(type[Kind], type(kind.__name__, (kind,), methods))
