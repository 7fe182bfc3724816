"""Networks: an MLP for vectors, a backbone with pooling and embedding head for pictures, token vectors for bags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import backbones, pooling
from dmlcore.spec import ModelSpec, PoolingSpec

LEAKY_SLOPE = 0.01
# Channel means and deviations of natural pictures in 0..1 (ImageNet), as the ResNet20 weights of the data pack expect.
PICTURE_MEAN = (0.485, 0.456, 0.406)
PICTURE_STD = (0.229, 0.224, 0.225)
TOKEN_BOUND = 0.3  # entries of tokens and prototypes are clipped to +-0.3 after each step (Gurbuz 2022, code)


class ModelError(ValueError):
    """A network that does not fit the data; the message says which inputs it takes."""


def build(
    spec: ModelSpec,
    input_shape: Sequence[int],
    *,
    seed: int,
    pool: PoolingSpec | None = None,
    mean: float = 0.0,
    std: float = 1.0,
    vocabulary: int = 0,
) -> MLP | PictureNetwork | TokenNetwork:
    """Build and initialise a network, a function of `seed` alone.

    input_shape: (F,) for vectors, (3, H, W) for pictures, (L,) for bags of tokens. mean, std: of the training vectors;
    pictures have fixed ones. vocabulary: number of tokens, 0 for what is no bag. Raises ModelError if the network
    cannot take such inputs.
    """
    shape, pool = tuple(input_shape), pool or PoolingSpec()
    kind = "bags of tokens" if vocabulary else "vectors" if len(shape) == 1 else "pictures"
    needed = {"mlp": "vectors", "tokens": "bags of tokens"}.get(spec.name, "pictures")
    if kind != needed:
        fitting = {"vectors": "mlp", "bags of tokens": "tokens", "pictures": "resnet20"}[kind]
        raise ModelError(
            f"{spec.name} takes {needed}, these inputs are {kind} of shape {shape}; choose model.name={fitting}"
        )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        try:
            if kind == "vectors":
                return MLP(shape[0], spec, mean, std)
            if kind == "bags of tokens":
                return TokenNetwork(vocabulary, spec, pool)
            if shape[0] != 3 or min(shape[1:]) < 32:
                raise ModelError(f"{spec.name} takes pictures (3, H, W) of at least 32 x 32, got {shape}")
            return PictureNetwork(spec, pool)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"pooling: {error.args[0]}") from None


class Normalise(nn.Module):
    """(x - mean) / std over the channels or features, after bringing uint8 to 0..1: raw inputs go in."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, inputs: Tensor) -> Tensor:
        """The normalised inputs, floating."""
        values = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs
        return (values - self.mean) / self.std


class MLP(nn.Module):
    """(B, F) vectors -> (B, D) embeddings: linear layers with leaky ReLUs between them."""

    def __init__(self, features: int, spec: ModelSpec, mean: float, std: float) -> None:
        super().__init__()
        self.normalise = Normalise(torch.tensor(mean), torch.tensor(std))
        widths = (features, *spec.hidden)
        self.hidden = nn.ModuleList(_he(nn.Linear(a, b)) for a, b in pairwise(widths))
        self.linear = _he(nn.Linear(widths[-1], spec.embedding_dim))
        self.on_sphere = spec.normalize

    def forward(self, inputs: Tensor) -> Tensor:
        """The embeddings."""
        features = self.normalise(inputs)
        for layer in self.hidden:
            features = F.leaky_relu(layer(features), LEAKY_SLOPE)
        return _embed(self.linear(features), self.on_sphere)


class PictureNetwork(nn.Module):
    """(B, 3, H, W) uint8 pictures -> (B, D) embeddings: backbone, then pooling and projection to D in one head."""

    def __init__(self, spec: ModelSpec, pool: PoolingSpec) -> None:
        super().__init__()
        self.normalise = Normalise(_channels(PICTURE_MEAN), _channels(PICTURE_STD))
        self.backbone = backbones.create(spec.name)
        self.head = pooling.Head(pool.name, self.backbone.out_channels, spec.embedding_dim, **pool.parameters)
        self.on_sphere = spec.normalize

    def forward(self, inputs: Tensor) -> Tensor:
        """The embeddings; `head.pooling` then holds weights and shares of this batch, where it has any."""
        return _embed(self.head(self.features(inputs)), self.on_sphere)

    def features(self, inputs: Tensor) -> Tensor:
        """Feature maps (B, C, h, w) of the backbone."""
        found: Tensor = self.backbone(self.normalise(inputs))
        return found

    @property
    def pool(self) -> nn.Module:
        """The pooling module."""
        return self.head.pooling


class TokenNetwork(nn.Module):
    """(B, L) token ids -> (B, D): trainable token vectors, pooled; nothing else. Source: Gurbuz 2022, Sec. 5.3.1.

    `after_step` clips tokens and prototypes to [-0.3, 0.3], as the optimiser may push them out.
    """

    def __init__(self, vocabulary: int, spec: ModelSpec, pool: PoolingSpec) -> None:
        super().__init__()
        self.tokens = nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary, spec.embedding_dim)))
        self.pool = pooling.create(pool.name, spec.embedding_dim, **pool.parameters)
        if getattr(self.pool, "out_features", spec.embedding_dim) != spec.embedding_dim:
            raise ValueError(f"{pool.name} changes the dimension, and bags of tokens have no layer behind the pooling")
        self.on_sphere = spec.normalize
        self.after_step()

    def forward(self, inputs: Tensor) -> Tensor:
        """The pooled token vectors."""
        return _embed(self.pool(self.features(inputs)), self.on_sphere)

    def features(self, inputs: Tensor) -> Tensor:
        """The token vectors of each bag as a feature map (B, D, L, 1)."""
        return F.embedding(inputs, self.tokens).mT[..., None]

    @torch.no_grad()
    def after_step(self) -> None:
        """Clip tokens and prototypes."""
        for parameter in (self.tokens, getattr(self.pool, "prototypes", None)):
            if parameter is not None:
                parameter.clamp_(-TOKEN_BOUND, TOKEN_BOUND)


def _embed(features: Tensor, on_sphere: bool) -> Tensor:
    return F.normalize(features, dim=1) if on_sphere else features


def _he(layer: nn.Linear) -> nn.Linear:
    """He initialisation (fan in), zero bias."""
    nn.init.kaiming_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1)
