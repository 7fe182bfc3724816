"""Operations that replace those without a counterpart in ONNX give the same results."""

from __future__ import annotations

import copy

import pytest
import torch

from dmlcore import pooling
from dmlcore.inspection import onnx_operations


@pytest.mark.parametrize(("name", "shape"), [("gemax", (3, 8, 2, 3)), ("gemax", (3, 4, 3, 3)), ("solar", (3, 4, 3, 2))])
def test_a_pooling_gives_the_same_result(name, shape):
    torch.manual_seed(0)
    features = torch.rand(shape)
    layer = pooling.create(name, shape[1]).eval()
    for parameter in layer.parameters():  # the untrained attention is ignored
        torch.nn.init.uniform_(parameter, 0.5, 1.0)
    replaced = copy.deepcopy(layer)
    onnx_operations.replace(replaced)
    torch.testing.assert_close(replaced(features), layer(features))


def test_systems_are_solved():
    torch.manual_seed(0)
    factor, right = torch.randn(2, 9, 9).double(), torch.randn(2, 9, 3).double()
    matrix = factor @ factor.mT + torch.eye(9)
    torch.testing.assert_close(onnx_operations.solve(matrix, right), torch.linalg.solve(matrix, right))
