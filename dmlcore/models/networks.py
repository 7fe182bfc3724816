"""Networks: an MLP for vectors, a backbone with pooling and embedding head for images, and token vectors for bags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import pooling
from dmlcore.models import backbones
from dmlcore.models.backbones import IMAGENET, Normalisation
from dmlcore.models.conditioned import ConditionedEmbedding
from dmlcore.models.depths import GatheringHead
from dmlcore.models.seeded import seeded
from dmlcore.pooling.base import init_he_
from dmlcore.spec import ModelSpec, PoolingSpec

LEAKY_SLOPE = 0.01
IMAGE_MEAN, IMAGE_STD = IMAGENET.mean, IMAGENET.std
# inputs of the networks that take no images, by name of the network
TAKES = {"mlp": "vectors", "tokens": "bags of tokens"}
TOKEN_BOUND = 0.3  # tokens and prototypes are clipped to +-0.3 after each step (Gurbuz 2022, code)


class ModelError(ValueError):
    """Error for a network that cannot take the data; the message says which inputs the network takes."""


def build(
    spec: ModelSpec,
    input_shape: Sequence[int],
    *,
    seed: int,
    pool: PoolingSpec | None = None,
    mean: float = 0.0,
    std: float = 1.0,
    vocabulary: int = 0,
) -> MLP | ImageNetwork | TokenNetwork:
    """Build a network and initialise it from `seed`.

    Args:
        spec: Settings of the network.
        input_shape: (F,) for vectors, (3, H, W) or (1, H, W) for images, (L,) for bags of tokens.
        seed: Seed for the initialisation.
        pool: Settings of the pooling.
        mean: Mean of the training vectors; ignored for images, which are normalised as their backbone requires.
        std: Standard deviation of the training vectors; ignored for images.
        vocabulary: Number of tokens; 0 for data that are not bags.

    Raises:
        ModelError: If the network cannot be built, or cannot take such inputs.
    """
    shape, pool = tuple(input_shape), pool or PoolingSpec()
    kind = "bags of tokens" if vocabulary else "vectors" if len(shape) == 1 else "images"
    needed = TAKES.get(spec.name, "images")
    if kind != needed:
        fitting = {"vectors": "mlp", "bags of tokens": "tokens", "images": "resnet20"}[kind]
        raise ModelError(
            f"{spec.name} needs {needed} as inputs, got {kind} of shape {shape}; choose model.name={fitting}"
        )
    with seeded(seed):
        try:
            if kind == "vectors":
                return MLP(shape[0], spec, mean, std)
            if kind == "bags of tokens":
                return TokenNetwork(vocabulary, spec, pool)
            least = backbones.smallest(spec.name)
            if shape[0] not in (1, 3) or min(shape[1:]) < least:
                raise ModelError(
                    f"{spec.name} takes images (3, H, W) or (1, H, W) of at least {least} x {least}, got {shape}"
                )
            return ImageNetwork(spec, pool, _backbone(spec, (shape[1], shape[2])))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"pooling: {error.args[0]}") from None


def _backbone(spec: ModelSpec, image: tuple[int, int]) -> backbones.Backbone:
    try:
        backbone = backbones.create(spec.name, image, spec.options)
    except (KeyError, ImportError, ValueError) as error:
        raise ModelError(f"model.name: {error.args[0]}") from None
    if spec.freeze == "backbone" and backbone.out_channels in (1, 3):
        raise ModelError(
            f"model.freeze: {spec.name} gives {backbone.out_channels} channels, as images do, so its cached features "
            "would look like images; choose none"
        )
    if spec.gather != "none" and not backbones.gives_depths(spec.name):
        raise ModelError(
            f"model.gather: {spec.name} does not provide features of earlier depths; choose bn_inception, "
            "conv4, squeezenet1_0 or none"
        )
    if spec.freeze == "early" and not backbone.early_channels:
        raise ModelError(
            f"model.freeze: the last stage of {spec.name} cannot be trained alone; choose efficientnet_lite0, a ResNet "
            "of torchvision, or model.freeze=none"
        )
    if spec.keep_classifier:
        try:
            backbone.keep_classifier()
        except ValueError as error:
            raise ModelError(f"model.keep_classifier: {error}") from None
    return backbone


class Network(nn.Module):
    """Base class of networks that map inputs (B, ...) to embeddings (B, D), with the methods that training calls."""

    # True if the backbone is not trained; the network then also accepts stored feature maps of the backbone
    frozen = False
    on_sphere: bool
    in_ball: bool

    def __init__(self) -> None:
        super().__init__()
        # module that combines the embeddings of a sample and its neighbours
        self.conditioning: ConditionedEmbedding | None = None

    def condition(self, sequences: Tensor) -> Tensor:
        """Return the conditioned embeddings (B, D) of sequences (B, 1 + K, D) of a sample and its neighbours.

        They are normalised like the embeddings of the network alone.
        """
        assert self.conditioning is not None
        return _embed(self.conditioning(sequences), self.on_sphere, self.in_ball)

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that are not pretrained: those of pooling, projection and embedding layer."""
        return []

    def after_step(self) -> None:
        """Clip parameters that an optimiser step may have moved out of their valid range."""

    @property
    def shares(self) -> Tensor | None:
        """Share of each pooling prototype in each sample of the last batch, (B, m), at least float32, or None."""
        pooled: Tensor | None = getattr(getattr(self, "pool", None), "shares", None)
        return None if pooled is None else pooling.at_least_float32(pooled)

    @property
    def embedding_layer(self) -> pooling.EmbeddingLayer | None:
        """The final linear layer; None if the embedding is the result of the pooling."""
        layer: pooling.EmbeddingLayer | None = getattr(getattr(self, "head", self), "linear", None)
        return layer

    @property
    def pooled(self) -> Tensor | None:
        """Inputs (B, P) of the embedding layer for the last batch, at least float32; None if they were not recorded."""
        taken = getattr(self.embedding_layer, "last_input", None)
        return None if taken is None else pooling.at_least_float32(taken)

    @property
    def pooling_ready(self) -> bool:
        """False while a pooling with prototypes still averages, because its prototypes are not initialised yet."""
        return bool(getattr(getattr(self, "pool", None), "ready", True))


class Normalise(nn.Module):
    """Normalisation of raw vectors: (x - mean) / std with one mean and std for all features."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised inputs."""
        return (inputs - self.mean) / self.std


class MLP(Network):
    """MLP that maps vectors (B, F) to embeddings (B, D): linear layers with leaky ReLUs between them."""

    def __init__(self, features: int, spec: ModelSpec, mean: float, std: float) -> None:
        super().__init__()
        self.normalise = Normalise(torch.tensor(mean), torch.tensor(std))
        widths = (features, *spec.hidden)
        self.hidden = nn.ModuleList(init_he_(nn.Linear(a, b)) for a, b in pairwise(widths))
        self.dropout = nn.Dropout(spec.dropout)
        self.linear = pooling.EmbeddingLayer(widths[-1], spec.embedding_dim)
        self.on_sphere, self.in_ball = spec.normalize, spec.lipschitz

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the embeddings."""
        features = self.normalise(inputs)
        for layer in self.hidden:
            features = F.leaky_relu(layer(features), LEAKY_SLOPE)
        return _embed(self.linear(self.dropout(features)), self.on_sphere, self.in_ball)

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the last linear layer."""
        return list(self.linear.parameters())


class NormaliseImages(Normalise):
    """Normalisation of raw images as the checkpoint of a backbone expects it.

    Images are RGB (B, 3, H, W) or grey (B, 1, H, W), 0..255, uint8 or floating point; the result is (B, 3, H, W).
    """

    def __init__(self, target: Normalisation) -> None:
        super().__init__(_channels(target.mean), _channels(target.std))
        self.target = target

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised images, with channels in the backbone's order."""
        values = inputs if inputs.is_floating_point() else inputs.float()
        values = values.expand(-1, 3, -1, -1)  # a grey image has three equal channels
        if self.target.scale == 1:
            values = values / 255
        if self.target.order == "BGR":
            values = values.flip(1)
        return (values - self.mean) / self.std


class ImageNetwork(Network):
    """Network that maps images (B, 3 or 1, H, W) to embeddings (B, D): a backbone, then a head that pools and projects.

    Images are RGB or grey in 0..255, uint8 or floating point. With `model.keep_classifier` the pooled features pass
    through the classifier of the backbone's checkpoint (C -> 1000) before the linear layer (1000 -> D). With
    `model.freeze` the backbone, or all but its last stage, stays in evaluation mode without gradients, and inputs may
    also be the feature maps that this frozen part computes.
    """

    def __init__(self, spec: ModelSpec, pool: PoolingSpec, backbone: backbones.Backbone) -> None:
        super().__init__()
        self.normalise = NormaliseImages(backbone.normalisation)
        self.backbone = backbone
        channels, classifier = backbone.out_channels, getattr(backbone, backbone.classifier, None)
        self.head: pooling.EmbeddingHead | ClassifierHead | GatheringHead
        if spec.gather != "none":
            depths = [*backbone.depths.values()]
            self.head = GatheringHead(pool, channels, depths, spec.embedding_dim, spec.gather, spec.dropout)
        elif spec.keep_classifier and isinstance(classifier, nn.Linear):
            self.head = ClassifierHead(pool, channels, classifier, spec.embedding_dim, spec.dropout)
        else:
            self.head = pooling.EmbeddingHead(
                pool.name, channels, spec.embedding_dim, dropout=spec.dropout, **pool.parameters
            )
        self.on_sphere, self.in_ball = spec.normalize, spec.lipschitz
        self.frozen = spec.freeze == "backbone"
        self.frozen_channels = channels + (sum(backbone.depths.values()) if spec.gather != "none" else 0)
        self.early_frozen = spec.freeze == "early"
        self.batch_norm_frozen = False
        if spec.freeze_batch_norm:
            self.freeze_batch_norm()
        if self.frozen:
            self.backbone.eval().requires_grad_(False)
        if self.early_frozen:
            for module in self.early_modules():
                module.eval().requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the embeddings (B, D).

        If the pooling module computes pooling weights or prototype shares, it stores those of this batch in its
        attributes.
        """
        return _embed(self.head(self.features(inputs)), self.on_sphere, self.in_ball)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the feature maps (B, C, h, w) of the backbone as float.

        If the backbone is frozen, inputs that are its stored feature maps are returned unchanged; if all but its last
        stage are frozen, that stage is applied to stored maps. Earlier feature maps are stored in the head if the head
        uses them; those of a frozen backbone are first averaged to the size of the last maps.
        """
        if self.frozen and isinstance(self.head, GatheringHead):
            stored = inputs.shape[1] == self.frozen_channels
            joined = inputs.float() if stored else self.frozen_maps(inputs)
            last: Tensor
            last, *earlier = joined.split([self.backbone.out_channels, *self.backbone.depths.values()], dim=1)
            self.head.earlier = tuple(earlier)
            return last
        if self.frozen and inputs.shape[1] == self.frozen_channels:
            return inputs.float()
        if self.early_frozen and inputs.shape[1] == self.backbone.early_channels:
            return self.backbone.forward_late(inputs.float())
        maps: Tensor
        if isinstance(self.head, GatheringHead):
            maps, self.head.earlier = self.backbone.with_depths(self.normalise(inputs))
        else:
            maps = self.backbone(self.normalise(inputs))
        return maps

    def frozen_maps(self, inputs: Tensor) -> Tensor:
        """Return the feature maps (B, C, h, w) of the frozen part of the backbone, which `features` accepts.

        If the head uses earlier maps, these follow the last maps along C, averaged to their size (h, w).
        """
        if self.frozen and isinstance(self.head, GatheringHead):
            last, earlier = self.backbone.with_depths(self.normalise(inputs))
            return torch.cat(
                [last, *(F.adaptive_avg_pool2d(maps, (last.shape[2], last.shape[3])) for maps in earlier)], dim=1
            )
        return self.backbone.forward_early(self.normalise(inputs)) if self.early_frozen else self.features(inputs)

    def frozen_tensors(self) -> list[Tensor]:
        """Return the parameters and buffers of the frozen part of the backbone."""
        if not self.early_frozen:
            return [*self.backbone.parameters(), *self.backbone.buffers()]
        return [t for m in self.early_modules() for t in (*m.parameters(recurse=False), *m.buffers(recurse=False))]

    def early_modules(self) -> list[nn.Module]:
        """Return the leaf modules of the backbone that do not belong to its last stage."""
        late = {id(module) for part in self.backbone.last_stage() for module in part.modules()}
        return [m for m in self.backbone.modules() if not [*m.children()] and id(m) not in late]

    @property
    def pool(self) -> nn.Module:
        """The pooling module."""
        return self.head.pooling

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of pooling, projection and embedding layer."""
        return list(self.head.parameters())

    def freeze_batch_norm(self) -> None:
        """Freeze the statistics, scales and shifts of the backbone's batch norm layers, even in training mode.

        These layers stay in evaluation mode when `train()` is called. Batch norm layers in the head are not pretrained
        and are not frozen.

        Reference:
            The code of Proxy-Anchor (Kim et al. 2020).
        """
        self.batch_norm_frozen = True
        for layer in self.batch_norms():
            layer.requires_grad_(False)
        self.train(self.training)

    def batch_norms(self) -> list[nn.Module]:
        """Return the batch norm layers of the backbone."""
        return [m for m in self.backbone.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode; a frozen backbone or batch norm stays in evaluation mode."""
        if self.frozen:  # skip the many layers of the backbone, because a live training run switches modes at each step
            self.training = mode
            self.head.train(mode)
            if self.conditioning is not None:
                self.conditioning.train(mode)
            return self
        super().train(mode)
        if self.batch_norm_frozen:
            for layer in self.batch_norms():
                layer.eval()
        if self.early_frozen:
            for module in self.early_modules():
                module.eval()
        return self


class ClassifierHead(nn.Module):
    """Head (B, C, H, W) -> (B, D): pooling, the backbone's classifier C -> 1000, then a new linear layer 1000 -> D.

    Karaman 2021 keeps the 1000-way ImageNet classifier and embeds its logits. Raises ValueError for a pooling whose
    result does not have the C channels that the classifier expects.
    """

    def __init__(
        self, pool: PoolingSpec, channels: int, classifier: nn.Linear, embedding_dim: int, dropout: float
    ) -> None:
        super().__init__()
        self.name = pool.name
        self.pooling = pooling.create(pool.name, channels, **pool.parameters)
        if self.pooling.projects_first or self.pooling.out_features != channels:
            raise ValueError(
                f"{pool.name} does not return the {channels} values that the kept classifier needs; choose "
                "pooling.name="
                "gap or model.keep_classifier=false"
            )
        self._classifier = (classifier,)  # in a tuple, so that it is not registered as a submodule of the head
        self.dropout = nn.Dropout(dropout)
        self.linear = pooling.EmbeddingLayer(classifier.out_features, embedding_dim)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (B, embedding_dim) of features (B, C, H, W)."""
        embedded: Tensor = self._embed(pooling.pool(self.pooling, features))
        return embedded

    def local(self, features: Tensor) -> Tensor | None:
        """Return local features (B, H*W, D) that average to the embedding, or None if the pooling is not an average."""
        return self._embed(features.flatten(2).mT) if self.pooling.averages else None

    def _embed(self, values: Tensor) -> Tensor:
        embeddings: Tensor = self.linear(self.dropout(self._classifier[0](values)))
        return embeddings


class TokenNetwork(Network):
    """Network that pools trainable token vectors: token ids (B, L) to embeddings (B, D).

    After each step, `after_step` clips token vectors and prototypes to [-0.3, 0.3].

    Reference:
        Gurbuz 2022, Sec. 5.3.1.
    """

    def __init__(self, vocabulary: int, spec: ModelSpec, pool: PoolingSpec) -> None:
        super().__init__()
        self.tokens = nn.Parameter(nn.init.xavier_uniform_(torch.empty(vocabulary, spec.embedding_dim)))
        self.pool = pooling.create(pool.name, spec.embedding_dim, **pool.parameters)
        if getattr(self.pool, "out_features", spec.embedding_dim) != spec.embedding_dim:
            raise ValueError(
                f"{pool.name} changes the dimension, but networks for bags of tokens have no layer after the pooling"
            )
        self.on_sphere, self.in_ball = spec.normalize, spec.lipschitz
        self.after_step()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the pooled token vectors."""
        return _embed(pooling.pool(self.pool, self.features(inputs)), self.on_sphere, self.in_ball)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the token vectors of each bag as a feature map (B, D, L, 1)."""
        return F.embedding(inputs, self.tokens).mT[..., None]

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the pooling."""
        return list(self.pool.parameters())

    @torch.no_grad()
    def after_step(self) -> None:
        """Clip tokens and prototypes to [-0.3, 0.3]."""
        for parameter in (self.tokens, getattr(self.pool, "prototypes", None)):
            if parameter is not None:
                parameter.clamp_(-TOKEN_BOUND, TOKEN_BOUND)


def _embed(features: Tensor, on_sphere: bool, in_ball: bool) -> Tensor:
    if in_ball:
        return pooling.clip_to_unit_ball(features)
    return F.normalize(features, dim=1) if on_sphere else features


def _channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1)
