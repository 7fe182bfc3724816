"""Draws the gallery of the presets: python -m docs.make_presets writes docs/presets.md and docs/presets/*.png."""

from __future__ import annotations

import io
from itertools import groupby
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

from dmlcore import losses
from dmlcore.figures.fields import draw_field, save_figure
from dmlcore.loss_analysis.thesis_figures import PRESETS, FigurePanel
from pages.shared.plane.state import Scene

HERE = Path(__file__).resolve().parent
APP = "http://127.0.0.1:8501"
DPI = 120  # 360 pixels across
COLUMNS = 4


def figure_name(preset: FigurePanel) -> str:
    """File name of a preset's figure, for example 3.4-2.png."""
    panels = [p for p in PRESETS if p.figure == preset.figure]
    return f"{preset.figure}-{panels.index(preset) + 1}.png"


def render(preset: FigurePanel) -> bytes:
    """The preset as a small PNG."""
    figure = draw_field(
        losses.create(preset.loss, **preset.hyper),
        preset.anchor,
        preset.positive,
        preset.negative,
        probe=preset.probe,
        view=preset.view,
        discs=preset.discs,
        decomposed=preset.edges,
        mining=preset.mining,
        title=f"Fig. {preset.figure}: {preset.panel}",
        size=3.0,
        plain=True,
    )
    drawn = Image.open(io.BytesIO(save_figure(figure, format="png", dpi=DPI))).convert("RGB")
    file = io.BytesIO()
    # 256 colours: a fifth of the bytes, no visible loss.
    drawn.quantize(256, Image.Quantize.MAXCOVERAGE, 3, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()


def link(preset: FigurePanel) -> str:
    """Address of the preset in the app as `make run` serves it."""
    points = {k: list(getattr(preset, k)) for k in ("anchor", "positive", "negative", "view")}
    switches = {k: getattr(preset, k) for k in ("probe", "discs", "edges", "mining")}
    scene = Scene.of({"loss": preset.loss, "hyper": preset.hyper, **points, **switches})
    return f"{APP}/fields?{urlencode(scene.to_query(), safe=',')}"


def gallery() -> str:
    """docs/presets.md: every preset with its figure, caption and link."""
    text = [
        "# The figures of the thesis as presets",
        "",
        "Every panel of the figures of Karaman 2021 (METU MSc thesis), as the Fields page opens it. Colour is the",
        "clamped loss the scanning point would have there; hatched is where it feels no force; green are the forces on",
        "the three points. A click on a figure opens it in the app (`make run`). Written by",
        "`python -m docs.make_presets`.",
        "",
    ]
    for figure, group in groupby(PRESETS, key=lambda p: p.figure):
        panels = list(group)
        text += [f"## Figure {figure}", ""]
        for first in range(0, len(panels), COLUMNS):
            row = panels[first : first + COLUMNS]
            text += [
                "| " + " | ".join(p.panel for p in row) + " |",
                "|" + ":-:|" * len(row),
                "| " + " | ".join(f"[![{_alt(p)}](presets/{figure_name(p)})]({link(p)})" for p in row) + " |",
                "",
            ]
        text += [*dict.fromkeys(p.caption for p in panels), ""]
    return "\n".join(text)


def _alt(preset: FigurePanel) -> str:
    hyper = ", ".join(f"{k} = {v:.4g}" for k, v in preset.hyper.items())
    return f"Figure {preset.figure}, {preset.panel}: {losses.formula(preset.loss).title}, {hyper}"


def main() -> None:
    """Write the gallery and its figures."""
    folder = HERE / "presets"
    folder.mkdir(exist_ok=True)
    for preset in PRESETS:
        (folder / figure_name(preset)).write_bytes(render(preset))
    (HERE / "presets.md").write_text(gallery())


if __name__ == "__main__":
    main()
