"""HTTP route for the scores of the toy networks on all samples of the chosen split, with the thesis's scores to
compare.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore.replay import toy_runs
from pages.losses.toy_training import service as toys_service
from pages.losses.toy_training import state as toys_state
from pages.losses.toy_training.state import Toy
from pages.shared.server import exports
from pages.shared.server.exports import Refused


@lru_cache(maxsize=64)
def _scored(key: str, step: int) -> list[dict[str, float | None]]:
    """Return the scores of the untrained network, then those of the network of each side at `step`.

    Args:
        key: State of the page as JSON text, so that it can be hashed for the cache.
        step: Training step.
    """
    toy = Toy.of(json.loads(key))
    scores = []
    for i in range(len(toy.sides)):
        training = toys_service.TIMELINE.kept.of(toy.live(i))
        steps = (0, step) if i == 0 else (step,)
        scores += [toy_runs.in_columns(toy_runs.train_scores(training, at, toy.split)) for at in steps]
    return scores


@lru_cache(maxsize=32)
def _input_scored(name: str, seed: int, split: str) -> dict[str, float | None]:
    return toy_runs.in_columns(toy_runs.input_scores(toy_runs.prepare_data(name, seed), split))


def table(toy: Toy, step: int) -> dict[str, Any]:
    """Return the scores of the inputs, the untrained network and both sides at `step`, and those in Table 4.1.

    Table 4.1 of the thesis covers only the training split of the toy Gaussians; for other data its rows are omitted.

    Raises:
        Refused: If the networks have not been trained up to `step`.
    """
    _, step = toys_service.TIMELINE.made(toy, step)
    scores = _scored(json.dumps(toy.to_json()), step)
    runs = [toy.run(i, step) for i in range(len(toy.sides))]
    inputs = "frozen network, averaged" if toy.images else "input space"
    ours = [{"label": inputs, "scores": _input_scored(toy.data, toy.seed, toy.split)}]
    labels = ["untrained network", *(letter.upper() for letter in toys_state.LETTERS)]
    ours += [{"label": label, "scores": values} for label, values in zip(labels, scores, strict=False)]
    published = toy_runs.published_scores() if toy.data == "toy" and toy.split == "train" else []
    rows = [
        {"label": r.label, "loss": r.loss, "hyper": r.hyper, "scores": r.scores}
        | {"ours": [i for i, run in enumerate(runs) if toy_runs.matches(r, run)]}
        for r in published
    ]
    samples = len(toy.dataset.splits[toy.split])
    return {"step": step, "columns": toy_runs.COLUMNS, "ours": ours, "published": rows, "samples": samples}


async def _table(request: Request) -> Response:
    query = dict(request.query_params)
    toy, step = Toy.from_query(query), toys_service.TIMELINE.step(query)
    try:
        await toys_service.TIMELINE.compute(toy, step)
        scores = await anyio.to_thread.run_sync(table, toy, step, limiter=exports.LIMITER)
    except Refused as refused:
        return refused.response()
    return Response(json.dumps(scores, allow_nan=False), media_type="application/json")


ROUTES: list[BaseRoute] = [Route("/api/toys/table", _table)]
