"""Joint loss of second-order (N-pair) and third-order (angular) relations of a batch."""

from __future__ import annotations

from typing import Annotated, ClassVar

from torch import Tensor, nn

from dmlcore.catalogue import Slider
from dmlcore.geometry.batches import Index
from dmlcore.losses.engine.batch_loss import batch_loss, refuse_reference
from dmlcore.losses.engine.table import Counts
from dmlcore.losses.engine.triplet_loss import create
from dmlcore.losses.structured import NPair


@batch_loss(
    "angular_n_pair",
    title="Angular and N-pair",
    latex=r"\operatorname{mean}_i \log\bigl(1 + \textstyle\sum_{N_i} e^{x_i^\top x_k - x_i^\top x_j}\bigr)"
    r" + \lambda\operatorname{mean}_i \lVert x_i\rVert"
    r" + \gamma\operatorname{mean}_{ijk}\bigl[d_{ij}^2 - 4\tan^2\!\rho\,\lVert x_k-\tfrac{x_i+x_j}2\rVert^2\bigr]_+",
    source="Wang et al. 2017; Can 2018, Eq. 2.25",
    sentence="Adds the angular loss over all triplets of a batch to the N-pair loss over one pair of each class.",
)
class AngularNPair(nn.Module):
    """N-pair loss with one pair of each class plus `weight` times the angular loss over all triplets of the batch.

    The N-pair term is `NPair` with form "one" and norms "mean". Both terms read the embeddings without normalising
    them. Index tuples select the pairs and triplets of both terms. Both samples of a pair must be in the batch, so a
    reference raises ValueError. `counts` holds the numbers of triplets.

    Reference:
        Can 2018, Eq. 2.21-2.25. Its gamma and alpha are the `weight` and `rho` of this class; it states neither value.
    """

    pairs: ClassVar[bool] = False
    unbounded: bool = False

    def __init__(
        self,
        weight: Annotated[float, Slider(0, 4, r"\gamma", "Weight of the angular term", least=0)] = 1.0,
        rho: Annotated[float, Slider(0.05, 1.4, r"\rho", "Angle at the negative, radians; singular at pi/2")] = 0.6,
        l2: Annotated[float, Slider(0, 0.2, r"\lambda", "Weight of the mean norm", step=0.005, least=0)] = 0.02,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.n_pair, self.angular = NPair("one", l2, "mean"), create("angular", rho=rho)

    @property
    def counts(self) -> Counts:
        """Counts of the triplets of the last batch."""
        return self.angular.counts

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Index | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar loss of embeddings (B, D) and labels (B,); the class docstring describes the others."""
        refuse_reference(self, ref_emb, ref_labels)
        n_pair: Tensor = self.n_pair(embeddings, labels, indices_tuple)
        angular: Tensor = self.angular(embeddings, labels, indices_tuple)
        return n_pair + self.weight * angular
