"""Images per second and memory of a data set read from shards, compared with the same images read from files.

A tree of small JPEGs in class folders is written and packed into shards. Three variants alternate, each in its own
process, which opens and splits the data set, reads balanced batches as training does, and reads the test split in
chunks as evaluation does. Two of them, files and shards, decode each image when it is read (`DML_DECODED_GB=0`); the
third reads shards and keeps decoded copies. Seconds are processor seconds of all threads together, so that other load
on the machine has little effect. The medians are printed: seconds to open the set, images per second and core, peak
memory (VmHWM) minus the memory that the process held before, and anonymous memory at the end (RssAnon, which includes
interpreter and torch).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import command_line, in_process, machine, memory

RIVALS = {
    "files": ("tree", "0"),
    "shards": ("shards", "0"),
    "shards, decoded once": ("shards", "1000"),
}
DML = (sys.executable, "-m", "dmlcore")
CLASSES, SAMPLES = 8, 4  # of a batch
CHUNK = 256


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--per-class", type=int, default=50)
    parser.add_argument("--side", type=int, default=64, help="pixels per side of the files and of the inputs")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument(
        "--evaluated", type=int, default=20_000, help="images of the test split that are read in chunks"
    )
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        write(folder / "tree", arguments.images, arguments.per_class, arguments.side)
        print(f"{machine('numpy', 'pillow')}: {arguments.images:,} files in {time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        subprocess.run(
            [*DML, "data", "pack", "folder", "--root", str(folder / "tree"), "--into", str(folder / "shards")],
            check=True,
        )
        print(f"packed in {time.perf_counter() - began:.0f} s")
        results: dict[str, list[dict[str, float]]] = {name: [] for name in RIVALS}
        for number in range(arguments.rounds):
            for rival in list(RIVALS)[:: -1 if number % 2 else 1]:
                place, most = RIVALS[rival]
                sizes = arguments.side, arguments.batches, arguments.evaluated
                results[rival].append(in_process(measure, folder / place, most, *sizes))
    show(results)


def write(tree: Path, images: int, each: int, side: int) -> None:
    """Write JPEGs into class folders; only 100 of them differ, because equal images take as long to decode."""
    import io

    import numpy as np
    from PIL import Image

    random, originals = np.random.default_rng(0), []
    for _ in range(100):
        file = io.BytesIO()
        coarse = Image.fromarray(random.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8))
        coarse.resize((side * 256 // 227 + 8, side * 256 // 227), Image.Resampling.BICUBIC).save(
            file, "JPEG", quality=90
        )
        originals.append(file.getvalue())
    for number in range(images):
        path = tree / f"{number // each:05d}" / f"{number:07d}.jpg"
        if number % each == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(originals[number % 100])


def measure(place: Path, decoded: str, side: int, batches: int, evaluated: int) -> dict[str, float]:
    """Measure one variant, whose data set is in the folder `place`; `decoded` limits its decoded copies in GB."""
    # a separate cache, because decoded copies from another variant would be reused
    os.environ |= {"DML_CACHE": tempfile.mkdtemp(dir=place.parent), "DML_DECODED_GB": decoded}
    import numpy as np

    from dmlcore import data
    from dmlcore.training.samplers import BalancedSampler

    before, began = memory("VmHWM"), time.process_time()
    made = data.load("folder", root=place, image_size=side, validation="none")
    opened = time.process_time() - began
    train, test = made.splits["train"], made.splits["test"][:evaluated]
    sampler = BalancedSampler(made.labels[train], CLASSES, SAMPLES, seed=0)
    made.inputs[:1]  # decodes all images, if decoded copies are kept
    once = time.process_time() - began - opened

    def drawn() -> Iterator[np.ndarray]:
        for step in range(1, batches + 1):
            yield train[sampler.batch(step, None)]

    spent = [rate(made.inputs, drawn()), rate(made.inputs, np.split(test, range(CHUNK, len(test), CHUNK)))]
    peak, anonymous = memory("VmHWM") - before, memory("RssAnon")
    figures = {"open s": opened, "decoding once s": once, "batches images/s": spent[0], "chunks images/s": spent[1]}
    return figures | {"peak MB": peak / 1e6, "anonymous MB": anonymous / 1e6}


def rate(inputs, chunks) -> float:
    """Read all `chunks` of indices from `inputs`; return the images read per second of processor time."""
    count, began = 0, time.process_time()
    for rows in chunks:
        inputs[rows].sum()
        count += len(rows)
    return count / (time.process_time() - began)


def show(results: dict[str, list[dict[str, float]]]) -> None:
    """Print a table of the medians, and the ratios of shards to files."""
    print(f"{'':28}" + "".join(f"{rival:>24}" for rival in results))
    for figure in results["files"][0]:
        medians = [statistics.median(one[figure] for one in rounds) for rounds in results.values()]
        print(f"{figure:28}" + "".join(f"{median:>24,.1f}" for median in medians))
    for figure in ("open s", "batches images/s", "chunks images/s", "peak MB"):
        pairs = zip(results["shards"], results["files"], strict=True)
        ratio = statistics.median(shards[figure] / files[figure] for shards, files in pairs)
        print(f"{figure}: shards / files = {ratio:.2f}")


if __name__ == "__main__":
    main()
