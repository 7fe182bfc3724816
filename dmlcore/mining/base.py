"""What a miner is: a function of a table of a batch, with what a form needs of it, and the catalogue of all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.catalogue import Catalogue, Entry, declared

Triplets = tuple[Tensor, Tensor, Tensor]
Pairs = tuple[Tensor, Tensor, Tensor, Tensor]
Mined = Triplets | Pairs | None
Mine = Callable[..., Mined]
MineT = TypeVar("MineT", bound=Mine)
Gives = Literal["triplets", "pairs", "everything"]
Table = Literal["distance", "unit distance", "cosine"]

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Miner(Entry):
    """A miner with what a form shows of it; call it with its table (B, B) and labels (B,).

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

    def __call__(self, table: Tensor, labels: Tensor, **options: Any) -> Any:
        """Indices into the batch, (T,) int64 each; options: parameters, and dimension and generator of a random one."""
        if table.ndim != 2 or table.shape[0] != table.shape[1] or len(labels) != len(table):
            raise ValueError(
                f"distances must be (B, B) and labels (B,), got {tuple(table.shape)} and {tuple(labels.shape)}"
            )
        return self.mine(table.detach(), labels, **options)


@dataclass(frozen=True)
class BatchMiner:
    """A miner with its parameters, on the embeddings of a batch; made by `create`."""

    miner: Miner
    parameters: Mapping[str, float]

    def __call__(self, embeddings: Tensor, labels: Tensor, generator: torch.Generator | None = None) -> Mined:
        """The `indices_tuple` of a loss, on the device of the embeddings (B, D), without a graph; None for all.

        generator: what a random miner draws from; on the CPU it draws alike for every device. Index lists have no
        fixed length, so on a GPU this waits for the device.
        """
        if self.miner.gives == "everything":
            return None
        with torch.no_grad():
            points = embeddings.detach()
            points = points.float() if points.dtype in (torch.float16, torch.bfloat16) else points
            extra = {"dimension": embeddings.shape[1], "generator": generator} if self.miner.random else {}
            return cast(Mined, self.miner(table_of(points, self.miner.table), labels, **self.parameters, **extra))


def table_of(embeddings: Tensor, table: Table) -> Tensor:
    """The (B, B) table of embeddings (B, D) that a miner reads."""
    points = embeddings if table == "distance" else F.normalize(embeddings, dim=1)
    if table == "cosine":
        return points @ points.mT
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


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


def create(name: str, **parameters: Any) -> BatchMiner:
    """A miner with its parameters; what it returns is the `indices_tuple` of a loss.

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
    return BatchMiner(info, info.complete(parameters))


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
    """Enter a function of a table and labels under its own name; its docstring is the sentence of the form.

    Parameters are keywords annotated with their Slider and have a default.
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
def all_(table: Tensor, labels: Tensor) -> None:
    """No mining: the loss sees every tuple of the batch."""
    return None
