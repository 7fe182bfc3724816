"""Feature maps of a frozen backbone, computed once per data set and weights, cached on disk and memory-mapped.

If all but the last stage of the backbone are frozen, these are the maps before that stage. Maps are stored as float16
with channels last, the layout that convolutions write and poolings read. Reading a batch copies only its maps.
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
from dmlcore.data.files.cache_folder import cache_error, create_once, damaged_error, make_room
from dmlcore.data.files.locate import cache_folder
from dmlcore.data.identities import identities
from dmlcore.models.networks import ImageNetwork
from dmlcore.spec import RunSpec, own_network
from dmlcore.storage import atomic_files
from dmlcore.training import batches
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import seed_of
from dmlcore.typing import Halves, Ints

VERSION = 1  # version of the file layout; files of other versions are not read
CHUNK = 64  # images per forward pass and per chunk; an interrupted computation continues with the next chunk
SAY_EVERY = 5.0  # seconds between two log messages about the progress
GIGABYTES = 20.0  # default limit on the total size of all stored maps; $DML_FEATURES_GB overrides it
WHAT = "the cached feature maps"

log = logging.getLogger(__name__)


class StoredFeatures:
    """Feature maps of a data set computed by a frozen backbone; indexing with (n,) gives maps (n, C, h, w) in float16.

    If `data.views` is positive, `batch` draws from that many flipped and cropped views of each training image. Maps are
    read from the cache or computed at first use, and recomputed if the weights of the backbone change.

    Raises:
        DataError: If images cannot be read, or the cache cannot hold the maps.
        TrainingError: If a value exceeds the range of float16.
    """

    def __init__(self, network: ImageNetwork, spec: RunSpec, dataset: Dataset, device: torch.device) -> None:
        self._network, self._spec, self._dataset, self._device = network, spec, dataset, device
        self._weights = network.frozen_tensors()
        # number of views -> (version of the weights, maps, sample indices)
        self._opened: dict[int, tuple[int, Halves, Ints]] = {}

    def __getitem__(self, indices: Ints, /) -> Halves:
        return self._read(0, indices, np.zeros(len(indices), np.int64))

    def batch(self, indices: Ints, seed: int, rows: slice = slice(None)) -> Halves:
        """Return training maps (n, C, h, w), one random view of each image in `indices[rows]`, drawn with `seed`."""
        views = self._spec.data.views
        drawn = np.random.default_rng(seed).integers(0, max(1, views), len(indices))
        return self._read(views, indices[rows], drawn[rows])

    def open(self) -> None:
        """Compute all maps that are not in the cache."""
        for views in {0, self._spec.data.views}:
            self._maps(views)

    def _read(self, views: int, indices: Ints, drawn: Ints) -> Halves:
        maps, rows = self._maps(views)
        features: Halves = maps[drawn * len(rows) + np.searchsorted(rows, indices)]
        return features.transpose(0, 3, 1, 2)

    def _maps(self, views: int) -> tuple[Halves, Ints]:
        """Return the maps (max(1, views) * n, h, w, C), grouped by view, and the ascending sample indices (n,)."""
        # torch increments the version of a tensor at each in-place write
        stamp = sum(tensor._version for tensor in self._weights)
        if views not in self._opened or self._opened[views][0] != stamp:
            rows = _rows(self._dataset, views)
            self._opened[views] = stamp, self._open(views, rows), rows
        return self._opened[views][1:]

    def _open(self, views: int, rows: Ints) -> Halves:
        folder = cache_folder() / "features"
        kind, name = self._names(views, rows)
        place = create_once(folder, kind, name, "shape.json", lambda staging: self._make(staging, views, rows), WHAT)
        try:
            shape = atomic_files.read_json(place / "shape.json")
            maps = np.asarray(np.memmap(place / "maps", np.float16, mode="r"))
        except OSError as error:
            raise cache_error(folder, WHAT, error) from error
        except ValueError:
            shape, maps = None, np.empty(0, np.float16)
        if not _is_shape(shape, max(1, views) * len(rows)) or maps.size != np.prod(shape):
            raise damaged_error(place, WHAT)
        return maps.reshape(shape)

    def _names(self, views: int, rows: Ints) -> tuple[str, str]:
        """Return the two parts of a cache entry's name: a digest of the computation and a digest of the images."""
        d, spec = self._spec.data, self._spec.model
        cut = (d.crop, d.crop_area, d.crop_ratio) if views else ()
        depths = () if spec.gather == "none" else tuple(self._network.backbone.depths.items())
        facts = (VERSION, d.name, self._dataset.inputs.shape[1:], spec.name, self._device.type, views, *cut, *depths)
        kind = hashlib.sha256(repr(facts).encode())
        for tensor in self._weights:
            kind.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        if own_network.is_own(spec.name):  # features of one image detect that its code has changed
            kind.update(self._of(rows[:1], None).tobytes())
        now = hashlib.sha256(rows.tobytes() + identities(self._dataset, rows).tobytes())
        return kind.hexdigest()[:20], now.hexdigest()[:20]

    def _make(self, staging: Path, views: int, rows: Ints) -> None:
        """Compute the maps and append them to a file in chunks, continuing after the last complete chunk."""
        total, shape = max(1, views) * len(rows), self._shape(rows)
        each = 2 * int(np.prod(shape))
        _refuse_excess(total * each, total)
        make_room(staging.parent, total * each, _max_bytes())
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
        """Compute maps (n, h, w, C) of the original images, or of the augmented view number `view`."""
        inputs: Tensor
        if view is None:
            inputs = batches.upload(self._dataset.inputs[indices], self._device)
        else:  # seeded by image indices, not by the run, so that runs of all seeds share the views
            seed = seed_of(int(indices[0]), "view", view)
            inputs = batches.load_augmented(self._dataset, indices, self._spec.data, seed, self._device)
        with torch.autocast(self._device.type, enabled=False):  # the caller may be computing in bfloat16
            maps = self._network.frozen_maps(inputs).permute(0, 2, 3, 1)
        half = maps.half()
        if not bool(torch.isfinite(half).all()):
            raise TrainingError(
                f"model.freeze: feature maps of this backbone reach {float(maps.abs().max()):,.3g}, but cached "
                "values are "
                f"limited to {torch.finfo(torch.float16).max:,.0f}; train with model.freeze=none"
            )
        features: Halves = half.cpu().contiguous().numpy()
        return features

    def _shape(self, rows: Ints) -> tuple[int, ...]:
        return self._of(rows[:1], None).shape[1:]


def _rows(dataset: Dataset, views: int) -> Ints:
    """Return the ascending indices of the samples whose maps are stored.

    These are the samples of all splits, or, if maps of augmented views are stored, of all splits except the test data.
    """
    tested = ("test", "gallery") if views else ()
    return np.unique(np.concatenate([rows for name, rows in dataset.splits.items() if name not in tested]))


def _chunks(count: int, views: int) -> Iterator[tuple[int, slice, int]]:
    """Yield the chunks to compute: the view, the slice of the samples, and the number of maps up to the chunk's end."""
    for view in range(max(1, views)):
        for start in range(0, count, CHUNK):
            stop = min(count, start + CHUNK)
            yield view, slice(start, stop), view * count + stop


def _is_shape(shape: object, total: int) -> bool:
    is_list = isinstance(shape, list) and len(shape) == 4 and all(type(n) is int and n > 0 for n in shape)
    return is_list and isinstance(shape, list) and shape[0] == total


def _max_bytes() -> int:
    """Return the maximum size of all stored maps together, in bytes."""
    try:
        return int(float(os.environ.get("DML_FEATURES_GB") or GIGABYTES) * 1e9)
    except (ValueError, OverflowError):
        raise DataError("DML_FEATURES_GB must be a number of gigabytes") from None


def _refuse_excess(needed: int, count: int) -> None:
    if needed > _max_bytes():
        raise DataError(
            f"feature maps of {count:,} images take {needed / 1e9:,.1f} GB, more than the {_max_bytes() / 1e9:,.1f} GB "
            "that are kept; choose smaller images or fewer views, set DML_FEATURES_GB, or set model.freeze=none"
        )
