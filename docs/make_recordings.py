"""Generator of the recordings that the lessons of the app play back.

Run `python -m docs.make_recordings projections`, `neighbours`, or `ensemble RUN`. RUN is the ID of a run that trains an
ensemble of four losses with learned weights (WEL). The shipped recording is of the run `dml train omniglot
model.name=conv4_32 loss.name=wel loss.learning_rate=0.1 loss.weights_rate=network schedule.steps=400
schedule.decay=none`. The recording of projections contains the frames of `docs.make_projections` (11 seconds of
processor time), reduced to 15 samples per class.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from dmlcore.lessons.recordings import UNIT
from dmlcore.presets import RECORDINGS
from dmlcore.storage import atomic_files
from dmlcore.storage.runs import RunStore

EACH = 15  # number of samples recorded per class (the first ones of each class)
NEIGHBOURS = [
    *("data.split=samples", "data.validation=samples", "model.hidden=[128]", "model.embedding_dim=2"),
    *("model.normalize=false", "model.lipschitz=true", "loss.name=contrastive", "loss.distance=ball", "loss.m_pos=0"),
    *("loss.m_neg=0.3841", "conditioning.neighbours=8", "conditioning.hidden=16", "conditioning.after=400"),
    *("schedule.steps=800", "batch.classes=10", "batch.samples=8", "optimiser.learning_rate=3e-3"),
]
TITLES = {
    "classifier": "classifier",
    "triplet": "triplet hinge",
    "binomial": "binomial deviance",
    "proxy_nca": "Proxy-NCA",
}


def projections() -> list[dict[str, Any]]:
    """Train a small network with proxies and return its recording: a header, then one row per frame.

    A projection replaces the proxies of the loss with samples (chance-constrained programming). Rows hold 2-D
    embeddings and proxies as integers in units of 1/UNIT.
    """
    from docs.make_projections import frames

    shown = frames()
    labels = shown[0].labels
    kept = np.sort(np.concatenate([np.flatnonzero(labels == label)[:EACH] for label in np.unique(labels)]))
    head = {"labels": labels[kept].tolist(), "classes": len(shown[0].proxies)}
    rows = [
        {
            "step": frame.step,
            "projection": frame.projection,
            "title": frame.title,
            "map_at_r": round(frame.map_at_r, 4),
            "points": np.rint(UNIT * frame.points[kept]).astype(int).ravel().tolist(),
            "proxies": np.rint(UNIT * frame.proxies).astype(int).ravel().tolist(),
        }
        for frame in shown
    ]
    return [head, *rows]


def ensemble(run: str) -> list[dict[str, Any]]:
    """Return the recording of an ensemble trained in the run with ID `run`: a header, then one row per step."""
    steps = [row for row in RunStore().open(run).metrics()[0] if row["kind"] == "step"]
    rows = [
        {
            "step": row["step"],
            "weights": [round(row[f"weight_{name}"], 4) for name in TITLES],
            "losses": [float(f"{row[f'loss_{name}']:.4g}") for name in TITLES],
        }
        for row in steps
    ]
    return [{"names": list(TITLES.values())}, *rows]


def neighbours() -> list[dict[str, Any]]:
    """Return a recording that shows how an embedding conditioned on neighbours moves as its neighbours are replaced.

    The first row is a header. Each further row is a frame in which one more neighbour is replaced, the farthest first.
    A network is trained on ten digit classes with 8 neighbours and two-dimensional embeddings (5 seconds of processor
    time). The query is a test sample of class 0 with neighbours that all belong to class 0; of all such samples it is
    the one that moves farthest. Its neighbours are replaced with samples of the class that is farthest from class 0.
    """
    import torch

    from dmlcore.spec import RunSpec
    from dmlcore.training import batches, loop, methods
    from dmlcore.training.build import build, load_data
    from dmlcore.training.methods.conditioning import Conditioning
    from dmlcore.training.neighbours import neighbours as listed
    from dmlcore.training.state import embedder

    spec = RunSpec().with_overrides(NEIGHBOURS)
    state = build(spec, load_data(spec), torch.device("cpu"))
    state.model.train()
    for number in range(1, spec.schedule.steps + 1):
        loop.step(state, number)
        state.progress.step = number
        methods.get(state, Conditioning).begin(state)  # does nothing before the last step
    indices, k = state.data.splits["test"], spec.conditioning.neighbours
    labels = state.data.labels[indices]
    points = batches.embed(embedder(state), state.data, indices, state.device)
    alone = torch.from_numpy(batches.embed(state.model, state.data, indices, state.device))
    own = listed(alone, None, k)
    means = np.stack([alone.numpy()[labels == label].mean(0) for label in range(10)])
    others = np.flatnonzero(labels == np.linalg.norm(means - means[0], axis=1).argmax())

    def path(query: int) -> np.ndarray:
        come = others[np.linalg.norm(alone.numpy()[others] - alone.numpy()[query], axis=1).argsort()[:k]]
        counts = range(k + 1)
        sequences = [np.concatenate([[query], own[query][: k - count], come[:count]]) for count in counts]
        with batches.evaluation_mode(state.model):
            return state.model.condition(alone[torch.from_numpy(np.stack(sequences))]).numpy()

    paths = [path(int(query)) for query in np.flatnonzero((labels == 0) & (labels[own] == 0).all(1))]
    farthest = max(paths, key=lambda places: float(np.linalg.norm(places[-1] - places[0])))
    rows = [{"exchanged": n, "query": np.rint(UNIT * place).astype(int).tolist()} for n, place in enumerate(farthest)]
    kept = np.sort(np.concatenate([np.flatnonzero(labels == label)[:EACH] for label in range(10)]))
    head = {"labels": labels[kept].tolist(), "label": 0, "neighbours": k}
    return [head | {"points": np.rint(UNIT * points[kept]).astype(int).ravel().tolist()}, *rows]


def main(arguments: list[str] | None = None) -> int:
    """Create the requested recording and write it to its file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["projections", "neighbours", "ensemble"])
    parser.add_argument("run", nargs="?", default="", help="for ensemble: id of a run in $DML_RUNS")
    given = parser.parse_args(arguments)
    recorded = {"projections": projections, "neighbours": neighbours}
    _write(given.what, recorded[given.what]() if given.what in recorded else ensemble(given.run))
    return 0


def _write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    path = RECORDINGS / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(text.encode()))
    print(path)


if __name__ == "__main__":
    raise SystemExit(main())
