"""Classification losses, which learn one or more weight vectors per class together with the network."""

from __future__ import annotations

import math
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import ProxyLoss, batch_loss
from dmlcore.losses.engine.distances import unit
from dmlcore.losses.proxies import TEMPERATURE, smoothed_cross_entropy


@batch_loss(
    "cross_entropy",
    title="Cross-entropy",
    latex=r"-\log \frac{e^{w_y^\top x/\tau}}{\sum_c e^{w_c^\top x/\tau}}",
    source="Psomas 2020, Eq. 2.26; smoothed Szegedy et al. 2016",
    sentence="Classification with a linear layer, the loss with which backbones are pretrained.",
)
class CrossEntropy(ProxyLoss):
    """Cross-entropy over the inner products of embeddings and class weight vectors, divided by a temperature.

    Neither embeddings nor weight vectors are normalised; `proxy_nca` is the loss with normalised vectors. Temperature 1
    is softmax classification without a bias (Psomas 2020, Eq. 2.26). `smoothing` is the share of the target
    distribution that is spread over "all" classes or over the "others" (`smoothed_cross_entropy`).
    """

    unbounded = False
    reads_lengths = True  # ensembles pass unnormalised embeddings to member losses that set this flag

    def __init__(
        self,
        temperature: Annotated[float, Slider(0.02, 2, r"\tau", TEMPERATURE, above=0)] = 1.0,
        smoothing: Annotated[
            float, Slider(0, 0.5, r"\gamma", "Share of the targets spread over the classes", least=0)
        ] = 0.0,
        over: Annotated[
            str, Choice(("all", "others"), "c", "Classes that receive the share: all, or all but the own")
        ] = "all",
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature, self.smoothing, self.over = temperature, smoothing, over

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        return smoothed_cross_entropy(embeddings @ proxies.mT / self.temperature, labels, self.smoothing, self.over)


@batch_loss(
    "arcface",
    title="ArcFace",
    latex=r"-\log \frac{e^{s\cos(\theta_y + m)}}{e^{s\cos(\theta_y + m)} + \sum_{c \ne y} e^{s\cos\theta_c}}",
    source="Deng et al. 2019, Eq. 3; Psomas 2020, Eq. 2.29",
    sentence="Softmax on angles, with a margin added to the angle of the own class.",
)
class ArcFace(ProxyLoss):
    """Cross-entropy over the logits scale * cos(theta_c), with cos(theta_c + margin) for the class of the sample.

    theta_c is the angle between an embedding and the weight vector of class c. `margin` is in degrees. cos(theta +
    margin) would increase again for theta > pi - margin; there cos(theta) - margin sin(margin) is used instead.

    Reference:
        Deng et al. 2019, Eq. 3, and its implementation; Psomas 2020, Eq. 2.29.
    """

    def __init__(
        self,
        margin: Annotated[
            float, Slider(0, 90, "m", "Angle added to that of the own class, in degrees", step=0.1, least=0)
        ] = 28.6,
        scale: Annotated[float, Slider(1, 256, "s", "Scale of the cosines", step=1, above=0)] = 64.0,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim)
        self.margin, self.scale = math.radians(margin), scale

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        cosine = self.cosines(embeddings, proxies)
        own = cosine.gather(1, labels[:, None])
        # stay away from 0, where the square root has an infinite derivative
        sine = (1 - own.square()).clamp(min=torch.finfo(own.dtype).eps).sqrt()
        turned = own * math.cos(self.margin) - sine * math.sin(self.margin)
        beyond = own - self.margin * math.sin(self.margin)
        target = torch.where(own >= -math.cos(self.margin), turned, beyond)
        return F.cross_entropy(self.scale * torch.where(self.own(labels), target, cosine), labels)

    def cosines(self, embeddings: Tensor, proxies: Tensor) -> Tensor:
        """Compute the cosine similarities between embeddings and class weight vectors, shape (B, classes)."""
        return unit(embeddings) @ unit(proxies).mT


@batch_loss(
    "sub_centre_arcface",
    title="Sub-centre ArcFace",
    latex=r"-\log \frac{e^{s\cos(\theta_y + m)}}{e^{s\cos(\theta_y + m)} + \sum_{c \ne y} e^{s\cos\theta_c}},"
    r"\quad \theta_c = \min_k \theta_{ck}",
    source="Deng et al. 2020, Eq. 3 and 4",
    sentence="ArcFace with several centres per class. A sample is compared with the nearest centre, so that noisy or "
    "diverse classes can split.",
)
class SubCentreArcFace(ArcFace):
    """ArcFace with several weight vectors (`centres`) per class; only the nearest centre of a class counts.

    `margin` is in degrees. With one centre per class the loss equals ArcFace.

    Reference:
        Deng et al. 2020 (Sub-center ArcFace), Eq. 3 and 4.
    """

    def __init__(
        self,
        margin: Annotated[
            float, Slider(0, 90, "m", "Angle added to that of the own class, in degrees", step=0.1, least=0)
        ] = 28.6,
        scale: Annotated[float, Slider(1, 256, "s", "Scale of the cosines", step=1, above=0)] = 64.0,
        centres: Annotated[int, Slider(1, 16, "K", "Centres per class", step=1, above=0)] = 3,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        ProxyLoss.__init__(self, classes, embedding_dim, centres)
        self.margin, self.scale = math.radians(margin), scale

    def cosines(self, embeddings: Tensor, proxies: Tensor) -> Tensor:
        """Compute the cosine similarities of embeddings to the nearest centre of each class, shape (B, classes)."""
        every = super().cosines(embeddings, proxies)
        return every.view(-1, self.classes, self.per_class).amax(2)


@batch_loss(
    "cosface",
    title="CosFace",
    latex=r"-\log \frac{e^{s(\cos\theta_y - m)}}{e^{s(\cos\theta_y - m)} + \sum_{c \ne y} e^{s\cos\theta_c}}",
    source="Wang et al. 2018 (CosFace), Eq. 4",
    sentence="Softmax on cosines, with a margin subtracted from the cosine of the own class.",
)
class CosFace(ProxyLoss):
    """Cross-entropy over the logits scale * cos(theta_c), with cos(theta_c) - margin for the class of the sample.

    theta_c is the angle between an embedding and the weight vector of class c.

    Reference:
        H. Wang et al. 2018 (CosFace), Eq. 4; F. Wang et al. 2018 (additive margin softmax), Eq. 6.
    """

    def __init__(
        self,
        margin: Annotated[
            float, Slider(0, 1, "m", "Margin subtracted from the cosine of the own class", least=0)
        ] = 0.35,
        scale: Annotated[float, Slider(1, 256, "s", "Scale of the cosines", step=1, above=0)] = 64.0,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim)
        self.margin, self.scale = margin, scale

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        cosine = unit(embeddings) @ unit(proxies).mT
        return F.cross_entropy(self.scale * (cosine - self.margin * self.own(labels).to(cosine.dtype)), labels)
