"""How an ensemble of losses works: running means, weights, blocks that are kept apart, compression.

Source: Zabihzadeh, Alitbi & Mousavirad 2021 (WEL, WEDL, WEDL-C), with the errata of science 15: squared distances in
the diversity, and evaluation distances that are 0 between equal points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from dmlcore.geometry.batches import HALF, full_precision, widen
from dmlcore.losses.engine.distances import unit
from dmlcore.losses.engine.inputs import ready, refuse_reference, zero_loss
from dmlcore.losses.engine.table import Index

ORDERS = ("update_first", "normalise_first")


class Rescaling(nn.Module):
    """Losses (M,) scaled to one mean: l_j mean(means) / means_j, where the means are running and have no gradient.

    In training they are updated first: means_j <- means_j + rate / (1 + k) (l_j - means_j), k = 0, 1, ...; with rate 1
    they are the arithmetic means of all steps. order "normalise_first" divides by the means of the steps before, as the
    text has it; the first step divides by itself either way. Source: Eq. 8-9 and the released code.
    """

    means: Tensor
    steps: Tensor

    def __init__(self, losses: int, rate: float = 1.0, order: str = ORDERS[0]) -> None:
        super().__init__()
        self.rate, self.order = rate, order
        self.register_buffer("means", torch.ones(losses))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, losses: Tensor) -> Tensor:
        """The rescaled losses, (M,)."""
        if self.means.dtype in HALF:  # too coarse for running means
            self.float()
        means = self.means.clone()
        if self.training:
            with torch.no_grad():
                share = torch.where(self.steps == 0, 1.0, self.rate / (1 + self.steps))
                self.means += share * (losses.detach() - self.means)
                if self.order == ORDERS[0]:
                    means = self.means
                means = torch.where(self.steps == 0, self.means, means)
                self.steps += 1
        means = means.to(losses.dtype, copy=True)
        return losses * means.mean() / torch.where(means == 0, 1.0, means)


class Coefficients(nn.Module):
    """Weights w_j = c_j^2 + 1 / (4 M), from `prior` on, and the penalty eta (sum w - 1)^2. Source: Eq. 11.

    learned: False keeps them at `prior` (Eq. 10). at_network_rate: whether they learn at the rate of the network, as in
    the released code, while proxies have `loss.learning_rate`.
    """

    roots: Tensor

    def __init__(
        self, prior: Sequence[float], eta: float = 100.0, *, learned: bool = True, at_network_rate: bool = False
    ) -> None:
        super().__init__()
        self.least, self.eta, self.at_network_rate = 1 / (4 * len(prior)), eta, at_network_rate
        roots = (torch.tensor(prior) - self.least).clamp(min=0).sqrt()
        if learned:
            self.roots = nn.Parameter(roots)
        else:
            self.register_buffer("roots", roots)

    @property
    def weights(self) -> Tensor:
        """Learned weights of the members, (M,), each above 1 / (4 M), float32 at least; they sum to nearly 1."""
        return widen(self.roots).square() + self.least

    def forward(self, losses: Tensor) -> Tensor:
        """sum_j w_j l_j + eta (sum_j w_j - 1)^2, from losses (M,)."""
        weights = self.weights.to(losses.dtype)
        return (weights * losses).sum() + self.eta * (weights.sum() - 1).square()


class Ensemble(nn.Module):
    """What WEL and WEDL share: members, rescaling, coefficients.

    forward(embeddings (B, D), labels (B,), indices_tuple=None, *, pooled=None) -> scalar; tuples go to the members that
    are losses of pairs; a reference is refused; pooled (B, P) is what the embedding layer takes, where the loss
    `reads_pooled`. After a forward pass `values` holds the losses of the members, (M,), not rescaled, and `weights`
    what they counted with, (M,); `measured` gives both by the names of the members. weights, order: `Coefficients` and
    the order of `Rescaling` instead of learned ones that are updated first.
    """

    pairs: ClassVar[bool] = False
    reads_pooled: bool = False

    def __init__(
        self,
        members: Sequence[nn.Module],
        prior: Sequence[float],
        eta: float,
        rate: float,
        *,
        names: Sequence[str] = (),
        weights: Coefficients | None = None,
        order: str = ORDERS[0],
    ) -> None:
        super().__init__()
        if len(members) != len(prior):
            raise ValueError(f"{len(members)} losses need as many weights, got {len(prior)}")
        self.names = tuple(names) or tuple(str(number) for number in range(1, len(members) + 1))
        self.members = nn.ModuleList(members)
        self.rescaling = Rescaling(len(members), rate, order)
        self.coefficients = weights or Coefficients(prior, eta)
        self.values, self.weights = torch.zeros(len(members)), self.coefficients.weights.detach()

    def measured(self) -> dict[str, Tensor]:
        """`values` as loss_NAME and `weights` as weight_NAME, of the last batch, without a graph."""
        parts = {"loss": self.values, "weight": self.weights}
        return {
            f"{part}_{name}": value for part, row in parts.items() for name, value in zip(self.names, row, strict=True)
        }

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        *,
        pooled: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch."""
        refuse_reference(self, ref_emb, ref_labels)
        embeddings, labels = ready(embeddings, labels)
        if not len(labels):
            self.values = torch.zeros_like(self.values)
            return zero_loss(self, embeddings)
        inputs = self.inputs(embeddings, pooled)
        losses = torch.stack(
            [
                member(x, labels, indices_tuple if getattr(member, "pairs", False) else None).to(embeddings.dtype)
                for member, x in zip(self.members, inputs, strict=True)
            ]
        )
        self.values, self.weights = losses.detach(), self.coefficients.weights.detach()
        total: Tensor = self.coefficients(self.rescaling(losses))
        return total

    def inputs(self, embeddings: Tensor, pooled: Tensor | None = None) -> list[Tensor]:
        """What each member sees of the embeddings (B, D) and of what they are made of."""
        raise NotImplementedError


class WeightedEnsemble(Ensemble):
    """WEL: all losses on one embedding; the metric ones see it with unit length, the classifier as it is.

    reads_pooled: whether the classifier reads the features phi that the embedding layer takes instead, as in the
    source (Fig. 9).
    """

    def __init__(self, *args: Any, reads_pooled: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        self.reads_pooled = reads_pooled

    def inputs(self, embeddings: Tensor, pooled: Tensor | None = None) -> list[Tensor]:
        """What each member sees."""
        directions, classified = unit(embeddings), pooled if self.reads_pooled else embeddings
        if classified is None:
            raise ValueError("the classifier reads the features before the embedding; give them as pooled")
        return [classified if getattr(member, "reads_lengths", False) else directions for member in self.members]


class DiverseEnsemble(Ensemble):
    """WEDL: the embedding is M blocks, one per loss, each of unit length, which are kept apart by a diversity hinge.

    squared: whether the hinge is of squared distances; the released code takes plain ones, whose mean is below 2.

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
        *,
        squared: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(members, prior, eta, rate, **more)
        self.diversity, self.compression, self.squared = diversity, compression, squared
        self.apart = torch.tensor(2.0)

    def measured(self) -> dict[str, Tensor]:
        """Also "diversity", the mean (squared) distance between the blocks of a sample."""
        return super().measured() | {"diversity": self.apart}

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        *,
        pooled: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch."""
        loss = super().forward(embeddings, labels, indices_tuple, ref_emb, ref_labels, pooled=pooled)
        if not len(embeddings):
            return loss
        embeddings = widen(embeddings)
        apart = diversity(self.blocks(embeddings), squared=self.squared)
        self.apart = apart.detach()
        loss = loss + self.diversity * (2 - apart).relu()
        if self.compression is None:
            return loss
        joined = self.joined(embeddings).detach()
        return loss + compression_loss(joined, self.compression(joined))

    def inputs(self, embeddings: Tensor, pooled: Tensor | None = None) -> list[Tensor]:
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


def diversity(blocks: Tensor, *, squared: bool = True) -> Tensor:
    """Mean squared distance between the blocks of a sample: 2 if they are orthogonal, at most 2 M / (M - 1).

    blocks (B, M, e) of unit length -> scalar, the mean over pairs of blocks and samples. squared: False for that of the
    distances, as in the released code. Source: Eq. 12, corrected.
    """
    count = blocks.shape[1]
    if count < 2 or not len(blocks):
        return blocks.sum() * 0 + 2
    if not squared:
        first, second = torch.triu_indices(count, count, 1, device=blocks.device)
        squares = (blocks[:, first] - blocks[:, second]).square().sum(-1)
        # the root has no slope at 0, where blocks coincide
        return torch.where(squares > 0, torch.where(squares > 0, squares, 1.0).sqrt(), 0.0).mean()
    summed = count * blocks.square().sum((1, 2)) - blocks.sum(1).square().sum(1)  # over the pairs j < k
    return 2 * summed.mean() / (count * (count - 1))


class Compression(nn.Sequential):
    """The network of WEDL-C: M e numbers to e, with one hidden layer of 2 e and a tanh."""

    def __init__(self, blocks: int, width: int) -> None:
        super().__init__(nn.Linear(blocks * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))

    def forward(self, joined: Tensor) -> Tensor:
        """Return the compressed embeddings (B, e) of joined blocks (B, M e), in their dtype."""
        parameters = {name: value.to(joined.dtype) for name, value in self.named_parameters()}
        hidden = nn.functional.linear(joined, parameters["0.weight"], parameters["0.bias"]).tanh()
        return nn.functional.linear(hidden, parameters["2.weight"], parameters["2.bias"])


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
