"""Images per second of the input pipeline, compared with those that a training step of ResNet-18 consumes, at 64 px.

The pipeline is that of a training run: images from a decoded store, random resized crops, flips, batches of 32. The
training step is reduced to a forward pass on a ready batch, the backward pass of a sum, and Adam. Both are timed alone
and then at the same time, in alternation, so that other load on the machine affects all measurements equally. Decoding
a folder of generated photographs is timed first.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import command_line

SIZE = (500, 375)  # width and height in pixels of a typical photograph in CUB-200-2011
ORIGINALS = 40


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per measurement, in each of five rounds")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DML_CACHE"] = str(Path(folder) / "cache")
        inputs = decoded(generate(Path(folder) / "tree", arguments.images), arguments.side)
        deliver, consume = pipeline(inputs, arguments.batch), step(arguments.side, arguments.batch)
        deliver()
        consume()
        rounds = [measure(deliver, consume, arguments.seconds) for _ in range(5)]
    alone, needed, delivered, training = (
        arguments.batch * statistics.median(rates) for rates in zip(*rounds, strict=True)
    )
    ratio = statistics.median(one[0] / one[1] for one in rounds)
    together = statistics.median(one[2] / one[3] for one in rounds)
    what = f"ResNet-18, {arguments.side} px, batch {arguments.batch}, {arguments.threads} threads"
    print(
        f"alone: the pipeline delivers {alone:,.0f} images/s, the step ({what}) consumes {needed:,.0f}: {ratio:.1f} x"
    )
    print(
        f"simultaneously: {delivered:,.0f} delivered, {training:,.0f} consumed: {together:.1f} x (goal: at least 1.1)"
    )


def generate(tree: Path, images: int) -> list[Path]:
    """Write JPEGs of photograph size; only ORIGINALS of them differ, because equal images take as long to decode."""
    import numpy as np
    from PIL import Image

    tree.mkdir()
    random = np.random.default_rng(0)
    paths = [tree / f"{number:05d}.jpg" for number in range(images)]
    for path in paths[:ORIGINALS]:
        coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        fine = np.asarray(coarse.resize(SIZE, Image.Resampling.BICUBIC), np.int16) + random.normal(
            0, 8, (*SIZE[::-1], 3)
        )
        Image.fromarray(fine.clip(0, 255).astype(np.uint8)).save(path, quality=90)
    for number, path in enumerate(paths[ORIGINALS:]):
        path.write_bytes(paths[number % ORIGINALS].read_bytes())
    return paths


def decoded(paths: list[Path], side: int):
    """Build the store of decoded images, open it again and print both times; return the opened store."""
    from dmlcore.data.files.image_store import StoredImages

    began = time.perf_counter()
    StoredImages(paths, side)[0]
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    inputs = StoredImages(paths, side)
    inputs[0]
    opened = time.perf_counter() - began
    size = f"{SIZE[0]} x {SIZE[1]}"
    print(
        f"store: {len(paths):,} JPEGs of {size} decoded once, {len(paths) / seconds:,.0f}/s; opened in {opened:.2f} s"
    )
    return inputs


def pipeline(inputs, batch: int) -> Callable[[], object]:
    """Return a function that loads the next random training batch on each call."""
    from types import SimpleNamespace

    import numpy as np

    from dmlcore.spec.sections import DataSpec
    from dmlcore.training import batches

    data, spec = SimpleNamespace(inputs=inputs), DataSpec(crop="resized")
    random = np.random.default_rng(0)

    def deliver() -> object:
        indices = random.integers(len(inputs), size=batch)
        return batches.load_augmented(data, indices, spec, int(random.integers(2**62)), "cpu")  # type: ignore[arg-type]

    return deliver


def step(side: int, batch: int) -> Callable[[], object]:
    """Return a function that performs one bare training step on each call."""
    import torch

    from dmlcore.models import networks
    from dmlcore.spec import ModelSpec

    model = networks.build(ModelSpec(name="resnet18"), (3, side, side), seed=0)
    model = torch.nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    optimiser = torch.optim.Adam(model.parameters(), foreach=True)
    ready = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8).contiguous(
        memory_format=torch.channels_last
    )

    def consume() -> object:
        loss = model(ready).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return consume


def measure(deliver: Callable[[], object], consume: Callable[[], object], seconds: float) -> tuple[float, ...]:
    """Return the calls per second of each function: both alone, then both at the same time in two threads."""
    alone = [rate(work, seconds) for work in (deliver, consume)]
    spent = [0.0, 0.0]

    def note(place: int, work: Callable[[], object]) -> None:
        spent[place] = rate(work, seconds)

    threads = [threading.Thread(target=note, args=(place, work)) for place, work in enumerate((deliver, consume))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (*alone, *spent)


def rate(work: Callable[[], object], seconds: float) -> float:
    """Call `work` repeatedly for about `seconds`; return the calls per second."""
    calls, began = 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        work()
        calls += 1
    return calls / passed


if __name__ == "__main__":
    main()
