"""Proxy losses, which compare samples with learned proxies of the classes."""

from __future__ import annotations

from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.losses.engine.batch_loss import ProxyLoss, batch_loss, log1p_exp, masked_lse, mean
from dmlcore.losses.engine.distances import unit

TEMPERATURE = "Temperature: a lower value makes the choice between classes harder"


Delta = Annotated[float, Slider(0, 1, r"\delta", "Margin on the cosine", least=0)]
Steepness = Annotated[float, Slider(1, 64, r"\alpha", "Steepness of pull and push", step=0.5, above=0)]


@batch_loss(
    "proxy_nca",
    title="ProxyNCA++",
    latex=r"-\log \frac{e^{\cos(x, w_y)/\tau}}{\sum_c e^{\cos(x, w_c)/\tau}}",
    source="Movshovitz-Attias et al. 2017; Teh, DeVries & Taylor 2020",
    sentence="Each class has a learned proxy. A sample is pulled to the proxy of its class and pushed from all others.",
)
class ProxyNCA(ProxyLoss):
    """Cross-entropy of cosine similarities between samples and proxies, divided by a temperature.

    `denominator` "all" sums over all proxies, which is ProxyNCA++ or normalised softmax (Teh, DeVries & Taylor 2020;
    Zhai & Wu 2019). "others" sums over the proxies of other classes, which is Proxy-NCA; its values can be negative
    (Movshovitz-Attias et al. 2017; Psomas 2020, Eq. 2.27, with s = 1 / temperature).
    """

    def __init__(
        self,
        temperature: Annotated[float, Slider(0.02, 1, r"\tau", TEMPERATURE, above=0)] = 0.11,
        denominator: Annotated[
            str,
            Choice(
                ("all", "others"), "c", "Proxies in the denominator: all (ProxyNCA++), or all but the own (Proxy-NCA)"
            ),
        ] = "all",
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim)
        self.temperature, self.denominator = temperature, denominator

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        logits = unit(embeddings) @ unit(proxies).mT / self.temperature
        if self.denominator == "all":
            return F.cross_entropy(logits, labels)
        others = masked_lse(logits, ~self.own(labels))
        return (others - logits.gather(1, labels[:, None])[:, 0]).mean()


@batch_loss(
    "proxy_nca_smoothed",
    title="Proxy-NCA, smoothed",
    latex=r"\operatorname{CE}_\gamma\bigl(-\lVert x - r\,w_c\rVert^2\bigr)",
    source="Zabihzadeh et al. 2021, Eq. 18",
    sentence="Classification by squared distances to proxies on a larger sphere, with smoothed targets.",
)
class SmoothedProxyNCA(ProxyLoss):
    """Cross-entropy with smoothed targets, whose logits are negated squared distances to proxies of norm `scale`.

    Samples have norm 1. The class of the sample has target 1 - smoothing; the other classes share the rest.

    Reference:
        Public implementation of Zabihzadeh et al. 2021, for its Eq. 18.
    """

    def __init__(
        self,
        scale: Annotated[
            float, Slider(0.5, 10, "r", "Norm of the proxies (samples have norm 1)", step=0.1, above=0)
        ] = 3.0,
        smoothing: Annotated[
            float, Slider(0, 0.5, r"\gamma", "Share of the target given to the other classes", least=0)
        ] = 0.1,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim)
        self.scale, self.smoothing = scale, smoothing

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        x, w = unit(embeddings), self.scale * unit(proxies)
        squared = x.square().sum(1, keepdim=True) + w.square().sum(1) - 2 * x @ w.mT
        return smoothed_cross_entropy(-squared, labels, self.smoothing, "others")


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float, over: str) -> Tensor:
    """Compute the cross-entropy against targets of which the share `smoothing` is spread evenly over several classes.

    Args:
        logits: Shape (B, C).
        labels: Shape (B,).
        smoothing: Share in 0..1.
        over: "all" to spread the share over all C classes, "others" for the C - 1 classes other than the label.

    Reference:
        Szegedy et al. 2016; Zabihzadeh et al. 2021, Eq. 19, 20 ("all") and its implementation ("others").
    """
    classes = logits.shape[1]
    share = smoothing * classes / (classes - 1) if over == "others" and classes > 1 else smoothing
    return F.cross_entropy(logits, labels, label_smoothing=min(share, 1.0))


@batch_loss(
    "proxy_anchor",
    title="ProxyAnchor",
    latex=r"\tfrac{1}{|W^+|}\textstyle\sum_{W^+}\log\bigl(1 + \sum_{+} e^{-\alpha(s - \delta)}\bigr)"
    r" + \tfrac1C\sum_W \log\bigl(1 + \sum_{-} e^{\alpha(s + \delta)}\bigr)",
    source="Kim et al. 2020, Eq. 4; Psomas 2020, Eq. 2.31",
    sentence="Proxies are the anchors: each pulls the samples of its class, hardest first, and pushes those of all "
    "others.",
)
class ProxyAnchor(ProxyLoss):
    """Proxy-anchor loss, in which each proxy is an anchor for the samples of the batch.

    The loss is the mean over the classes of the batch of log(1 + Σ_own e^-alpha(s - delta)), plus the mean over all
    classes of log(1 + Σ_others e^alpha(s + delta)), where s is the cosine similarity of proxy and sample. The first sum
    runs over the samples of the class of the proxy, the second over all other samples.

    Reference:
        Kim et al. 2020, Eq. 4; Psomas 2020, Eq. 2.31.
    """

    def __init__(self, alpha: Steepness = 32.0, delta: Delta = 0.1, *, classes: int, embedding_dim: int) -> None:
        super().__init__(classes, embedding_dim)
        self.alpha, self.delta = alpha, delta

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        s = unit(proxies) @ unit(embeddings).mT
        own = self.own(labels).mT
        return self.pull(s, own) + log1p_exp(masked_lse(self.alpha * (s + self.delta), ~own)).mean()

    def pull(self, s: Tensor, own: Tensor) -> Tensor:
        """Compute the term of the positive pairs from cosines `s` and the positive mask `own`, (classes, B) each."""
        return mean(log1p_exp(masked_lse(-self.alpha * (s - self.delta), own)).sum(), own.any(1).sum())


@batch_loss(
    "proxy_push",
    title="Proxy push",
    latex=r"\tfrac{1}{|W^+|}\textstyle\sum_{W^+}\log\bigl(1 + \sum_{+} e^{-\alpha(s - \delta)}\bigr)"
    r" + \tfrac1C\sum_w \log\bigl(1 + \sum_{w' \ne w} e^{\alpha(g_{ww'} + \delta)}\bigr)",
    source="Psomas 2020, Eq. 6.1 and 6.2",
    sentence="ProxyAnchor whose proxies push each other, directly or through the samples of the batch.",
)
class ProxyPush(ProxyAnchor):
    """Positive term of ProxyAnchor plus a push between proxies, the mean over w of log(1 + Σ_w' e^alpha(g + delta)).

    w' runs over all proxies other than w. `through` is "proxies" for g = w^T w' (Psomas 2020, Eq. 6.1; samples are not
    pushed) or "batch" for g = Σ_x (w^T x)(x^T w') over the samples x (Eq. 6.2).
    """

    def __init__(
        self,
        alpha: Steepness = 32.0,
        delta: Delta = 0.1,
        through: Annotated[
            str, Choice(("proxies", "batch"), "g", "Proxies push each other directly (6.1) or through the batch (6.2)")
        ] = "batch",
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(alpha, delta, classes=classes, embedding_dim=embedding_dim)
        self.through = through

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        w = unit(proxies)
        s = w @ unit(embeddings).mT
        between = w @ w.mT if self.through == "proxies" else s @ s.mT
        others = ~torch.eye(self.classes, dtype=torch.bool, device=s.device)
        push = log1p_exp(masked_lse(self.alpha * (between + self.delta), others)).mean()
        return self.pull(s, self.own(labels).mT) + push


@batch_loss(
    "soft_triple",
    title="SoftTriple",
    latex=r"-\log \frac{e^{\lambda(S_y - \delta)}}{e^{\lambda(S_y - \delta)} + \sum_{c \ne y} e^{\lambda S_c}}"
    r" + \tau R(w)",
    source="Qian et al. 2019, Eq. 10; Psomas 2020, Eq. 2.30",
    sentence="Several centres per class, weighted by a softmax. A regulariser merges centres that are not needed.",
)
class SoftTriple(ProxyLoss):
    """SoftTriple loss with several proxies (`centres`) per class.

    The loss is the cross-entropy of la (S_c - delta [c is the class of the sample]), where S_c = Σ_k softmax_k(s_ck /
    gamma) s_ck and s_ck is the cosine similarity to centre k of class c. tau times the mean distance between the
    centres of a class is added.

    Reference:
        Qian et al. 2019, Eq. 6, 10; Psomas 2020, Eq. 2.30 (which has one centre and no regulariser; errata).
    """

    def __init__(
        self,
        centres: Annotated[int, Slider(1, 16, "K", "Centres per class", step=1, above=0)] = 2,
        la: Annotated[float, Slider(1, 100, r"\lambda", "Scale of the similarities", step=0.01, above=0)] = 20.0,
        gamma: Annotated[
            float, Slider(0.01, 50, r"\gamma", "Temperature of the choice among centres", above=0, log=True)
        ] = 0.1,
        delta: Delta = 0.1,
        tau: Annotated[float, Slider(0, 1, r"\tau", "Weight of the regulariser", least=0)] = 0.2,
        *,
        classes: int,
        embedding_dim: int,
    ) -> None:
        super().__init__(classes, embedding_dim, centres)
        self.la, self.gamma, self.delta, self.tau = la, gamma, delta, tau

    def compute(self, embeddings: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
        """Compute the scalar loss from validated embeddings (B, D), labels (B,) and the proxies."""
        w = unit(proxies)
        s = (unit(embeddings) @ w.mT).view(-1, self.classes, self.per_class)
        similarity = ((s / self.gamma).softmax(2) * s).sum(2)
        loss: Tensor = F.cross_entropy(self.la * (similarity - self.delta * self.own(labels).to(s.dtype)), labels)
        if self.per_class == 1:
            return loss
        centres = w.view(self.classes, self.per_class, -1)
        between = torch.triu(torch.ones_like(centres[0] @ centres[0].mT), 1)
        # the added 1e-5 and the clamp allow for cosines that rounding leaves above 1
        apart = (2 + 1e-5 - 2 * centres @ centres.mT).clamp(min=1e-6).sqrt()
        pairs = self.per_class * (self.per_class - 1)
        return loss + self.tau * (apart * between).sum() / (self.classes * pairs)
