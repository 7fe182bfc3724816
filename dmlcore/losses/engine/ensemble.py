"""How an ensemble of losses works: running means, weights, blocks that are kept apart, compression.

Source: Zabihzadeh, Alitbi & Mousavirad 2021 (WEL, WEDL, WEDL-C), with the errata of science 15: squared distances in
the diversity, and evaluation distances that are 0 between equal points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from dmlcore.losses.engine.batch_loss import ready
from dmlcore.losses.engine.distances import unit


class Rescaling(nn.Module):
    """Losses (M,) scaled to one mean: l_j mean(means) / means_j, where the means are running and have no gradient.

    In training they are updated first: means_j <- means_j + rate / (1 + k) (l_j - means_j), k = 0, 1, ...; with rate 1
    they are the arithmetic means of all steps. Source: Eq. 8-9.
    """

    means: Tensor
    steps: Tensor

    def __init__(self, losses: int, rate: float = 1.0) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("means", torch.ones(losses))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, losses: Tensor) -> Tensor:
        """The rescaled losses, (M,)."""
        if self.training:
            with torch.no_grad():
                share = torch.where(self.steps == 0, 1.0, self.rate / (1 + self.steps))
                self.means += share * (losses.detach() - self.means)
                self.steps += 1
        means = self.means.to(losses.dtype, copy=True)
        return losses * means.mean() / torch.where(means == 0, 1.0, means)


class Coefficients(nn.Module):
    """Learned weights w_j = c_j^2 + 1 / (4 M), from `prior` on, and the penalty eta (sum w - 1)^2. Source: Eq. 11."""

    def __init__(self, prior: Sequence[float], eta: float = 100.0) -> None:
        super().__init__()
        self.least, self.eta = 1 / (4 * len(prior)), eta
        self.roots = nn.Parameter((torch.tensor(prior) - self.least).clamp(min=0).sqrt())

    @property
    def weights(self) -> Tensor:
        """(M,), all above 1 / (4 M); they sum to nearly 1."""
        return self.roots.square() + self.least

    def forward(self, losses: Tensor) -> Tensor:
        """sum_j w_j l_j + eta (sum_j w_j - 1)^2, from losses (M,)."""
        weights = self.weights
        return (weights * losses).sum() + self.eta * (weights.sum() - 1).square()


class Ensemble(nn.Module):
    """What WEL and WEDL share: members, rescaling, coefficients.

    forward(embeddings (B, D), labels (B,), indices_tuple=None) -> scalar; tuples go to the members that are losses of
    pairs. After a forward pass `values` holds the losses of the members, (M,), not rescaled.
    """

    pairs: ClassVar[bool] = False

    def __init__(self, members: Sequence[nn.Module], prior: Sequence[float], eta: float, rate: float) -> None:
        super().__init__()
        if len(members) != len(prior):
            raise ValueError(f"{len(members)} losses need as many weights, got {len(prior)}")
        self.members = nn.ModuleList(members)
        self.rescaling, self.coefficients = Rescaling(len(members), rate), Coefficients(prior, eta)
        self.values = torch.zeros(len(members))

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """The loss of a batch."""
        embeddings, labels = ready(embeddings, labels)
        inputs = self.inputs(embeddings)
        losses = torch.stack(
            [
                member(x, labels, indices_tuple if getattr(member, "pairs", False) else None)
                for member, x in zip(self.members, inputs, strict=True)
            ]
        )
        self.values = losses.detach()
        total: Tensor = self.coefficients(self.rescaling(losses))
        return total

    def inputs(self, embeddings: Tensor) -> list[Tensor]:
        """What each member sees of the embeddings (B, D)."""
        raise NotImplementedError


class WeightedEnsemble(Ensemble):
    """WEL: all losses on one embedding; the metric ones see it with unit length, the classifier (the first) as it is.

    In the source the classifier reads the features before the embedding, which a loss does not see here.
    """

    def inputs(self, embeddings: Tensor) -> list[Tensor]:
        """What each member sees."""
        return [embeddings, *[unit(embeddings)] * (len(self.members) - 1)]


class DiverseEnsemble(Ensemble):
    """WEDL: the embedding is M blocks, one per loss, each of unit length, which are kept apart by a diversity hinge.

    `embed` gives what distances are measured with: blocks times the roots of their weights (Eq. 15, corrected), or,
    with a `compression`, its output, trained beside on detached embeddings (WEDL-C).
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        prior: Sequence[float],
        eta: float,
        rate: float,
        diversity: float = 0.01,
        compression: nn.Module | None = None,
    ) -> None:
        super().__init__(members, prior, eta, rate)
        self.diversity, self.compression = diversity, compression

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """The loss of a batch."""
        embeddings, labels = ready(embeddings, labels)
        loss = super().forward(embeddings, labels, indices_tuple)
        loss = loss + self.diversity * (2 - diversity(self.blocks(embeddings))).relu()
        if self.compression is None:
            return loss
        joined = self.joined(embeddings).detach()
        return loss + compression_loss(joined, self.compression(joined))

    def inputs(self, embeddings: Tensor) -> list[Tensor]:
        """What each member sees: its block."""
        return list(self.blocks(embeddings).unbind(1))

    def blocks(self, embeddings: Tensor) -> Tensor:
        """(B, M, e), unit length along the last axis, from embeddings (B, M e)."""
        if embeddings.shape[1] % len(self.members):
            raise ValueError(f"embeddings must have {len(self.members)} blocks of columns, got {embeddings.shape[1]}")
        return unit(embeddings.unflatten(1, (len(self.members), -1)))

    def joined(self, embeddings: Tensor) -> Tensor:
        """f_con (B, M e): squared distances of it are sum_j w_j |f_j - f_j'|^2."""
        return (self.coefficients.weights.sqrt()[:, None] * self.blocks(embeddings)).flatten(1)

    @torch.no_grad()
    def embed(self, embeddings: Tensor) -> Tensor:
        """What retrieval is to be scored on, (B, M e), or (B, e) compressed, from the embeddings (B, M e)."""
        joined = self.joined(embeddings)
        return joined if self.compression is None else cast(Tensor, self.compression(joined))


def diversity(blocks: Tensor) -> Tensor:
    """Mean squared distance between the blocks of a sample: 2 if they are orthogonal, at most 2 M / (M - 1).

    blocks (B, M, e) of unit length -> scalar, the mean over pairs of blocks and samples. Source: Eq. 12, corrected.
    """
    count = blocks.shape[1]
    if count < 2 or not len(blocks):
        return blocks.sum() * 0 + 2
    summed = count * blocks.square().sum((1, 2)) - blocks.sum(1).square().sum(1)  # over the pairs j < k
    return 2 * summed.mean() / (count * (count - 1))


class Compression(nn.Sequential):
    """The network of WEDL-C: M e numbers to e, with one hidden layer of 2 e and a tanh."""

    def __init__(self, blocks: int, width: int) -> None:
        super().__init__(nn.Linear(blocks * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))


def compression_loss(joined: Tensor, compressed: Tensor) -> Tensor:
    """N^2 |K - K'|^2 of the squared distances within each, divided by their sums: N^4 times what is printed.

    joined (N, M e), compressed (N, e) -> scalar. As printed it is of the order N^-4, too small to train with.
    """
    first, second = (_relative_squares(x) for x in (joined, compressed))
    return len(joined) ** 2 * (first - second).square().sum()


def _relative_squares(x: Tensor) -> Tensor:
    norms = x.square().sum(1)
    squares = (norms[:, None] + norms - 2 * x @ x.mT).clamp(min=0)
    return squares / squares.sum().clamp(min=torch.finfo(x.dtype).tiny)
