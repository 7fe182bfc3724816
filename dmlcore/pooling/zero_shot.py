"""Zero-shot prediction: class embeddings predicted from prototype shares by ridge regression on other classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def ridge(shares: Tensor, targets: Tensor, epsilon: float = 0.05) -> Tensor:
    """Return the ridge solution A (d, m) = argmin |A Z - T|^2 + epsilon |A|^2, differentiable with respect to Z and T.

    The smaller of the two equivalent systems, b x b or m x m, is solved.

    Args:
        shares: Z^T, shape (b, m).
        targets: T^T, shape (b, d).
        epsilon: Weight of the penalty.

    Raises:
        ValueError: If epsilon is not positive.

    Reference:
        Gurbuz 2022, Sec. 5.2.3.
    """
    b, m = shares.shape
    if epsilon <= 0:
        raise ValueError(f"epsilon, the ridge weight, must be positive, got {epsilon}")
    eye = torch.eye(min(b, m), dtype=shares.dtype, device=shares.device)
    fit: Tensor
    if b <= m:
        fit = torch.linalg.solve(shares @ shares.mT + epsilon * eye, targets).mT @ shares
    else:
        fit = torch.linalg.solve(shares.mT @ shares + epsilon * eye, shares.mT @ targets).mT
    return fit


class ZeroShotPrediction(nn.Module):
    """Softmax loss on label embeddings; a ridge fit to each half of the classes predicts those of the other half.

    `forward` maps shares (B, m) and labels (B,) to a scalar. The label embeddings Upsilon (C, d) are learned. The
    classes of the batch, sorted by label, are split into two disjoint halves. A is the ridge fit to one half; for the
    shares z of a sample in the other half, the logit of class k is scale * v_k . A z, where v_k is the label embedding
    of class k. The loss is the sum of the mean losses of the two halves. `forward` raises ValueError if the batch has
    fewer than two classes.

    Args:
        classes: Number of classes C.
        dimension: Dimension d of the label embeddings.
        epsilon: Weight of the penalty in the ridge fit.
        scale: Scale of the logits.

    Reference:
        Gurbuz 2022, (5.2.4) corrected.
    """

    def __init__(self, classes: int, dimension: int, *, epsilon: float = 0.05, scale: float = 9.5) -> None:
        super().__init__()
        self.embeddings = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, dimension)))
        self.epsilon, self.scale = epsilon, scale

    def forward(self, shares: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss for shares (B, m) and labels (B,)."""
        classes = labels.unique()
        if len(classes) < 2:
            raise ValueError("zero-shot prediction needs a batch of at least two classes")
        first = torch.isin(labels, classes[: len(classes) // 2])
        return self._half(shares, labels, first) + self._half(shares, labels, ~first)

    def _half(self, shares: Tensor, labels: Tensor, fitted: Tensor) -> Tensor:
        """Compute the cross-entropy of the samples outside the mask `fitted`, after a ridge fit to those inside."""
        A = ridge(shares[fitted], self.embeddings[labels[fitted]], self.epsilon)
        logits = self.scale * shares[~fitted] @ A.mT @ self.embeddings.mT
        return F.cross_entropy(logits, labels[~fitted])


def mixed(metric_loss: Tensor, zero_shot_loss: Tensor, weight: float = 0.1) -> Tensor:
    """Compute (1 - weight) * metric loss + weight * zero-shot loss.

    Args:
        metric_loss: Scalar.
        zero_shot_loss: Scalar.
        weight: Weight of the zero-shot loss.

    Reference:
        Gurbuz 2022, Sec. 5.2.3.
    """
    return (1 - weight) * metric_loss + weight * zero_shot_loss
