"""Generator of docs/projections.gif, which shows the embedding plane before and after each projection of the proxies.

Run `python -m docs.make_projections [--to FILE]`. The animation shows chance-constrained programming in two dimensions,
after Gurbuz 2022, Figs. 3.2 and 3.3. It uses ten digit classes, four proxies per class from a pool of 16 samples, and
the loss C2 with the margins 0 and 0.5. Gurbuz 2022 does not state the loss, optimiser or classes.
"""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from dmlcore.figures.recordings import draw_projection, save_figure
from dmlcore.geometry import average_covering_radius
from dmlcore.spec import RunSpec
from dmlcore.training import build, evaluation, loop, methods
from dmlcore.training.batches import embed
from dmlcore.training.coverings import in_ball
from dmlcore.training.methods.projections import Projections, proxies_of
from dmlcore.typing import Floats, Ints

FILE = Path(__file__).resolve().parent / "projections.gif"
SPEC = RunSpec().with_overrides(
    [
        *("data.name=digits", "data.split=samples", "data.validation=samples", "device=cpu"),
        *("model.embedding_dim=2", "model.normalize=false", "model.lipschitz=true"),
        *("loss.name=contrastive_proxy", "loss.m_pos=0", "loss.m_neg=0.5", "loss.per_class=4", "loss.batch_pairs=0.1"),
        *("projection.pool=16", "batch.classes=10", "batch.samples=4", "optimiser.learning_rate=3e-3"),
        *("schedule.steps=1200", "schedule.validate_every=25"),
    ]
)
SMALL = 0.05
SHOWN, REST = 120, 900  # milliseconds per frame; REST applies to the frames just before and after the proxies move


@dataclass(frozen=True)
class Frame:
    """Content of one frame: validation embeddings (n, 2), labels (n,), proxies (classes, P, 2) and scores."""

    step: int
    projection: int
    points: Floats
    labels: Ints
    proxies: Floats
    map_at_r: float
    radius: float
    title: str = ""


def frames(spec: RunSpec = SPEC) -> list[Frame]:
    """Train a network; return one frame per validation, and two frames at the end of each projection.

    The two frames show the embedding plane before and after the proxies move.
    """
    data = build.load_data(spec)
    state = build.build(spec, data, build.prepare_device("cpu", 1))
    # reduce the initial weights of the embedding layer, so that all classes start inside the disc
    with torch.no_grad():
        for parameter in list(state.model.parameters())[-2:]:
            parameter.mul_(SMALL)
    projections = methods.get(state, Projections)
    projections.begin(state)
    indices = data.splits["validation"]
    labels = data.labels[indices]

    def seen(rows: list[dict[str, float]], title: str = "") -> Frame:
        points = in_ball(embed(state.model, data, indices, state.device).astype(np.float64))
        proxies = proxies_of(state).detach().double()
        flat = in_ball(proxies.reshape(-1, 2).numpy()).reshape(proxies.shape)
        radius = average_covering_radius(points, labels)
        number = projections.projection
        return Frame(state.progress.step, number, points, labels, flat, rows[-1]["map_at_r"], radius, title)

    rows = evaluation.validate(state)
    shown = [seen(rows)]
    state.model.train()
    for step in range(1, spec.schedule.steps + 1):
        torch.manual_seed(step)
        loop.step(state, step)
        state.progress.step = step
        if step % spec.schedule.validate_every == 0:
            rows = evaluation.validate(state)
            frame = seen(rows)
            if projections.after_step(state, rows):
                shown.append(Frame(**{**vars(frame), "title": f"projection {frame.projection} ends"}))
                shown.append(seen(rows, "new proxies"))
            else:
                shown.append(frame)
    return shown


def drawn(frame: Frame, dark: bool = False) -> Image.Image:
    """Draw one frame on a light or dark background."""
    figure = draw_projection(
        frame.points,
        frame.labels,
        frame.proxies,
        words=f"Projection {frame.projection}, step {frame.step}",
        event=frame.title,
        measured=f"MAP@R {100 * frame.map_at_r:.0f} %   covering radius {frame.radius:.3f}   ◆ proxies",
        dark=dark,
    )
    return Image.open(io.BytesIO(save_figure(figure, format="png", dpi=75))).convert("RGB")


def main(arguments: list[str] | None = None) -> int:
    """Train, draw all frames, and write the animation; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=FILE, help="file to write")
    given = parser.parse_args(arguments)
    shown = frames()
    for frame in shown:
        print(f"{frame.step:5d}  {frame.projection}  {frame.map_at_r:.3f}  {frame.radius:.3f}  {frame.title}")
    full = [drawn(frame) for frame in shown]
    palette = next(image for image, frame in zip(full, shown, strict=True) if frame.title).quantize(96)
    # a common palette prevents flicker
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in full]
    durations = [REST if frame.title else SHOWN for frame in shown]
    images[0].save(given.to, save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
