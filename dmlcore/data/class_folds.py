"""Class folds: which of the training classes validate, as cross-validation over classes wants it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.typing import Ints


@dataclass(frozen=True)
class Folds:
    """`number` of `count` folds of the training classes validates; the others train.

    order "contiguous": ranges of class numbers, counted from the end, so that fold 1 of 4 is the last quarter (Gurbuz
    2022, Sec. 3.3). "random": the classes shuffled by `seed` first (Psomas 2020, Sec. 4.2), the same for every fold.
    Sizes differ by one class at most.
    """

    count: int
    number: int = 1
    order: Literal["contiguous", "random"] = "contiguous"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise DataError for a fold that there is not."""
        if self.count < 2 or not 1 <= self.number <= self.count:
            raise DataError(f"fold must be in 1..folds with folds >= 2, got fold {self.number} of {self.count}")

    def validation_classes(self, classes: Ints) -> Ints:
        """The classes (C,) that validate, ascending; raises DataError where a fold would have fewer than two."""
        if len(classes) < 2 * self.count:
            raise DataError(
                f"{self.count} folds need {2 * self.count} training classes, two each, but there are {len(classes)}; "
                "use fewer folds"
            )
        order = classes[::-1]
        if self.order == "random":
            order = np.random.default_rng(self.seed).permutation(classes)
        return np.sort(np.array_split(order, self.count)[self.number - 1])
