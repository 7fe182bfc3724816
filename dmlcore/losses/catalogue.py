"""All losses that are no triplet loss, in the order in which pages offer them."""

from __future__ import annotations

from dmlcore.losses import classification, pairs, proxies
from dmlcore.losses.batch import BatchFormula

FORMULAS: dict[str, BatchFormula] = {
    entry.name: entry for module in (pairs, proxies, classification) for entry in module.ENTRIES
}
