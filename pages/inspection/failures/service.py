"""WebSocket service of the Failures page: force fields of a triplet of embeddings, and ranks after a step of each loss.

A request is that of the Fields page plus "of" (run, and the samples query, right and wrong by their index in the data
set), "rate" (the step size) and "by" ("length" or "rate": the quantity that is equal for all losses). The response's
"failure" holds the ranks, the forces and the points after one step.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from starlette.routing import BaseRoute

from dmlcore import losses
from dmlcore.geometry.embedded_triplet import EmbeddedTriplet, embed, needs_origin, remarks
from dmlcore.inspection.failure.best_loss import best_loss
from dmlcore.inspection.failure.one_step import Embeddings, NeighbourRanks, RetrievalFailure, Step, to_double
from dmlcore.spec import RunSpec
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.typing import Floats
from pages.inspection.failures import words as failure_words
from pages.inspection.failures.address import OF
from pages.inspection.failures.state import Home, RealScene, home, losses_to_compare
from pages.shared.plane import service as plane_service
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import Request, identity, number, pack
from pages.shared.state import untrusted
from pages.shared.words import sentences as words

RATE = 0.1
RATES = (0.001, 10.0)
WAYS = ("length", "rate")
AT_ONCE = 30_000_000  # all losses are evaluated during a drag if this takes at most this many multiplications
INDEX = 10**9

Triple = tuple[int, int, int]


def answer(request: Request) -> bytes:
    """Return the force field, ranks and steps for a request, or {"error"} if the triplet does not belong to the run."""
    try:
        spec, case = _of(request.get("of"))
    except (LookupError, RunError, Unreadable, ValueError) as error:
        return pack({"id": identity(request), "error": words.plain(error)}, {})
    scene = RealScene.of(request.get("scene"), RealScene.at(home(case.triplet, spec)))
    if "hover" in request:
        return plane_service.render_scene(scene, request, {"of": request["of"]})
    settle = request.get("settle") is True
    more: dict[str, Any] = {"failure": about(case, scene, request, whole=settle), "of": request["of"]}
    if settle:
        rate, way = asked(request)
        more["query"] = link(request["of"], scene, rate, way)
        # the closed form of the region requires a plane through the origin
        more |= {} if scene.is_plain else {"region": None}
    return plane_service.render_scene(scene, request, more)


def about(case: RetrievalFailure, scene: RealScene, request: Request, *, whole: bool) -> dict[str, Any]:
    """Return the "failure" entry of a response: the ranks, one step per loss, and the components of the forces.

    The ranks are those at the current points and those in the data.

    Args:
        whole: Evaluate all losses; otherwise only the loss of the scene if evaluating all would take too long.
    """
    start = case.triplet if scene.is_home else case.moved_to(scene.coordinates)
    rate, way = asked(request)
    compared = losses_to_compare(scene)
    if not whole and len(compared) * case.searched * case.points.shape[1] > AT_ONCE:
        compared = [loss for loss in compared if loss.formula.name == scene.loss]
    steps = case.steps(compared, rate, length=rate if way == "length" else None, start=start)
    by_loss = {loss.formula.name: step for loss, step in zip(compared, steps, strict=True)}
    (now,) = case.ranks_at(case.at(start)[None])
    return {
        "now": now.to_json(),
        "data": case.before.to_json(),
        "moved": not scene.is_home,
        "steps": {name: _step(step) for name, step in by_loss.items()},
        "best": _best(now, by_loss) if len(by_loss) == len(losses.names()) else None,
        "ends": _ends(start, by_loss[scene.loss], scene.home),
        "parts": _parts(by_loss[scene.loss]),
        "distances": _distances(case.at(start)),
        "words": _words(case, start, scene),
        "searched": case.searched,
        "matches": case.matches,
    }


def asked(request: Request) -> tuple[float, str]:
    """Return the step size in a request or URL, and the quantity ("length" or "rate") that is equal for all losses.

    Old URLs contain a size without "by"; their size is a rate.
    """
    rate = untrusted.bounded(request.get("rate"), *RATES, RATE)
    return rate, untrusted.one_of(request.get("by"), WAYS, "rate" if "rate" in request else WAYS[0])


def link(triplet: Any, scene: RealScene, rate: float, way: str) -> dict[str, str]:
    """Return the query parameters of the page; "rate" and "by" are omitted if both have their default value."""
    query = {name: str(triplet[name]) for name in ("run", *OF)} | scene.to_query()
    return query | ({"rate": untrusted.plain(rate), "by": way} if (rate, way) != (RATE, WAYS[0]) else {})


def _of(triplet: Any) -> tuple[RunSpec, RetrievalFailure]:
    if not isinstance(triplet, dict) or not isinstance(triplet.get("run"), str):
        raise LookupError("the message does not name a run; reload the page")
    samples = [triplet.get(name) for name in OF]
    if not all(isinstance(i, int) and 0 <= i < INDEX for i in samples):
        raise LookupError("query, right and wrong must be samples of the data set")
    run = RunStore().open(triplet["run"])
    source = run.embeddings()
    if source is None:
        raise LookupError(f"{run.id} has no embeddings any more; evaluate it again")
    return run.spec, _case(source, (samples[0], samples[1], samples[2]), run.spec.model.normalize)


@lru_cache(maxsize=2)
def _table(source: Path) -> tuple[Embeddings, dict[int, int]]:
    """Return the embeddings of a run, and the row of each data set index."""
    wanted = ("embeddings", "labels", "indices", "is_gallery")
    stored = arrays.read(source, EMBEDDINGS, *wanted, remedy="Evaluate the run again")
    is_gallery = stored.get("is_gallery", np.zeros(len(stored["labels"]), bool))
    table = Embeddings(to_double(stored["embeddings"]), stored["labels"], is_gallery)
    return table, {int(index): row for row, index in enumerate(stored["indices"])}


@lru_cache(maxsize=16)  # All cached cases of a run share its table, so each adds only a few bytes per sample.
def _case(source: Path, samples: Triple, on_sphere: bool) -> RetrievalFailure:
    table, row_of = _table(source)
    missing = [i for i in samples if i not in row_of]
    if missing:
        raise LookupError(f"sample {missing[0]} is not among the tested samples of this run")
    query, right, wrong = (row_of[i] for i in samples)
    return RetrievalFailure(table, query, right, wrong, on_sphere=on_sphere)


def _step(step: Step) -> dict[str, Any]:
    forces = step.forces
    return step.after.to_json() | {
        "active": forces.active,
        "satisfied": not forces.raw > 0,
        "force": number(float(forces.sizes.max())),
        "moved": number(float(step.moved.max())),
    }


def _best(now: NeighbourRanks, by_loss: dict[str, Step]) -> dict[str, Any]:
    """Return the losses that rank the query best, a sentence about them, and the best losses in each table column."""
    after = {name: step.after for name, step in by_loss.items()}
    best = best_loss(now, after)
    lead = failure_words.verdict(best, now, after)
    return {"names": best.names, "verdict": lead, "judged": failure_words.JUDGED, "leaders": best.leaders}


def _ends(start: EmbeddedTriplet, step: Step, home: Home) -> list[list[float]] | None:
    """Return the points (3, 2) after the step, in coordinates of the drawn plane; None if no point moves."""
    if not step.moved.any():
        return None
    at: list[list[float]] = (step.ends @ start.basis.T / home.unit).tolist()
    return at


def _parts(step: Step) -> dict[str, list[float | None]]:
    """Return the norms of the forces on A, P and N, and of their components.

    "in" and "off" are parallel and normal to the plane of the triplet, "radial" and "tangential" refer to the point's
    own embedding vector.
    """
    f = step.forces
    columns = {
        "size": f.sizes,
        "in": np.hypot(*f.in_plane.T),
        "off": f.off_plane,
        "radial": f.radial,
        "tangential": f.tangential_sizes,
    }
    return {name: [number(float(x)) for x in values] for name, values in columns.items()}


def _distances(points: Floats) -> dict[str, float]:
    a, p, n = points
    return {edge: float(np.linalg.norm(x - y)) for edge, x, y in (("ap", a, p), ("an", a, n), ("pn", p, n))}


def _words(case: RetrievalFailure, start: EmbeddedTriplet, scene: RealScene) -> list[str]:
    """Return sentences on what the drawn plane shows exactly, what it omits, and how the triplet is degenerate."""
    dimension, height, unit = case.points.shape[1], start.height, scene.home.unit
    sentences = [f"The three embeddings (dimension {dimension}) span this plane, so their distances are exact."]
    if unit != 1:
        sentences.append(f"Coordinates, distances and forces are in units of {unit:g}.")
    title = losses.formula(scene.loss).title
    if not needs_origin(scene.module()):
        sentences.append(f"{title} depends only on distances, so the forces are in the plane.")
    elif height == 0:
        sentences.append(
            f"{title} depends on norms, too. The plane contains the origin, so the forces are in the plane."
        )
    else:
        sentences.append(
            f"{title} depends on norms, too, and the plane is {height:.3g} away from the origin. The table lists the "
            "component of each force normal to the plane, which the figure cannot show."
        )
    if case.on_sphere:
        sentences.append(
            "Embeddings of this run have length 1. The dotted circle is the intersection of the unit sphere and the "
            "plane. Only the tangential component of a force moves a point; normalisation removes the radial component."
        )
        off = np.abs(start.lengths - 1).max()
        if not scene.is_home and off > 1e-3:
            sentences.append(
                f"A point was dragged off the unit sphere by {off:.2g}; no embedding of this run is there."
            )
    triplet = start if scene.is_home else embed(*case.at(start))
    return sentences + list(remarks(triplet, on_sphere=case.on_sphere))


ROUTES: list[BaseRoute] = [socket_route("/api/failure", answer, heavy=lambda _: True)]
