"""Feature maps of a frozen backbone: computed once for a data set and its weights, kept in the cache, memory-mapped.

A map is float16 with the channels last, as convolutions make them and poolings read them; a batch is a copy of rows.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dmlcore.data import Dataset
from dmlcore.data.dataset import DataError
from dmlcore.data.files.cache_folder import damaged, made_once, make_room, unkept
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.identities import identities
from dmlcore.models.networks import ImageNetwork
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files
from dmlcore.training import batches
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import seed_of
from dmlcore.typing import Halves, Ints

VERSION = 1  # of the layout: a store of another version is not read
CHUNK = 64  # images at once, and between two points from which a killed process goes on
SAY_EVERY = 5.0  # seconds between two lines about the progress
GIGABYTES = 20.0  # that all maps take together at most, or $DML_FEATURES_GB
WHAT = "the kept feature maps"

log = logging.getLogger(__name__)


class KeptFeatures:
    """What the backbone of `network` makes of the images of a data set: indices (n,) -> maps (n, C, h, w) float16.

    `batch` takes them from `data.views` flipped and cut views of the training images, where there are any. Both are
    found in the cache or computed when first asked for, and again once the backbone has other weights. Raises DataError
    where images cannot be read or the cache cannot hold them, TrainingError for maps beyond float16.
    """

    def __init__(self, network: ImageNetwork, spec: RunSpec, dataset: Dataset, device: torch.device) -> None:
        self._network, self._spec, self._dataset, self._device = network, spec, dataset, device
        self._weights = [*network.backbone.parameters(), *network.backbone.buffers()]
        self._opened: dict[int, tuple[int, Halves, Ints]] = {}  # by the number of views

    def __getitem__(self, indices: Ints, /) -> Halves:
        return self._read(0, indices, np.zeros(len(indices), np.int64))

    def batch(self, indices: Ints, seed: int, rows: slice = slice(None)) -> Halves:
        """Maps to train on, (n, C, h, w): of each image one of its views, drawn with `seed`; rows: only of these."""
        views = self._spec.data.views
        drawn = np.random.default_rng(seed).integers(0, max(1, views), len(indices))
        return self._read(views, indices[rows], drawn[rows])

    def open(self) -> None:
        """Compute what is not there yet."""
        for views in {0, self._spec.data.views}:
            self._maps(views)

    def _read(self, views: int, indices: Ints, drawn: Ints) -> Halves:
        maps, rows = self._maps(views)
        features: Halves = maps[drawn * len(rows) + np.searchsorted(rows, indices)]
        return features.transpose(0, 3, 1, 2)

    def _maps(self, views: int) -> tuple[Halves, Ints]:
        """Maps (max(1, views) * n, h, w, C), view after view, and the samples (n,) they are of, ascending."""
        stamp = sum(tensor._version for tensor in self._weights)  # torch counts what is written into each
        if views not in self._opened or self._opened[views][0] != stamp:
            rows = _rows(self._dataset, views)
            self._opened[views] = stamp, self._open(views, rows), rows
        return self._opened[views][1:]

    def _open(self, views: int, rows: Ints) -> Halves:
        folder = cache_folder() / "features"
        kind, name = self._names(views, rows)
        place = made_once(folder, kind, name, "shape.json", lambda staging: self._make(staging, views, rows), WHAT)
        try:
            shape = atomic_files.read_json(place / "shape.json")
            maps = np.asarray(np.memmap(place / "maps", np.float16, mode="r"))
        except OSError as error:
            raise unkept(folder, WHAT, error) from error
        except ValueError:
            shape, maps = None, np.empty(0, np.float16)
        if not _is_shape(shape, max(1, views) * len(rows)) or maps.size != np.prod(shape):
            raise damaged(place, WHAT)
        return maps.reshape(shape)

    def _names(self, views: int, rows: Ints) -> tuple[str, str]:
        """What names a store: a digest of what is computed, and one of which images they are."""
        d, spec = self._spec.data, self._spec.model
        cut = (d.crop, d.crop_area, d.crop_ratio) if views else ()
        facts = (VERSION, d.name, self._dataset.inputs.shape[1:], spec.name, self._device.type, views, *cut)
        kind = hashlib.sha256(repr(facts).encode())
        for tensor in self._weights:
            kind.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        now = hashlib.sha256(rows.tobytes() + identities(self._dataset, rows).tobytes())
        return kind.hexdigest()[:20], now.hexdigest()[:20]

    def _make(self, staging: Path, views: int, rows: Ints) -> None:
        """Append the maps chunk by chunk, going on after the last one that is whole."""
        total, shape = max(1, views) * len(rows), self._shape(rows)
        each = 2 * int(np.prod(shape))
        _refuse_excess(total * each, total)
        make_room(staging.parent, total * each, _most())
        last_report = time.monotonic()
        with open(staging / "maps", "ab") as file:
            whole = [0, *(stop for _, _, stop in _chunks(len(rows), views))]
            done = max(stop for stop in whole if stop * each <= os.path.getsize(staging / "maps"))
            file.truncate(done * each)
            for view, places, stop in _chunks(len(rows), views):
                if stop <= done:
                    continue
                file.write(self._of(rows[places], view if views else None).tobytes())
                file.flush()
                os.fsync(file.fileno())
                if time.monotonic() > last_report + SAY_EVERY or stop == total:
                    log.info("computed feature maps of %s of %s images", f"{stop:,}", f"{total:,}")
                    last_report = time.monotonic()
        atomic_files.replace_json(staging / "shape.json", [total, *shape])

    @torch.inference_mode()
    def _of(self, indices: Ints, view: int | None) -> Halves:
        """Maps (n, h, w, C) of images as they are, or of one of their views."""
        inputs: Tensor
        if view is None:
            inputs = batches.upload(self._dataset.inputs[indices], self._device)
        else:  # drawn by the images' own numbers, not by the seed of a run: runs of all seeds share them
            seed = seed_of(int(indices[0]), "view", view)
            inputs = batches.augmented(self._dataset, indices, self._spec.data, seed, self._device)
        with torch.autocast(self._device.type, enabled=False):  # whoever asks first may be computing in bfloat16
            maps = self._network.features(inputs).permute(0, 2, 3, 1)
        half = maps.half()
        if not bool(torch.isfinite(half).all()):
            raise TrainingError(
                f"model.freeze: feature maps of this backbone reach {float(maps.abs().max()):,.3g}, and what is kept "
                f"holds {torch.finfo(torch.float16).max:,.0f} at most; train with model.freeze=none"
            )
        features: Halves = half.cpu().contiguous().numpy()
        return features

    def _shape(self, rows: Ints) -> tuple[int, ...]:
        return self._of(rows[:1], None).shape[1:]


def _rows(dataset: Dataset, views: int) -> Ints:
    """The samples of which maps are kept: all in a split, and views of those that are not tested on."""
    tested = ("test", "gallery") if views else ()
    return np.unique(np.concatenate([rows for name, rows in dataset.splits.items() if name not in tested]))


def _chunks(count: int, views: int) -> Iterator[tuple[int, slice, int]]:
    """View, places among the samples, and how many maps there are after each."""
    for view in range(max(1, views)):
        for start in range(0, count, CHUNK):
            stop = min(count, start + CHUNK)
            yield view, slice(start, stop), view * count + stop


def _is_shape(shape: object, total: int) -> bool:
    is_list = isinstance(shape, list) and len(shape) == 4 and all(type(n) is int and n > 0 for n in shape)
    return is_list and isinstance(shape, list) and shape[0] == total


def _most() -> int:
    """Bytes that all maps take together at most."""
    try:
        return int(float(os.environ.get("DML_FEATURES_GB") or GIGABYTES) * 1e9)
    except (ValueError, OverflowError):
        raise DataError("DML_FEATURES_GB must be a number of gigabytes") from None


def _refuse_excess(needed: int, count: int) -> None:
    if needed > _most():
        raise DataError(
            f"feature maps of {count:,} images take {needed / 1e9:,.1f} GB, more than the {_most() / 1e9:,.1f} GB "
            "that are kept; choose smaller images or fewer views, set DML_FEATURES_GB, or set model.freeze=none"
        )
