"""Component of the Collage page: test images with the weight maps of several poolings, one row per pooling.

Until a run has been trained, example collages of the test split are shown.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from dmlcore import data
from dmlcore.inspection.images import data_uri, fit_into
from dmlcore.inspection.local.weight_maps import WeightMaps
from dmlcore.typing import Singles
from pages.shared.server import thumbnails
from pages.shared.state import untrusted
from pages.shared.state.cache import cached
from pages.shared.widgets.component import component
from pages.shared.words.numbers import unbroken

IMAGES = 8
OPACITY = 0.6
LAST = 9999  # largest seed of the random choice of images
KEY = "collage"
CLEAR = 2.0  # a mean weight counts as larger than that of average pooling if it exceeds it by this many standard errors
ROUNDING = 1e-6  # smaller differences are rounding errors, because the weights are stored in single precision

_canvas = component("pooling/collage")


@dataclass(frozen=True, eq=False)
class WeightsRow:
    """Weight maps of one pooling over test images, shown as one row.

    Attributes:
        name: Title of the pooling.
        words: Caption with the scores.
        address: Base URL of the images; "" if the server has no images for this row.
    """

    name: str
    words: str
    maps: WeightMaps
    address: str = ""


def show(
    lines: Sequence[WeightsRow],
    grid: int,
    name: Callable[[int], str],
    image: Callable[[int], str] | None = None,
    *,
    onward: str = "",
) -> int:
    """Mount the component with some test images and return the data set index of the chosen one.

    Args:
        lines: The rows to show, one per pooling.
        grid: Tiles per side of a collage; 0 if the images are not collages.
        name: Returns the class name of a sample.
        image: Returns the data URL of a sample's image; used if the rows have no address.
        onward: URL query string of the New run page, which the link "Next" opens.
    """
    first = lines[0].maps
    draw = int(untrusted.bounded(st.query_params.get("draw", "0"), 0, LAST, 0))
    rows = np.random.default_rng(draw).permutation(len(first.indices))[:IMAGES]
    asked = _row_of(first, st.query_params.get("query", ""))
    if asked is not None and asked not in rows:
        rows = np.concatenate([[asked], rows[:-1]])
    chosen = int(first.indices[rows[0] if asked is None else asked])
    weights = [line.maps.weights[rows] for line in lines]
    height, width = weights[0].shape[1:]
    same = [w.shape[1:] == (height, width) for w in weights]
    most = float(max(1.5, max(w.max() * height * width for w, fits in zip(weights, same, strict=True) if fits)))
    tiles = bool((first.tile >= 0).all())
    row_data = [
        {
            "name": line.name,
            "words": line.words,
            "maps": base64.b64encode(np.rint(w * (height * width * 255 / most)).clip(0, 255).astype(np.uint8)).decode(),
            "shares": [round(float(x), 6) for x in line.maps.foreground[rows]]
            if np.isfinite(line.maps.foreground[rows]).all()
            else None,
            "images": line.address,
        }
        for line, w, fits in zip(lines, weights, same, strict=True)
        if fits
    ]
    shown = [
        {"index": int(i), "name": name(int(i)), "tile": int(t), "source": image(int(i)) if image else ""}
        for i, t in zip(first.indices[rows], first.tile[rows], strict=True)
    ]
    tag = hashlib.sha256(repr((row_data, shown)).encode()).hexdigest()[:16]
    opacity = untrusted.bounded(st.query_params.get("opacity", str(OPACITY)), 0, 1, OPACITY)
    _canvas(
        key=KEY,
        data={
            "tag": tag,
            "rows": row_data,
            "images": shown,
            "side": [height, width],
            "most": most,
            "grid": grid if tiles else 0,
            "followed": image is None,
            "opacity": opacity,
            "chosen": chosen,
            "verdict": verdict(lines, grid),
            "next": onward,
            "hide": st.query_params.get("hide", "")[:200].split(","),
        },
        on_chosen_change=_follow_choice,
        on_opacity_change=_follow_opacity,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Show other images",
            key="other_collages",
            icon=":material/shuffle:",
            on_click=_other,
            args=((draw + 1) % LAST,),
        )
        st.caption(
            f"Lighter means more weight, on one scale for all rows. Each position is one of {height} × {width} local "
            "features, which also see their surroundings, so a map is not an outline."
        )
    return chosen


@cached(2)
def examples(name: str) -> str:
    """Return HTML with eight test collages; a dashed frame marks the tile that shows the class."""
    dataset = data.load(name)
    cells = []
    for index in np.random.default_rng(0).permutation(dataset.splits["test"])[:8].tolist():
        assert dataset.image is not None  # collages have images
        tile = int(dataset.facts["foreground"][index])
        name = escape(dataset.class_names[dataset.labels[index]].replace("_", " "))
        address = data_uri(fit_into(dataset.image(index), thumbnails.SIDE))
        cells.append(
            f'<figure style="margin:0;width:104px"><div style="position:relative;width:104px;height:104px"><img '
            f'src="{address}" alt="collage of class {name}" style="width:100%;height:100%;image-rendering:pixelated">'
            f'<span style="position:absolute;box-sizing:border-box;width:50%;height:50%;left:{50 * (tile % 2)}%;'
            f"top:{50 * (tile // 2)}%;border:2px dashed var(--selected);"
            'outline:1px solid rgb(0 0 0 / .55)"></span></div>'
            f'<figcaption title="{name}" style="font-size:12px;line-height:1.4;overflow:hidden;white-space:nowrap;'
            f'text-overflow:ellipsis">{name}</figcaption></figure>'
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:10px">{"".join(cells)}</div>'


def verdict(lines: Sequence[WeightsRow], grid: int) -> str:
    """Return a sentence on which poolings put more weight on the tile of the class than average pooling does.

    A pooling is named if its mean weight on the tile exceeds that of uniform weights by CLEAR standard errors. If the
    images are not collages, the sentence states the effective number of positions that each pooling uses.
    """
    shares = {line.name: line.maps.foreground.astype(np.float64) for line in lines}
    count = len(lines[0].maps.indices)
    if not grid or not all(np.isfinite(share).all() for share in shares.values()):
        spread = [f"{line.name} {_spread(line.maps.weights):.0f}" for line in lines]
        return f"Effective number of positions used, of {lines[0].maps.weights[0].size}: {', '.join(spread)}."
    means = {name: float(share.mean()) for name, share in shares.items()}
    noise = {name: float(share.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0 for name, share in shares.items()}
    even = 1 / grid**2
    words = ", ".join(f"{name} {100 * means[name]:.1f} ± {100 * noise[name]:.1f} %" for name in means)
    ahead = [name for name in means if means[name] > even + max(CLEAR * noise[name], ROUNDING)]
    first = f"{' and '.join(ahead)} look{'s' * (len(ahead) == 1)} at" if ahead else "No pooling looks at"
    return unbroken(
        f"{first} the tile of the class. Weight on it: {words} (mean of {count} images); uniform weights give "
        f"{100 * even:.0f} %."
    )


def _spread(weights: Singles) -> float:
    """Return the effective number of positions, exp of the mean entropy of the weights (n, h, w), which sum to 1."""
    w = weights.reshape(len(weights), -1).astype(np.float64)
    return float(np.exp(-(w * np.log(np.where(w > 0, w, 1.0))).sum(1).mean()))


def _row_of(maps: WeightMaps, index: str) -> int | None:
    """Return the row of the sample whose data set index is given as text, or None if there is no such sample."""
    if not (index.isascii() and index.isdigit() and len(index) < 10):
        return None
    rows = np.flatnonzero(maps.indices == int(index))
    return int(rows[0]) if len(rows) else None


def ask(index: object) -> None:
    """Choose a sample by writing its data set index to the URL; ignore anything that is not a valid index."""
    if isinstance(index, int) and 0 <= index < 10**9:
        st.query_params["query"] = str(index)


def _follow_choice() -> None:
    ask(st.session_state[KEY].get("chosen"))


def _follow_opacity() -> None:
    opacity = untrusted.bounded(st.session_state[KEY].get("opacity"), 0, 1, OPACITY)
    if opacity == OPACITY:
        st.query_params.pop("opacity", None)
    else:
        st.query_params["opacity"] = f"{opacity:.2f}"


def _other(draw: int) -> None:
    st.query_params["draw"] = str(draw)
    st.query_params.pop("query", None)
