"""Example collages of the test split, shown until a run has been trained."""

from __future__ import annotations

from html import escape

import numpy as np

from dmlcore import data
from dmlcore.inspection.images import data_uri, fit_into
from pages.shared.server import thumbnails
from pages.shared.state.cache import cached


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
            f'top:{50 * (tile // 2)}%;border:2px dashed #E69F00;outline:1px solid rgb(0 0 0 / .55)"></span></div>'
            f'<figcaption title="{name}" style="font-size:12px;line-height:1.4;overflow:hidden;white-space:nowrap;'
            f'text-overflow:ellipsis">{name}</figcaption></figure>'
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:10px">{"".join(cells)}</div>'
