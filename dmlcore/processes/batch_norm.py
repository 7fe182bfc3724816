"""Batch norm over the whole batch of which each process has a share: torch's own on a GPU, the one below elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dmlcore.processes import group


class SharedBatchNorm(_BatchNorm):
    """Batch norm in training over the rows of all processes, in evaluation as any other.

    `torch.nn.SyncBatchNorm` refuses tensors on the CPU ("expected input tensor to be on GPU"). Mean and variance of
    each share go to all processes, and their gradients come back; they are put together as by Chan, Golub & LeVeque
    1979, so that no digits are lost where a mean is large.

    Shapes: (B, C, ...) -> the same.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"batch norm takes at least two dimensions, got {input.ndim}")

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, in its own precision."""
        if not self.training or not group.shares_work():
            alone: Tensor = super().forward(input)
            return alone
        wide = input if input.dtype == torch.float64 else input.float()
        dimensions = [0, *range(2, wide.ndim)]
        own_variance, own_mean = torch.var_mean(wide, dimensions, correction=0)
        own_count = torch.full_like(own_mean[:1], wide.numel() / wide.shape[1])
        table = group.stacked(torch.cat([own_mean, own_variance, own_count]))
        means, variances, counts = table.split([len(own_mean), len(own_mean), 1], 1)
        parts = counts / counts.sum()
        mean = (parts * means).sum(0)
        variance = (parts * (variances + (means - mean).square())).sum(0)
        self._follow(mean.detach(), variance.detach(), counts.sum())

        shape = (1, -1, *[1] * (wide.ndim - 2))
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        result: Tensor = (wide - mean.view(shape)) * scale.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        return result.to(input.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running statistics, as every batch norm does: the variance there is that of a sample."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / (count - 1)).to(self.running_var.dtype), share)


def synchronise(network: nn.Module) -> None:
    """Let every batch norm of a network normalise over the shares of all processes; its tensors stay the same ones."""
    for module in list(network.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, _BatchNorm) and not isinstance(layer, (SharedBatchNorm, nn.SyncBatchNorm)):
                setattr(module, name, _synchronised(layer))


def _synchronised(layer: _BatchNorm) -> _BatchNorm:
    on_gpu = any(tensor.is_cuda for tensor in layer.buffers())
    kind = nn.SyncBatchNorm if on_gpu else SharedBatchNorm
    # On the meta device, as its tensors are those of the layer.
    made = kind(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats, device="meta")
    made._parameters, made._buffers = layer._parameters, layer._buffers
    made.training = layer.training
    return made
