"""A CIFAR-100 of noise in the official layout, small enough to train on in a test; a tint distinguishes the classes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from dmlcore.data.synthetic.cifar_collage import BACKGROUNDS

SUPER_CLASSES = sorted([*BACKGROUNDS, *(f"super class {number}" for number in range(16))])


def cifar100(root: Path, train: int = 4, test: int = 2) -> Path:
    """Write root/cifar-100-python with a given number of images per class in each file; return root."""
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    tints = random.integers(40, 200, (20, 3, 1))
    for name, count in (("train", train), ("test", test)):
        fine = np.tile(np.arange(100), count)
        pixels = tints[fine % 20] + random.integers(0, 50, (len(fine), 3, 1024))
        content = {
            b"data": pixels.astype(np.uint8).reshape(-1, 3072),
            b"fine_labels": fine.tolist(),
            b"coarse_labels": (fine % 20).tolist(),
        }
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    meta = {
        b"fine_label_names": [b"fine %d" % number for number in range(100)],
        b"coarse_label_names": [name.encode() for name in SUPER_CLASSES],
    }
    (folder / "meta").write_bytes(pickle.dumps(meta, protocol=2))
    return root
