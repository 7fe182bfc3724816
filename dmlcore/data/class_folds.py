"""Folds of the training classes for cross-validation over classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dmlcore.data.dataset import DataError
from dmlcore.typing import Ints


@dataclass(frozen=True)
class Folds:
    """Division of the training classes into folds, one of which is held out for validation.

    Sizes of the folds differ by at most one class.

    Attributes:
        count: Number of folds.
        number: Number of the held-out fold, 1 to `count`.
        order: "contiguous" takes ranges of class numbers, counted from the end, so that fold 1 of 4 is the last quarter
            (Gurbuz 2022, Sec. 3.3). "random" first shuffles the classes with `seed` (Psomas 2020, Sec. 4.2); the order
            is the same for every `number`.
        seed: Seed of the shuffle.
    """

    count: int
    number: int = 1
    order: Literal["contiguous", "random"] = "contiguous"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise DataError unless count >= 2 and 1 <= number <= count."""
        if self.count < 2 or not 1 <= self.number <= self.count:
            raise DataError(f"fold must be in 1..folds with folds >= 2, got fold {self.number} of {self.count}")

    def validation_classes(self, classes: Ints) -> Ints:
        """Return the classes in the held-out fold, ascending; raise DataError if a fold would have fewer than two."""
        if len(classes) < 2 * self.count:
            raise DataError(
                f"{self.count} folds need {2 * self.count} training classes, two per fold, but there are "
                f"{len(classes)}; "
                "use fewer folds"
            )
        order = classes[::-1]
        if self.order == "random":
            order = np.random.default_rng(self.seed).permutation(classes)
        return np.sort(np.array_split(order, self.count)[self.number - 1])
