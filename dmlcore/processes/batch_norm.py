"""Batch norm over a batch shared by several processes: SyncBatchNorm of PyTorch on GPUs, SharedBatchNorm on CPUs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dmlcore.processes import group


class SharedBatchNorm(_BatchNorm):
    """Batch norm on the CPU whose training statistics cover the samples of all processes.

    `torch.nn.SyncBatchNorm` refuses tensors on the CPU ("expected input tensor to be on GPU"). Here, the processes
    exchange the mean and variance of their samples with gradients. The statistics are merged as in Chan, Golub &
    LeVeque (1979), without loss of precision if the mean is large compared with the deviation. Input and output have
    shape (B, C, ...).
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"batch norm needs an input of at least two dimensions, got {input.ndim}")

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input in the dtype of the input."""
        if not self.training or not group.shares_work():
            alone: Tensor = super().forward(input)
            return alone
        wide = input if input.dtype == torch.float64 else input.float()
        dimensions = [0, *range(2, wide.ndim)]
        own_variance, own_mean = torch.var_mean(wide, dimensions, correction=0)
        own_count = torch.full_like(own_mean[:1], wide.numel() / wide.shape[1])
        table = group.stack_over_processes(torch.cat([own_mean, own_variance, own_count]))
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
        """Update the running mean and variance as PyTorch does: `variance` is biased, the running one unbiased."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / (count - 1)).to(self.running_var.dtype), share)


def synchronise(network: nn.Module) -> None:
    """Replace every batch norm layer of a network with one whose statistics cover the samples of all processes.

    The new layers share the parameters and buffers of the original ones.
    """
    for module in list(network.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, _BatchNorm) and not isinstance(layer, (SharedBatchNorm, nn.SyncBatchNorm)):
                setattr(module, name, _synchronise_layer(layer))


def _synchronise_layer(layer: _BatchNorm) -> _BatchNorm:
    on_gpu = any(tensor.is_cuda for tensor in layer.buffers())
    kind = nn.SyncBatchNorm if on_gpu else SharedBatchNorm
    # Allocate nothing (meta device), since the new layer takes over the parameters and buffers of the original one.
    made = kind(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats, device="meta")
    made._parameters, made._buffers = layer._parameters, layer._buffers
    made.training = layer.training
    return made
