"""Operations of poolings without a counterpart in ONNX, written as operations that have one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dmlcore.pooling.layers.gemax import GeneralizedMaxPooling
from dmlcore.pooling.layers.solar import SelfAttentionPooling


def replace(network: nn.Module) -> None:
    """Replace the operations of the poolings in `network`, in place, by those of this module."""
    for module in network.modules():
        if isinstance(module, GeneralizedMaxPooling):
            module.solve = solve
        elif isinstance(module, SelfAttentionPooling):
            module.attend = attend


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve positive definite systems by Gauss-Jordan elimination, which needs no pivoting for them.

    The elimination is unrolled into about 10 n nodes of the graph.

    Args:
        matrix: Symmetric positive definite matrices (B, n, n).
        right: Right-hand sides (B, n, k).

    Returns:
        Solutions (B, n, k).
    """
    size = matrix.shape[-1]
    unit = torch.eye(size, dtype=matrix.dtype)
    system = torch.cat([matrix, right], -1)
    for index in range(size):
        row = system[:, index : index + 1] / system[:, index : index + 1, index : index + 1]
        system = system - (system[:, :, index : index + 1] - unit[:, index : index + 1]) * row
    return system[:, :, size:]


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(q k' / sqrt(d)) v (B, n, d) for queries, keys and values (B, n, d)."""
    scores: Tensor = query @ key.mT / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value
