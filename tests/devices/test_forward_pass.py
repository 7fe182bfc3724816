"""CUDA graphs on a real GPU."""

from __future__ import annotations

import pytest
import torch

from dmlcore.models import networks
from dmlcore.spec import ModelSpec
from dmlcore.training.forward_pass import Graphs
from tests.devices.pretended import CUDA, REAL

pytestmark = pytest.mark.skipif(not REAL, reason="needs a GPU and DML_DEVICE_TESTS=real")


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_steps_by_graphs_equal_steps_by_single_kernels_bit_for_bit(dropout: float) -> None:
    weights = []
    for captured in (False, True):
        spec = ModelSpec(name="resnet18", embedding_dim=8, dropout=dropout)
        model = networks.build(spec, (3, 64, 64), seed=0).to(CUDA).train()
        torch.nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
        forward = Graphs(model) if captured else model
        optimiser = torch.optim.Adam(model.parameters(), fused=True)
        for step in range(6):
            torch.manual_seed(step)
            images = torch.randint(0, 256, (8, 3, 64, 64), dtype=torch.uint8).to(CUDA)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(step >= 3 or "backbone" not in name)
            with torch.autocast("cuda", torch.bfloat16):
                embeddings = forward(images.contiguous(memory_format=torch.channels_last))
            optimiser.zero_grad()
            embeddings.float().square().sum(1).log().sum().add(embeddings.float()[:, 0].sum()).backward()
            optimiser.step()
        if captured:
            assert forward._call is not model  # type: ignore[union-attr]
        weights.append({name: tensor.cpu() for name, tensor in model.state_dict().items()})
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
