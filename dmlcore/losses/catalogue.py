"""All losses that are no triplet loss, in the order in which pages offer them."""

from __future__ import annotations

from dmlcore.losses import (
    classification,
    ensembles,
    facility_location,
    hinges,
    pairs,
    proxies,
    proxy_pairs,
    structured,
    tuplets,
)
from dmlcore.losses.engine.batch_loss import BatchFormula

MODULES = (pairs, hinges, structured, tuplets, facility_location, proxies, proxy_pairs, classification, ensembles)

FORMULAS: dict[str, BatchFormula] = {entry.name: entry for module in MODULES for entry in module.ENTRIES}
