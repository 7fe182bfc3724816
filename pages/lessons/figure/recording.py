"""Data for the component that shows a recorded training run frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlcore.lessons.recordings import UNIT, ProjectionFrame, ensemble, exchange_frames, projections
from dmlcore.typing import Floats


def data_of(kind: str) -> dict[str, Any]:
    """Return steps, captions and drawing data of the recording `kind`; the caller adds the index of the shown frame."""
    empty: dict[str, Any] = {"kind": kind, "places": [], "labels": [], "proxies": 0, "names": [], "curves": []}
    return empty | {"projections": _projections, "ensemble": _ensemble, "neighbours": _neighbours}[kind]()


def _projections() -> dict[str, Any]:
    frames = projections()
    return {
        "steps": [frame.step for frame in frames],
        "words": [
            f"{_event(frame)} · distance of proxies {frame.apart:.3f} · covering radius {frame.covering:.3f} · "
            f"MAP@R {100 * frame.map_at_r:.0f} %"
            for frame in frames
        ],
        "places": [_places(frame.points, frame.proxies.reshape(-1, 2)) for frame in frames],
        "labels": frames[0].labels.tolist(),
        "proxies": frames[0].proxies.shape[1],
    }


def _neighbours() -> dict[str, Any]:
    """Return the recording in which a query's neighbours are replaced one by one with those of another class.

    The component draws the query as a diamond, as if it were a proxy of the first class, to which the query belongs.
    """
    frames = exchange_frames()
    return {
        "kind": "projections",
        "steps": [frame.exchanged for frame in frames],
        "words": [
            f"{frame.exchanged} of {frame.neighbours} neighbours exchanged · moved by {frame.moved:.2f} · "
            f"nearest class {frame.nearest}"
            for frame in frames
        ],
        "places": [_places(frame.points, frame.query[None]) for frame in frames],
        "labels": frames[0].labels.tolist(),
        "proxies": 1,
    }


def _places(points: Floats, proxies: Floats) -> list[int]:
    return [*map(int, np.rint(UNIT * np.concatenate([points, proxies])).ravel())]


def _event(frame: ProjectionFrame) -> str:
    """Return the caption of a frame: the number of the projection, and the event at this frame, if any."""
    here = f"Projection {frame.projection}"
    return f"{here} ends" if frame.title.endswith("ends") else f"{here}: {frame.title}" if frame.title else here


def _ensemble() -> dict[str, Any]:
    frames = ensemble()
    return {
        "steps": [frame.step for frame in frames],
        "words": [""] * len(frames),
        "names": list(frames[0].names),
        "curves": [
            _curve("weight", "", False, [frame.weights.round(4) for frame in frames]),
            _curve("loss / its mean so far", " of its mean", True, [frame.relative.round(3) for frame in frames]),
        ],
    }


def _curve(title: str, unit: str, noisy: bool, values: list[Floats]) -> dict[str, Any]:
    return {"title": title, "unit": unit, "noisy": noisy, "values": [each.tolist() for each in values]}
