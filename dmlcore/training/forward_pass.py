"""Forward pass of the network in training: kernel by kernel, as CUDA graphs, or compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore import processes
from dmlcore.models.networks import ImageNetwork, Network
from dmlcore.spec import RunSpec

# poolings whose forward pass keeps no values that a loss reads and decides nothing on the host
STATIC_POOLINGS = ("gap", "gmp", "gap_gmp", "gem")


WARM_UPS = 3  # forward and backward passes before a capture

log = logging.getLogger(__name__)


def choose(spec: RunSpec, model: Network, device: torch.device) -> str:
    """Return how the network is launched: "eager" (kernel by kernel), "graphs" or "compiled"."""
    if spec.compute.compile:
        return "compiled"
    return "graphs" if spec.compute.graphs and _can_be_captured(spec, model, device) else "eager"


def create(spec: RunSpec, model: Network, mode: str) -> Callable[[Tensor], Tensor]:
    """Return the forward pass of `model` in the mode that `choose` returned."""
    if mode == "compiled":
        return torch.compile(model, dynamic=False)
    return Graphs(model) if mode == "graphs" else model


def _can_be_captured(spec: RunSpec, model: Network, device: torch.device) -> bool:
    """Return True if the kernels of a forward and backward pass are the same in each step and need no host.

    Captures in float32 failed on an H100 with PyTorch 2.11 and left the random generator of the device unusable.
    """
    if device.type != "cuda" or torch.version.cuda is None or processes.shares_work():
        return False
    if spec.compute.precision != "bfloat16":
        return False
    plain = isinstance(model, ImageNetwork) and ":" not in spec.model.name and spec.model.gather == "none"
    return plain and spec.pooling.name in STATIC_POOLINGS and not getattr(model.embedding_layer, "keeps_input", False)


class Graphs:
    """Forward pass that launches the network as one CUDA graph, and its backward pass as another.

    The host then launches two graphs instead of a thousand kernels, and has time for everything else. The graphs are
    captured at the first call, and again if the inputs have another shape or other parameters are trained, as after a
    warm-up; the kernels are those of an ordinary forward pass. If CUDA refuses the capture, kernels are launched one
    by one from then on.

    Args:
        model: Network on a GPU, captured under autocast to bfloat16. Its parameters and buffers may change in place
            only.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._key: object = None
        self._call: Callable[[Tensor], Tensor] = model

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the embeddings of a batch; they stay valid when the next batch is embedded."""
        if not self._model.training or not torch.is_grad_enabled():
            return self._model(inputs)  # type: ignore[no-any-return]
        key = inputs.shape, inputs.stride(), inputs.dtype, *(p.requires_grad for p in self._model.parameters())
        if key != self._key:
            self._call, self._key = self._model, key  # frees the memory of the previous graphs
            self._call = self._capture(inputs)
        return self._call(inputs)

    def _capture(self, inputs: Tensor) -> Callable[[Tensor], Tensor]:
        buffers = {name: buffer.clone() for name, buffer in self._model.named_buffers()}
        random = torch.cuda.get_rng_state(inputs.device)
        call: Callable[[Tensor], Tensor] = self._model
        try:
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
                call = _Captured(self._model, inputs.clone())
        except Exception as error:  # of any kind: the run can go on without graphs
            log.warning("kernels are launched one by one, because CUDA graphs failed: %s", error)
        torch.cuda.set_rng_state(random, inputs.device)
        with torch.no_grad():  # the capture has updated batch norm with this batch
            for name, buffer in self._model.named_buffers():
                buffer.copy_(buffers[name])
        return call


class _Captured:
    """Graphs of the forward and backward pass of a network, and the memory that they read and write.

    `torch.cuda.make_graphed_callables` does the same, but keeps the autograd graph of the capture alive. Its nodes then
    accumulate gradients in the stream of the capture, and each parameter costs a synchronisation of streams per step.
    """

    def __init__(self, model: nn.Module, inputs: Tensor) -> None:
        self.inputs = inputs
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        stream = torch.cuda.Stream(inputs.device)
        stream.wait_stream(torch.cuda.current_stream(inputs.device))
        with torch.cuda.stream(stream):  # libraries choose kernels and allocate workspaces at the first calls
            for _ in range(WARM_UPS):
                embeddings = model(inputs)
                self._gradients(embeddings, torch.zeros_like(embeddings))
            del embeddings
        torch.cuda.current_stream(inputs.device).wait_stream(stream)
        self.forward, self.backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        pool = torch.cuda.graph_pool_handle()
        # other threads, such as the writer of checkpoints, may use the GPU during the capture
        with torch.cuda.graph(self.forward, pool=pool, capture_error_mode="thread_local"):
            embeddings = model(inputs)
        self.slope = torch.zeros_like(embeddings)  # gradient of the loss with respect to the embeddings
        with torch.cuda.graph(self.backward, pool=pool, capture_error_mode="thread_local"):
            self.gradients = self._gradients(embeddings, self.slope)
        self.embeddings = embeddings.detach()

    def __call__(self, inputs: Tensor) -> Tensor:
        embeddings: Tensor = _Replay.apply(self, inputs, *self.parameters)
        return embeddings

    def _gradients(self, embeddings: Tensor, slope: Tensor) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(embeddings, self.parameters, slope, allow_unused=True)


class _Replay(torch.autograd.Function):
    """Replay of the graphs of a `_Captured` as one operation, whose inputs are the parameters of the network."""

    @staticmethod
    def forward(ctx: Any, captured: _Captured, inputs: Tensor, *_: Tensor) -> Tensor:
        ctx.captured = captured
        captured.inputs.copy_(inputs)
        captured.forward.replay()
        embeddings: Tensor = captured.embeddings.clone()  # still valid when the next batch is embedded
        return embeddings

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        captured: _Captured = ctx.captured
        captured.slope.copy_(slope)
        captured.backward.replay()
        # each a new tensor, which autograd then uses as `grad` without a copy
        return (None, None, *(None if each is None else each.detach() for each in captured.gradients))
