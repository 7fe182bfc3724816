"""What a miner is: a function of a table of a batch, with what a form needs of it, and the catalogue of all."""

from __future__ import annotations

import inspect
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
    """A miner with what a form shows of it; call it with its table and labels.

    gives: what it hands to a loss: "triplets" (anchors, positives, negatives), "pairs" (a1, positives, a2, negatives)
    or "everything", that is None. table: what it reads: Euclidean distances of the embeddings as they are or of unit
    length, or cosines. random: whether it draws, from the generator it is given. many: whether a pair may get more
    than one negative.
    """

    sentence: str
    mine: Mine
    gives: Gives
    table: Table
    random: bool
    many: bool

    @property
    def distances(self) -> tuple[str, ...]:
        """Distances that `create` can set, the default first; only miners of plain distances have a choice."""
        return DISTANCES if self.table == "distance" else (self.table.removesuffix(" distance"),)

    def __call__(self, table: Tensor, labels: Tensor, reference_labels: Tensor | None = None, **options: Any) -> Any:
        """Return index tensors, (T,) int64 each: anchors into the batch, the others into the columns.

        Args:
            table: (B, R), or (B, B) of a batch with itself.
            labels: (B,).
            reference_labels: labels of the columns, (R,), where they are not the batch.
            options: parameters, and dimension and generator of a random miner.
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
    """A miner with its parameters, on the embeddings of a batch; made by `create`.

    After a call `num_triplets`, `num_pos_pairs` and `num_neg_pairs` tell how many tuples it gave; `num_pairs` is the
    sum of both kinds of pairs. `distance` is the distance that it compares.
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
        """Number of pairs, positive and negative, of the last call."""
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
        """Return the `indices_tuple` of a loss, on the device of the embeddings; None for all tuples.

        Index lists have no fixed length, so on a GPU this waits for the device.

        Args:
            embeddings: (B, D).
            labels: (B,).
            ref_emb: (R, D), from which positives and negatives are taken; None for the batch itself.
            ref_labels: (R,).
            generator: what a random miner draws from; on the CPU it draws alike for every device.

        Raises:
            TypeError, ValueError: an argument does not fit; the message names it.
        """
        if (ref_emb is None) != (ref_labels is None):
            raise ValueError("ref_emb and ref_labels go together; give both or neither")
        points, labels = self._checked(embeddings, labels, "embeddings", "labels")
        columns = points
        if ref_emb is not None and ref_labels is not None:
            columns, ref_labels = self._checked(ref_emb, ref_labels, "ref_emb", "ref_labels")
            columns = columns.to(points.dtype)
        if self.miner.gives == "everything":
            return None
        table = table_of(points, columns, self.distance, similarities=self.miner.table == "cosine")
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


def table_of(rows: Tensor, columns: Tensor, distance: str, *, similarities: bool = False) -> Tensor:
    """Return the distances (B, R) between rows (B, D) and columns (R, D).

    Args:
        distance: "euclidean"; "unit", Euclidean between vectors of unit length; or "cosine", 1 - cosine.
        similarities: return the cosines themselves.
    """
    if distance != "euclidean":
        same, rows = columns is rows, F.normalize(rows, dim=1)
        columns = rows if same else F.normalize(columns, dim=1)
    if distance == "cosine":
        return rows @ columns.mT if similarities else 1 - rows @ columns.mT
    return torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist")


MINERS: Catalogue[Miner] = Catalogue("miner")


def names() -> list[str]:
    """Every miner, "all" (no mining) first.

    Example:
        >>> from dmlcore import mining
        >>> mining.names()[:3]
        ['all', 'semi_hard', 'semi_hard_window']
    """
    return list(MINERS)


def on_distances() -> list[str]:
    """The miners that need a distance table and nothing else, and give one negative for each pair they choose."""
    return [name for name, m in MINERS.items() if m.gives == "triplets" and m.table == "distance" and not m.many]


def describe(name: str) -> Miner:
    """Title, sentence, source, parameters of a miner; KeyError lists the known names."""
    return MINERS[name]


def create(name: str, *, distance: str | None = None, **parameters: Any) -> BatchMiner:
    """A miner with its parameters; what it returns is the `indices_tuple` of a loss.

    distance: "euclidean" (between the embeddings as given, the default), "unit" (Euclidean between embeddings of unit
    length) or "cosine" (1 - cosine). Miners that need unit vectors have only their own, `describe(name).distances`.

    Shapes: called with embeddings (B, D) and labels (B,), -> indices into the batch, (T,) int64 each.
    Raises: KeyError, TypeError or ValueError naming the culprit.
    Source: that of each miner, `describe(name).source`.

    Example, where each anchor gets its farthest positive and its nearest negative:
        >>> import torch
        >>> from dmlcore import losses, mining
        >>> embeddings, labels = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
        >>> triplets = mining.create("batch_hard")(embeddings, labels)
        >>> triplets
        (tensor([0, 1, 2, 3]), tensor([1, 0, 3, 2]), tensor([2, 2, 1, 1]))
        >>> losses.create("ranking", m=0.5)(embeddings, labels, triplets)
        tensor(0.5000)
    """
    info = describe(name)
    return BatchMiner(info, info.complete(parameters), distance)


def fits(name: str, loss: object) -> bool:
    """Whether a loss, or its entry in the catalogue, can use what a miner gives.

    Losses of triplets and of pairs take both kinds of tuples; proxies and classes take no tuples, so only "all" fits.
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
    """Enter a function of a table (B, R) and the masks (B, R) of positives and negatives under its own name.

    Its docstring is the sentence of the form. Parameters are keywords annotated with their Slider and have a default.
    """

    def enter(mine: MineT) -> MineT:
        name, sentence = mine.__name__.removesuffix("_"), cast(str, inspect.getdoc(mine))
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
    """No mining: the loss sees every tuple of the batch."""
    return None
