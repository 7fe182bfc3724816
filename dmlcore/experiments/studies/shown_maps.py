"""Weight maps of the poolings in a study on collages for a few test samples, stored with its results."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from dmlcore.experiments.studies.expansion import StudyRun
from dmlcore.experiments.studies.run_batch import find
from dmlcore.inspection.local import weight_maps
from dmlcore.storage.runs import RunStore
from dmlcore.typing import Singles

MAPPED = 24  # number of samples


class PoolingMaps(BaseModel):
    """Pooling weight maps of the variants of a study, for one seed and a few test samples."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    seed: int
    indices: tuple[int, ...]
    names: tuple[str, ...]  # name of each sample's class
    content: tuple[str, ...]  # `data.identities` of each sample, in hexadecimal digits
    tile: tuple[int, ...]  # index of the tile that shows the class, in row-major order
    side: tuple[int, int]  # h, w
    weights: dict[str, str]  # variant -> base64 of little-endian float16 maps (samples, h, w), each with sum 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not len(self.indices) == len(self.names) == len(self.content) == len(self.tile):
            raise ValueError("maps: each sample needs a name, a content and a tile")
        for variant in self.weights:
            self.of(variant)
        return self

    def of(self, variant: str) -> Singles:
        """Return the weight maps of a variant, shape (samples, h, w)."""
        values = np.frombuffer(base64.b64decode(self.weights[variant], validate=True), "<f2").astype(np.float32)
        return values.reshape(len(self.indices), *self.side)


def maps_of(entries: Sequence[StudyRun], store: RunStore) -> PoolingMaps | None:
    """Return the weight maps of the first seed's runs for some random test samples; None if there are no maps."""
    from dmlcore.data.identities import identities
    from dmlcore.training.build import load_data

    weighed = [
        (entry, weight_maps.read(path))
        for entry, run in zip(entries, find(entries, store), strict=True)
        if run and (path := weight_maps.path_of(run))
    ]
    of_one = {entry.variant: maps for entry, maps in weighed if entry.seed == weighed[0][0].seed and maps.weights.size}
    if not of_one:
        return None
    spec, first = weighed[0][0].spec, next(iter(of_one.values()))
    rows = np.random.default_rng(0).permutation(len(first.indices))[:MAPPED]
    data = load_data(spec)
    return PoolingMaps(
        seed=spec.seed,
        indices=tuple(first.indices[rows].tolist()),
        names=tuple(data.class_names[label] for label in data.labels[first.indices[rows]]),
        content=tuple(sample.tobytes().hex() for sample in identities(data, first.indices[rows])),
        tile=tuple(first.tile[rows].tolist()),
        side=(first.weights.shape[1], first.weights.shape[2]),
        weights={
            variant: base64.b64encode(maps.weights[rows].astype("<f2").tobytes()).decode()
            for variant, maps in of_one.items()
            if maps.weights.shape == first.weights.shape
        },
    )
