"""Cifar-Collage made from a full-size CIFAR-100: time and peak memory to build it, and time to read a batch.

The script writes 60,000 random images in the official layout (Python 2 pickles) into a temporary folder. One new
process loads the 48,000 collages with `dmlcore.data.load`, which composes a collage only when it is read, and reads
each of them once. Another process copies all collages into one array as a baseline, and reads batches from the array
and from the data set.
"""

from __future__ import annotations

import io
import pickle
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness import command_line, in_process, machine, memory, verdict
from dmlcore.data.synthetic.cifar_collage import BACKGROUNDS

GOAL_SECONDS, GOAL_MB, GOAL_BATCH_MS = 20, 700, 1.0
BATCH = 64
SUPER_NAMES = [f"super_class_{number:02d}" for number in range(16)] + list(BACKGROUNDS)


class _Python2Pickler(pickle._Pickler):
    """Pickler that writes bytes as Python 2 wrote its strings, for files in the official format."""

    def save_bytes(self, content: bytes) -> None:
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)
        self.memoize(content)

    dispatch: ClassVar = pickle._Pickler.dispatch | {bytes: save_bytes}


def write_cifar100(folder: Path, *, train: int = 500, test: int = 100) -> Path:
    """Write `train` and `test` random images for each of the 100 classes, in the official layout; return the folder."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for split, count in (("train", train), ("test", test)):
        fine = random.permutation(np.repeat(np.arange(100), count))
        content = {
            b"filenames": [b"image_%06d.png" % row for row in range(len(fine))],
            b"fine_labels": fine.tolist(),
            b"coarse_labels": (fine % 20).tolist(),
            b"data": random.integers(0, 256, (len(fine), 3072), dtype=np.uint8),
        }
        _dump(folder / split, content)
    names = {
        b"fine_label_names": [b"class %02d" % number for number in range(100)],
        b"coarse_label_names": [name.encode() for name in SUPER_NAMES],
    }
    _dump(folder / "meta", names)
    return folder


def _dump(path: Path, content: Any) -> None:
    file = io.BytesIO()
    _Python2Pickler(file, protocol=2).dump(content)
    path.write_bytes(file.getbuffer())


def build(root: str) -> dict[str, float]:
    """Load the collages, then read each of them once in batches; return seconds and memory in MB."""
    import dmlcore.data

    empty = memory() / 1e6
    began = time.perf_counter()
    dataset = dmlcore.data.load("collage", root=root)
    built = time.perf_counter() - began
    measured = {"collages": len(dataset.inputs), "empty": empty, "built": built, "after": memory() / 1e6}
    began = time.perf_counter()
    for start in range(0, len(dataset.inputs), BATCH):
        dataset.inputs[np.arange(start, min(start + BATCH, len(dataset.inputs)))]
    return measured | {"read": time.perf_counter() - began, "peak": memory("VmHWM") / 1e6}


def rival(root: str, repeats: int) -> dict[str, float]:
    """Copy all collages into one array, and time random batches read from the array and the data set in alternation.

    Returns median and 99th percentile of both in milliseconds, and the seconds and peak memory (MB) of the copy.
    """
    import dmlcore.data

    began = time.perf_counter()
    ours = dmlcore.data.load("collage", root=root).inputs
    stored = ours[:]
    seconds = time.perf_counter() - began
    random = np.random.default_rng(1)
    times: dict[str, list[float]] = {"ours": [], "stored": []}
    for _ in range(repeats):
        rows = random.choice(len(stored), BATCH, replace=False)
        for name, inputs in (("ours", ours), ("stored", stored)):
            began = time.perf_counter()
            batch = inputs[rows]
            times[name].append(1000 * (time.perf_counter() - began))
            assert batch.shape == (BATCH, 3, 64, 64)
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    slowest = {f"{name} p99": float(np.quantile(measured, 0.99)) for name, measured in times.items()}
    return medians | slowest | {"built": seconds, "peak": memory("VmHWM") / 1e6}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=500, help="batches read from each array")
    parser.add_argument("--root", help="folder of a real CIFAR-100 instead of random images")
    arguments = parser.parse_args()
    print(f"{machine('numpy')}; batches of {BATCH}")
    with tempfile.TemporaryDirectory() as folder:
        root = arguments.root
        if root is None:
            root = str(in_process(write_cifar100, Path(folder) / "cifar-100-python"))
        ours, other = in_process(build, root), in_process(rival, root, arguments.repeats)
    peak, built, batch = ours["peak"], ours["built"] + ours["read"], other["ours"]
    print(
        f"{ours['collages']:,.0f} collages: layouts drawn in {ours['built']:.2f} s, each composed once in "
        f"{ours['read']:.2f} s; goal under {GOAL_SECONDS} s: {verdict(built < GOAL_SECONDS)}"
    )
    print(
        f"resident: {ours['empty']:.0f} MB before, {ours['after']:.0f} MB after, peak {peak:.0f} MB; "
        f"goal under {GOAL_MB} MB: {verdict(peak < GOAL_MB)}"
    )
    print(
        f"reading {BATCH} random collages: median {batch:.3f} ms (p99 {other['ours p99']:.3f}); "
        f"goal under {GOAL_BATCH_MS:g} ms: {verdict(batch < GOAL_BATCH_MS)}"
    )
    print(
        f"rival, all stored in one array: built in {other['built']:.2f} s, peak {other['peak']:.0f} MB, "
        f"batch median {other['stored']:.3f} ms (p99 {other['stored p99']:.3f}); ours / rival "
        f"{batch / other['stored']:.2f} in time, {peak / other['peak']:.2f} in memory"
    )


if __name__ == "__main__":
    main()
