"""Building blocks of ensembles of losses: running means, learned weights, separate embedding blocks, and compression.

Reference: Zabihzadeh, Alitbi & Mousavirad 2021 (WEL, WEDL, WEDL-C). Two deviations correct the paper: the diversity
term uses squared distances, and the distance used for evaluation is 0 between equal points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from dmlcore.geometry.batches import HALF, Index, check_batch, full_precision, widen
from dmlcore.losses.engine.batch_loss import refuse_reference, zero_loss
from dmlcore.losses.engine.distances import unit

ORDERS = ("update_first", "normalise_first")


class Rescaling(nn.Module):
    """Rescaling of M losses to a common mean: l_j mean(means) / means_j, where `means` holds their running means.

    In training mode the means are updated before use: means_j <- means_j + rate / (1 + k) (l_j - means_j) in step k =
    0, 1, .... With rate 1 they are the arithmetic means over all steps. They receive no gradient.

    Args:
        losses: Number M of losses.
        rate: Rate of the running means.
        order: "update_first", or "normalise_first" to divide by the means of the previous steps, as printed in the
            paper. In either order the first step divides by the means of that step.

    Reference:
        Eq. 8-9 and the released code.
    """

    means: Tensor
    steps: Tensor

    def __init__(self, losses: int, rate: float = 1.0, order: str = ORDERS[0]) -> None:
        super().__init__()
        self.rate, self.order = rate, order
        self.register_buffer("means", torch.ones(losses))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, losses: Tensor) -> Tensor:
        """Return the rescaled losses, shape (M,)."""
        # half precision is too coarse for running means, so convert this module back to float32
        if self.means.dtype in HALF:
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
    """Weights w_j = c_j^2 + 1 / (4 M) of M losses with learned c_j, and the penalty eta (sum w - 1)^2.

    Args:
        prior: Initial weights, M numbers.
        eta: Weight of the penalty.
        learned: False to keep the weights at `prior` (Eq. 10).
        at_network_rate: True to train the weights with the learning rate of the network, as in the released code, not
            with `loss.learning_rate`, which applies to proxies.

    Reference:
        Eq. 11.
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
        """Weights of the member losses, shape (M,), in float32 or wider.

        Each weight is at least 1 / (4 M); the sum is close to 1.
        """
        return widen(self.roots).square() + self.least

    def forward(self, losses: Tensor) -> Tensor:
        """Compute sum_j w_j l_j + eta (sum_j w_j - 1)^2 for losses l of shape (M,)."""
        weights = self.weights.to(losses.dtype)
        return (weights * losses).sum() + self.eta * (weights.sum() - 1).square()


class Ensemble(nn.Module):
    """Base class of WEL and WEDL, a weighted sum of rescaled member losses.

    `forward` maps embeddings (B, D) and labels (B,) to a scalar. Index tuples are passed to the members that are pair
    losses. A reference (`ref_emb`) raises ValueError. `pooled` (B, P) holds the features before the embedding layer; it
    is used if the loss has `reads_pooled` set.

    After a forward pass `values` holds the member losses (M,) before rescaling, and `weights` holds their weights (M,).
    `measured` returns both under the names of the members.

    Args:
        members: Member losses, M modules.
        prior: Initial weights.
        eta: Weight of the penalty, see `Coefficients`.
        rate: Rate of the running means, see `Rescaling`.
        names: Names of the members; "1", "2", ... by default.
        weights: `Coefficients` to use instead of learned ones.
        order: See `Rescaling`.
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
        """Return the detached losses and weights of the last batch, keyed loss_NAME and weight_NAME for each member."""
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
        """Return the scalar loss of a batch; the class docstring describes the arguments."""
        refuse_reference(self, ref_emb, ref_labels)
        embeddings, labels = check_batch(embeddings, labels)
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
        """Return the input tensor of each member, given embeddings (B, D) and pooled features (B, P)."""
        raise NotImplementedError


class WeightedEnsemble(Ensemble):
    """Ensemble in which all members share one embedding (WEL).

    The classifier reads the embedding unnormalised, all other members read it normalised. With `reads_pooled` the
    classifier instead reads the features before the embedding layer, as in the paper (Fig. 9).
    """

    def __init__(self, *args: Any, reads_pooled: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        self.reads_pooled = reads_pooled

    def inputs(self, embeddings: Tensor, pooled: Tensor | None = None) -> list[Tensor]:
        """Return the input of each member: embeddings or pooled features for the classifier, else unit vectors."""
        directions, classified = unit(embeddings), pooled if self.reads_pooled else embeddings
        if classified is None:
            raise ValueError("the classifier reads the features before the embedding; pass them as pooled")
        return [classified if getattr(member, "reads_lengths", False) else directions for member in self.members]


class DiverseEnsemble(Ensemble):
    """Ensemble in which each of M members reads its own block of the embedding (WEDL).

    Blocks have unit length, and a hinge keeps the blocks of a sample apart. `embed` returns the vectors on which
    distances are measured: the blocks times the square roots of their weights (Eq. 15, corrected), or the output of
    `compression` if that is given (WEDL-C). The compression is trained at the same time, on detached embeddings.
    `squared` is True if the hinge uses squared distances, as in the paper, and False if it uses unsquared distances, as
    in the released code.
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
        """Return the measurements of the base class, and "diversity", the mean (squared) distance between blocks."""
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
        """Return the scalar loss of a batch; the class docstring describes the arguments."""
        loss = super().forward(embeddings, labels, indices_tuple, ref_emb, ref_labels, pooled=pooled)
        if not len(embeddings):
            return loss
        embeddings = widen(embeddings)
        apart = diversity(self.blocks(embeddings), squared=self.squared)
        self.apart = apart.detach()
        loss = loss + self.diversity * (2 - apart).relu()
        if self.compression is None:
            return loss
        joined = self.weighted_blocks(embeddings).detach()
        return loss + compression_loss(joined, self.compression(joined))

    def inputs(self, embeddings: Tensor, pooled: Tensor | None = None) -> list[Tensor]:
        """Return, for each member, the block (B, e) of the embeddings that it reads."""
        return list(self.blocks(embeddings).unbind(1))

    def blocks(self, embeddings: Tensor) -> Tensor:
        """Split embeddings (B, M e) into blocks (B, M, e) and normalise each block."""
        if embeddings.shape[1] % len(self.members):
            raise ValueError(f"embeddings must have {len(self.members)} blocks of columns, got {embeddings.shape[1]}")
        return unit(embeddings.unflatten(1, (len(self.members), -1)))

    def weighted_blocks(self, embeddings: Tensor) -> Tensor:
        """Return the blocks times the square roots of their weights, shape (B, M e).

        Squared distances d^2 between the results are sum_j w_j |f_j - f_j'|^2, where f_j and f_j' are the blocks of two
        samples.
        """
        return (self.coefficients.weights.sqrt()[:, None] * self.blocks(embeddings)).flatten(1)

    @torch.no_grad()
    def embed(self, embeddings: Tensor) -> Tensor:
        """Return the vectors used for retrieval: weighted blocks (B, M e), or compressed embeddings (B, e)."""
        joined = self.weighted_blocks(embeddings)
        return joined if self.compression is None else cast(Tensor, self.compression(joined))


def diversity(blocks: Tensor, *, squared: bool = True) -> Tensor:
    """Compute the mean squared distance between the blocks of a sample. It is 2 for orthogonal blocks.

    The largest possible value is 2 M / (M - 1) for M blocks.

    Args:
        blocks: Blocks of unit length, shape (B, M, e).
        squared: False for the mean of unsquared distances, as in the released code.

    Returns:
        Scalar, the mean over pairs of blocks and samples.

    Reference:
        Eq. 12, corrected.
    """
    count = blocks.shape[1]
    if count < 2 or not len(blocks):
        return blocks.sum() * 0 + 2
    if not squared:
        first, second = torch.triu_indices(count, count, 1, device=blocks.device)
        squares = (blocks[:, first] - blocks[:, second]).square().sum(-1)
        # avoid sqrt at 0 (coincident blocks), where its derivative is infinite
        return torch.where(squares > 0, torch.where(squares > 0, squares, 1.0).sqrt(), 0.0).mean()
    summed = count * blocks.square().sum((1, 2)) - blocks.sum(1).square().sum(1)  # sum over the pairs j < k
    return 2 * summed.mean() / (count * (count - 1))


class Compression(nn.Sequential):
    """Network of WEDL-C that maps M blocks of dimension e to one embedding of dimension e.

    It has one hidden layer of 2 e units with tanh.
    """

    def __init__(self, blocks: int, width: int) -> None:
        super().__init__(nn.Linear(blocks * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))

    def forward(self, joined: Tensor) -> Tensor:
        """Return the compressed embeddings (B, e) of joined blocks (B, M e), in the dtype of the blocks."""
        parameters = {name: value.to(joined.dtype) for name, value in self.named_parameters()}
        hidden = nn.functional.linear(joined, parameters["0.weight"], parameters["0.bias"]).tanh()
        return nn.functional.linear(hidden, parameters["2.weight"], parameters["2.bias"])


def compression_loss(joined: Tensor, compressed: Tensor) -> Tensor:
    """Compute N^2 |K - K'|^2, where K and K' are matrices of squared distances, each divided by its sum.

    This is N^4 times the loss printed in the paper, which is of order N^-4 and therefore too small to train with.

    Args:
        joined: Weighted blocks, shape (N, M e).
        compressed: Output of the compression, shape (N, e).
    """
    first, second = (_relative_squares(x) for x in (joined, compressed))
    return len(joined) ** 2 * (first - second).square().sum()


def _relative_squares(x: Tensor) -> Tensor:
    norms = x.square().sum(1)
    squares = (norms[:, None] + norms - 2 * x @ x.mT).clamp(min=0)
    return squares / squares.sum().clamp(min=torch.finfo(x.dtype).tiny)
