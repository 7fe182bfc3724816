"""Catalogue of miners: functions of a matrix of distances or cosines, each with metadata for forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore.catalogue import Catalogue, Entry, declared
from dmlcore.geometry.batches import check_embeddings, check_labels, full_precision, widen

Triplets = tuple[Tensor, Tensor, Tensor]
Pairs = tuple[Tensor, Tensor, Tensor, Tensor]
Mined = Triplets | Pairs | None
Mine = Callable[..., Mined]
MineT = TypeVar("MineT", bound=Mine)
Gives = Literal["triplets", "pairs", "everything"]
Table = Literal["distance", "unit distance", "cosine"]

ALL = "all"
DISTANCES = ("euclidean", "unit", "cosine")


@dataclass(frozen=True, kw_only=True)
class Miner(Entry):
    """Catalogue entry of a miner; call it with a matrix of distances or cosines and with labels.

    Attributes:
        sentence: One-sentence description.
        mine: Function that selects tuples, given the matrix and the masks of positives and negatives.
        gives: Kind of result. "triplets": (anchors, positives, negatives); "pairs": (a1, positives, a2, negatives) for
            positive pairs (a1, positives) and negative pairs (a2, negatives); "everything": None.
        table: Kind of matrix: "distance" for Euclidean distances between raw embeddings, "unit distance" for those
            between vectors scaled to unit length, or "cosine".
        random: True if the miner draws random numbers.
        many: True if the miner may select several negatives for one positive pair.
    """

    sentence: str
    mine: Mine
    gives: Gives
    table: Table
    random: bool
    many: bool

    @property
    def distances(self) -> tuple[str, ...]:
        """Names of the distances that `create` accepts, default first; several only if `table` is "distance"."""
        return DISTANCES if self.table == "distance" else (self.table.removesuffix(" distance"),)

    def __call__(self, table: Tensor, labels: Tensor, reference_labels: Tensor | None = None, **options: Any) -> Any:
        """Apply the miner to a matrix and return 1-D int64 index tensors, in the order given for `Miner.gives`.

        Anchors are row indices; positives and negatives are column indices.

        Args:
            table: Distances or cosines, shape (B, R); (B, B) if the columns are the batch itself.
            labels: Labels of the rows, shape (B,).
            reference_labels: Labels of the columns, shape (R,); None if the columns are the batch itself.
            options: Parameters of the miner; a random miner also requires `dimension` and accepts `generator`.
        """
        columns = labels if reference_labels is None else reference_labels
        if table.ndim != 2 or table.shape != (len(labels), len(columns)):
            raise ValueError(
                f"distances must be ({len(labels)}, {len(columns)}) like the labels, got {tuple(table.shape)}"
            )
        if not table.numel():
            return tuple(labels.new_zeros(0, dtype=torch.int64) for _ in range(3 if self.gives == "triplets" else 4))
        same = labels[:, None] == columns
        positive = same
        if reference_labels is None:
            positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        return self.mine(table.detach(), positive, ~same, **options)


class BatchMiner(nn.Module):
    """Module that applies a miner with fixed parameters to the embeddings of a batch; created by `create`.

    After each call, `num_triplets`, `num_pos_pairs` and `num_neg_pairs` hold the numbers of selected triplets, positive
    pairs and negative pairs. `distance` is the name of the distance that the miner compares.
    """

    def __init__(self, miner: Miner, parameters: Mapping[str, float], distance: str | None = None) -> None:
        super().__init__()
        self.miner, self.hyper = miner, parameters
        self.distance = distance or miner.distances[0]
        if self.distance not in miner.distances:
            known = " or ".join(miner.distances)
            raise ValueError(f"distance: {miner.name} takes {known}, got {self.distance!r}")
        self.num_triplets = self.num_pos_pairs = self.num_neg_pairs = 0

    @property
    def num_pairs(self) -> int:
        """Number of pairs, positive and negative, that the last call selected."""
        return self.num_pos_pairs + self.num_neg_pairs

    @full_precision
    @torch.no_grad()
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Mined:
        """Return index tensors to pass to a loss as `indices_tuple`; None stands for all tuples.

        The tensors are on the device of the embeddings. Their length depends on the data, so a call on a GPU
        synchronises with the device.

        Args:
            embeddings: Embeddings of the batch, shape (B, D).
            labels: Labels of the batch, shape (B,).
            ref_emb: Embeddings (R, D) from which positives and negatives are taken; None for the batch itself.
            ref_labels: Labels of `ref_emb`, shape (R,).
            generator: Generator for a random miner. With a CPU generator the result does not depend on the device.

        Raises:
            TypeError, ValueError: If an argument is invalid; the message names it.
        """
        if (ref_emb is None) != (ref_labels is None):
            raise ValueError("ref_emb and ref_labels must be given together")
        points, labels = self._checked(embeddings, labels, "embeddings", "labels")
        columns = points
        if ref_emb is not None and ref_labels is not None:
            columns, ref_labels = self._checked(ref_emb, ref_labels, "ref_emb", "ref_labels")
            columns = columns.to(points.dtype)
        if self.miner.gives == "everything":
            return None
        table = pairwise_table(points, columns, self.distance, similarities=self.miner.table == "cosine")
        extra = {"dimension": points.shape[1], "generator": generator} if self.miner.random else {}
        mined = self.miner(table, labels, ref_labels, **self.hyper, **extra)
        sizes = [len(index) for index in mined]
        self.num_triplets = sizes[0] if len(sizes) == 3 else 0
        self.num_pos_pairs, self.num_neg_pairs = (sizes[0], sizes[2]) if len(sizes) == 4 else (0, 0)
        return cast(Mined, mined)

    def _checked(self, embeddings: Tensor, labels: Tensor, name: str, labels_name: str) -> tuple[Tensor, Tensor]:
        points = widen(embeddings)
        check_embeddings(points, name, unbounded=True)
        check_labels(labels, points, (labels_name, name))
        return points.detach(), labels.to(points.device)


def pairwise_table(rows: Tensor, columns: Tensor, distance: str, *, similarities: bool = False) -> Tensor:
    """Return the matrix (B, R) of distances between `rows` and `columns`.

    Args:
        rows: Vectors, shape (B, D).
        columns: Vectors, shape (R, D).
        distance: "euclidean"; "unit" for the Euclidean distance between vectors scaled to unit length; or "cosine" for
            1 - cosine.
        similarities: True to return cosines instead of 1 - cosine; used only with "cosine".
    """
    if distance != "euclidean":
        same, rows = columns is rows, F.normalize(rows, dim=1)
        columns = rows if same else F.normalize(columns, dim=1)
    if distance == "cosine":
        return rows @ columns.mT if similarities else 1 - rows @ columns.mT
    return torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist")


MINERS: Catalogue[Miner] = Catalogue("miner")


def names() -> list[str]:
    """Return the names of all miners; "all", which means no mining, comes first.

    Example:
        >>> from dmlcore import mining
        >>> mining.names()[:3]
        ['all', 'semi_hard', 'semi_hard_window']
    """
    return list(MINERS)


def on_distances() -> list[str]:
    """Return the names of the miners that need only a matrix of distances and select one negative per pair."""
    return [name for name, m in MINERS.items() if m.gives == "triplets" and m.table == "distance" and not m.many]


def describe(name: str) -> Miner:
    """Return the catalogue entry of a miner: title, sentence, source and parameters.

    Args:
        name: Name of a miner.

    Raises:
        KeyError: If the name is unknown; the message lists the known names.
    """
    return MINERS[name]


def create(name: str, *, distance: str | None = None, **parameters: Any) -> BatchMiner:
    """Create a miner, whose call returns index tensors to pass to a loss as `indices_tuple`.

    Args:
        name: Name of a miner.
        distance: "euclidean" for the distance between the raw embeddings (default), "unit" for the Euclidean distance
            between embeddings scaled to unit length, or "cosine" for 1 - cosine. Miners that need unit vectors accept
            only `describe(name).distances`.
        parameters: Parameters of the miner.

    Returns:
        Module that maps embeddings (B, D) and labels (B,) to index tensors into the batch, each of shape (T,) int64.

    Raises:
        KeyError: If the name is unknown.
        TypeError: If the miner has no such parameter.
        ValueError: If a value is invalid.

    Example:
        Each anchor gets its farthest positive and its nearest negative.

        >>> import torch
        >>> from dmlcore import losses, mining
        >>> embeddings, labels = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
        >>> triplets = mining.create("batch_hard")(embeddings, labels)
        >>> triplets
        (tensor([0, 1, 2, 3]), tensor([1, 0, 3, 2]), tensor([2, 2, 1, 1]))
        >>> losses.create("ranking", m=0.5)(embeddings, labels, triplets)
        tensor(0.5000)

    Reference:
        `describe(name).source` cites the source of each miner.
    """
    info = describe(name)
    return BatchMiner(info, info.complete(parameters), distance)


def fits(name: str, loss: object) -> bool:
    """Return True if a loss, or its catalogue entry, can use the result of a miner.

    Pair and triplet losses accept both kinds of tuples. Proxy and classification losses accept no tuples, so only the
    miner "all" fits them.

    Args:
        name: Name of a miner.
        loss: Loss or its catalogue entry.
    """
    return describe(name).gives == "everything" or hasattr(loss, "core") or bool(getattr(loss, "pairs", False))


def miner(
    title: str,
    source: str,
    gives: Gives = "triplets",
    table: Table = "distance",
    random: bool = False,
    many: bool = False,
) -> Callable[[MineT], MineT]:
    """Register the decorated function as a miner under its own name.

    The function takes a matrix (B, R) of distances or cosines and the masks (B, R) of positives and negatives. The
    new-run form shows its docstring. Hyper-parameters of the miner are keyword arguments with a default, annotated with
    a Slider. For the arguments of the decorator, see `Miner`.
    """

    def enter(mine: MineT) -> MineT:
        name, sentence = mine.__name__.removesuffix("_"), " ".join((mine.__doc__ or "").split())
        entry = Miner(
            name=name,
            title=title,
            sentence=sentence,
            source=source,
            mine=mine,
            gives=gives,
            table=table,
            random=random,
            many=many,
            **declared(mine),
        )
        MINERS.enter(name, entry)
        return mine

    return enter


@miner("All", "Every valid tuple of the batch", gives="everything")
def all_(table: Tensor, positive: Tensor, negative: Tensor) -> None:
    """Use every tuple of the batch, without mining."""
    return None
