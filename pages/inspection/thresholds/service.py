"""Data of the Thresholds page over HTTP: /api/thresholds/RUN/TAG/FILE, in the format of `wire.pack`.

TAG changes with the embeddings, so browsers may cache every file.

- curves.bin: numbers of accepted pairs at every threshold, with intervals of both rates, rates of each class, and the
  recommended thresholds; of both sides, if the run has seen classes
- pairs-unseen.bin, pairs-seen.bin: pairs on both sides of every threshold, for images

All that changes while a threshold is dragged is in these files.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore import metrics
from dmlcore.data import DataError
from dmlcore.inspection import class_sides, thresholds
from dmlcore.inspection.class_sides import ClassSides, Side
from dmlcore.inspection.neighbours import TestNeighbours, fingerprint
from dmlcore.inspection.thresholds import Recommendation
from dmlcore.metrics.pair_examples import PairExamples, pair_examples
from dmlcore.metrics.verification import Verification
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.typing import Arrays, Floats, Ints
from pages.inspection.thresholds.state import RATES
from pages.shared.server import host, thumbnails, wire
from pages.shared.state.cache import cached
from pages.shared.widgets.test_neighbours import learned
from pages.shared.words import sentences as words

STEPS = 400  # equal steps of the similarity, at whose ends the threshold can be
CLASS_STEPS = 100  # thresholds of the rates of each class
MOST_CLASSES = 120  # classes whose curves are drawn, those that deviate most
KEEP = 24  # pairs from which those of a group are chosen
_FILE = re.compile(r"(curves|pairs-seen|pairs-unseen)\.bin")


@dataclass(frozen=True, eq=False)
class RunPairs:
    """Sides of a run; without seen classes, `unseen` holds its test classes, or all classes of an embedding set.

    Attributes:
        run: Run or embedding set.
        source: File of the test embeddings.
        unseen: Classes whose pairs are shown.
        seen: Classes on which the threshold is chosen; None if there are none.
        reason: Sentences that say why there are no seen classes, and the remedy; "" if there are.
        note: Sentence about the choice of the classes, or "".
    """

    run: Run
    source: Path
    unseen: Side
    seen: Side | None
    reason: str = ""
    note: str = ""

    @property
    def sides(self) -> dict[str, Side]:
        """Sides by their names in messages."""
        return {"unseen": self.unseen} | ({"seen": self.seen} if self.seen else {})

    @cached_property
    def tag(self) -> str:
        """Version in the URLs."""
        files = [self.source, *([cache] if (cache := class_sides.path_of(self.source)).exists() else [])]
        return hashlib.sha256("".join(map(fingerprint, files)).encode()).hexdigest()[:16]

    @property
    def address(self) -> str:
        """Base URL of the files, with a trailing slash."""
        return f"{host.base()}api/thresholds/{self.run.id}/{self.tag}/"

    @cached_property
    def recommended(self) -> list[Recommendation]:
        """Recommended thresholds for the offered rates; rates that the seen classes cannot promise are left out."""
        return recommendations(ClassSides(self.seen, self.unseen, self.note)) if self.seen else []

    @cached_property
    def thresholds(self) -> Floats:
        """Thresholds at which the handle can be, ascending, (T,): equal steps, and the recommended thresholds."""
        return np.unique(np.concatenate([self.even, [each.threshold for each in self.recommended]]))

    @cached_property
    def even(self) -> Floats:
        """Equal steps over all similarities of both sides, (STEPS + 1,); the last one accepts no pair."""
        curves = [side.pairs for side in self.sides.values()]
        low = min(float(_lowest(curve)) for curve in curves)
        high = max(float(curve.thresholds[1]) for curve in curves)
        high += max(high - low, 1e-3) / STEPS
        return np.linspace(low, high, STEPS + 1)


def _lowest(curve: Verification) -> float:
    """Return the lowest similarity, or a number below it close to it."""
    accepted = curve.accepted_same + curve.accepted_different
    return float(curve.thresholds[int(np.argmax(accepted == accepted[-1]))])


def recommendations(pair: ClassSides) -> list[Recommendation]:
    """Return the recommended thresholds for the offered rates, without rates that `pair.seen` cannot promise."""
    made = []
    for rate in RATES:
        try:
            made.append(thresholds.recommend(pair, rate))
        except ValueError:
            continue  # too few pairs of different classes
    return made


def measure(run: Run, source: Path) -> RunPairs:
    """Return the sides of a run, cached. The first call may embed the validation split.

    Raises Unreadable; ValueError if the run has no pair of the same class or none of different classes.
    """
    return _measured(run.path, source, source.stat().st_mtime_ns)


@cached(4)
def _measured(folder: Path, source: Path, written: int) -> RunPairs:
    run = Run(folder)
    try:
        pair = class_sides.sides(run, load=thumbnails.dataset)
        made = RunPairs(run, source, pair.unseen, pair.seen, note=pair.note)
        _ = made.thresholds
    except (ValueError, RunError, DataError) as error:  # ThresholdError is a ValueError
        made = RunPairs(run, source, class_sides.evaluated_classes(run), None, reason=str(error))
        _ = made.thresholds
    return made


@cached(4)
def baselines(folder: Path, source: Path) -> dict[str, list[Recommendation]]:
    """Return the recommended thresholds for the same classes without the training of a run, by name of the baseline."""
    made = class_sides.baselines(Run(folder), load=thumbnails.dataset)
    return {name: recommendations(pair) for name, pair in made.items()}


def row(chosen: Recommendation) -> dict[str, Any]:
    """Return a recommendation as JSON data for the page; intervals are lists of both ends, or null if unknown."""
    return {
        "promised": chosen.promised,
        "threshold": chosen.threshold,
        "within": chosen.threshold_interval,
        "ratio": chosen.ratio,
        "ratio_within": chosen.ratio_interval,
        "fmr": chosen.unseen.fmr,
        "fmr_within": chosen.unseen.fmr_interval,
        "fnmr": chosen.unseen.fnmr,
        "fnmr_within": chosen.unseen.fnmr_interval,
        "eer": chosen.unseen.eer,
        "eer_within": chosen.unseen.eer_interval,
    }


# ---- responses


async def respond(request: Request) -> Response:
    """Respond with one file of a run; 404 if it does not exist, 409 with the reason if it cannot be computed."""
    return await anyio.to_thread.run_sync(_respond, request.path_params)


def _respond(given: Mapping[str, str]) -> Response:
    asked = _FILE.fullmatch(given["file"])
    try:
        run = RunStore().open(given["run"])
        source = run.embeddings()
        if not asked or source is None:
            return Response(status_code=404)
        pairs = measure(run, source)
        if pairs.tag != given["tag"] or (asked[1] == "pairs-seen" and pairs.seen is None):
            return Response(status_code=404)
        content = _content(pairs, pairs.address, asked[1])
    except (RunError, FileNotFoundError):
        return Response(status_code=404)
    except (Unreadable, ValueError) as error:
        return Response(words.plain(error), status_code=409, media_type="text/plain")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Content-Encoding": "gzip",
    }
    return Response(content, media_type="application/octet-stream", headers=headers)


ROUTES: list[BaseRoute] = [Route("/api/thresholds/{run}/{tag}/{file}", respond)]


@cached(12)
def _content(_run: RunPairs, address: str, name: str) -> bytes:
    """Return the content of a file; `address` names run and version."""
    content = _curves(_run) if name == "curves" else _pairs(_run, name.removeprefix("pairs-"))
    return gzip.compress(content, 6)


@cached(8)
def _examples(_run: RunPairs, address: str, side: str) -> tuple[PairExamples, PairExamples]:
    """Return the examples of pairs of the same and of different classes; `address` names run and version."""
    classes = _run.sides[side]
    return pair_examples(classes.embeddings, classes.labels, _run.thresholds, keep=KEEP)


def _curves(pairs: RunPairs) -> bytes:
    even = np.isin(pairs.thresholds, pairs.even)
    arrays: Arrays = {"thresholds": pairs.thresholds.astype("<f4"), "even": np.flatnonzero(even).astype("<u2")}
    header: dict[str, Any] = {"sides": {}, "recommended": [row(each) for each in pairs.recommended]}
    for name, side in pairs.sides.items():
        same, different = _examples(pairs, pairs.address, name)
        shown, rates = _class_rates(pairs, side)
        header["sides"][name] = {
            "name": side.name,
            "classes": side.classes,
            "samples": len(side.labels),
            "same": int(same.counts.sum()),
            "different": int(different.counts.sum()),
            "eer": side.pairs.eer,
            "eer_within": side.pairs.interval(lambda curve: curve.eer),
            "opis": side.opis.score,
            "class_names": _names(pairs.run, shown),
            "class_labels": shown.tolist() if pairs.run.is_embedding_set or name == "unseen" else [],
        }
        arrays |= {
            f"{name}_same": same.accepted().astype("<u4"),
            f"{name}_different": different.accepted().astype("<u4"),
            f"{name}_within": _intervals(side.pairs, pairs.thresholds).astype("<f4"),
            **{f"{name}_{rate}": values for rate, values in rates.items()},
        }
    header["class_thresholds"] = _class_thresholds(pairs).tolist()
    return wire.pack(header, arrays)


def _intervals(pairs: Verification, at: Floats) -> Floats:
    """Return 95 % intervals (4, T) at thresholds (T,): low and high FMR, low and high FNMR; NaN if unknown."""
    if not pairs.has_intervals:
        return np.full((4, len(at)), np.nan)
    drawn = pairs.resampled
    places = np.searchsorted(-drawn[0].thresholds, -at, side="right") - 1  # as PairCurve.rates_at
    fmr, tpr = (np.stack([getattr(curve, rate)[places] for curve in drawn]) for rate in ("fmr", "tpr"))
    ends = [0.025, 0.975]
    return np.concatenate([np.quantile(rate, ends, axis=0) for rate in (fmr, 1 - tpr)])


def _class_thresholds(pairs: RunPairs) -> Floats:
    return np.clip(np.linspace(pairs.even[0], pairs.even[-1], CLASS_STEPS + 1), -1, 1)


def _class_rates(pairs: RunPairs, side: Side) -> tuple[Ints, dict[str, NDArray[np.uint16]]]:
    """Return the labels (C,) of the classes whose rates deviate most, and their rates and the median of all classes.

    Classes of one sample are left out. The rates are FMR and FNMR, quantised, (C + 1, K); the last row is the median.
    """
    every = metrics.class_rates(side.embeddings, side.labels, _class_thresholds(pairs))
    deviation = side.opis.per_class  # of the same classes; NaN for a class of one sample
    known = np.flatnonzero(~np.isnan(deviation))
    chosen = known[np.argsort(-deviation[known], kind="stable")][:MOST_CLASSES]
    rates = {"fmr": every.fmr, "fnmr": 1 - every.tpr}
    middle = {name: np.vstack([rate[chosen], np.median(rate[known], axis=0)]) for name, rate in rates.items()}
    return every.classes[chosen], {name: wire.fractions(rate) for name, rate in middle.items()}


def _names(run: Run, labels: Ints) -> list[str]:
    try:
        known = thumbnails.dataset(run.spec).class_names
    except DataError:
        known = ()
    return [known[label] if label < len(known) else f"class {label}" for label in labels.tolist()]


def _pairs(pairs: RunPairs, name: str) -> bytes:
    """Return the content of a file of pairs.

    For each kind, "same" and "different", the arrays hold the data set indices of both samples, the positions of their
    class names, the similarity, the bin (as in `PairExamples`), and the pages that can show the pair: 1 if Explore can,
    2 more if Failures can. The first sample is the query for Failures.
    """
    known, side = learned(pairs.source), pairs.sides[name]
    arrays: Arrays = {}
    labels = np.zeros(0, np.int64)
    for kind, examples in zip(("same", "different"), _examples(pairs, pairs.address, name), strict=True):
        first, second, opened = _linked(known, side, examples)
        arrays |= {
            f"{kind}_first": side.indices[first].astype("<u4"),
            f"{kind}_second": side.indices[second].astype("<u4"),
            f"{kind}_label": np.stack([side.labels[first], side.labels[second]]).astype("<i4"),
            f"{kind}_value": examples.similarities.astype("<f4"),
            f"{kind}_bin": examples.bins.astype("<u2"),
            f"{kind}_opened": opened.astype("u1"),
        }
        labels = np.union1d(labels, side.labels[np.concatenate([first, second])])
    for kind in ("same", "different"):
        arrays[f"{kind}_label"] = np.searchsorted(labels, arrays[f"{kind}_label"]).astype("<u4")
    return wire.pack({"class_names": _names(pairs.run, labels), "keep": KEEP}, arrays)


def _linked(known: TestNeighbours, side: Side, examples: PairExamples) -> tuple[Ints, Ints, Ints]:
    """Return the rows of both samples, swapped where only the second can be a query, and the pages that show the pair.

    A query of Failures has a positive and is not of the gallery, and the other sample is searched.
    """
    order = np.argsort(known.indices, kind="stable")
    place = np.searchsorted(known.indices[order], side.indices).clip(max=len(order) - 1)
    row, tested = order[place], known.indices[order[place]] == side.indices
    searched = known.is_gallery if known.is_gallery.any() else np.ones(len(known.labels), bool)
    is_query = tested & (known.positives.nearest >= 0)[row] & ~known.is_gallery[row]
    is_found = tested & searched[row]
    first, second = examples.first, examples.second
    forward, backward = is_query[first] & is_found[second], is_query[second] & is_found[first]
    swap = ~forward & backward
    opened = (tested[first] & tested[second]) + 2 * (forward | backward)
    return np.where(swap, second, first), np.where(swap, first, second), opened
