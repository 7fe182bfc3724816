"""The true step is one step of the optimiser of the run and does not change the run."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.inspection import neighbours as learned
from dmlcore.inspection.failure import true_step
from dmlcore.inspection.failure.answers import Question
from dmlcore.inspection.failure.one_step import Embeddings, RetrievalFailure, failures, neighbours
from dmlcore.metrics import retrieval
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunError
from dmlcore.training.build import build, load_data
from dmlcore.training.state import restore_weights, use_best
from tests.pages.conftest import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("runs"), "optimiser.learning_rate=0.01")


def worst(run: Run) -> tuple[int, int, int]:
    found = learned.read(run.embeddings())
    query = int(failures(found)[0])
    rows = query, neighbours(found, query, right=True)[-1], neighbours(found, query, right=False)[0]
    return tuple(int(found.indices[row]) for row in rows)


def files(run: Run) -> dict[str, str]:
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in run.path.glob("*")
        if p.is_file() and p.suffix != ".txt"
    }


def test_a_step_is_that_of_the_optimiser_and_all_is_embedded_again(run):
    samples, before = worst(run), files(run)
    chosen = {"ranking": {"m": 2.0}, "facenet": {"m": 0.0}, "facenet_mined": {}}
    path = true_step.make(run, Question(*samples, chosen))
    assert path == true_step.path_of(run, *samples)
    assert files(run) == before
    assert true_step.make(run, Question(*samples, {"npairs": {}})) == path  # is added to the stored results
    found = true_step.read(path)
    assert list(found["after"]) == [*chosen, "npairs"]

    # Compute the same manually: the first step of Adam on each loss from the weights of the checkpoint.
    data = load_data(run.spec)
    rows = data.splits["test"]
    labels, place = data.labels[rows], {int(index): i for i, index in enumerate(rows)}
    triplet = [place[i] for i in samples]
    for name, hyper in chosen.items():
        state = build(run.spec, data, torch.device("cpu"), start=False)
        saved = checkpoint.load(run.path)
        restore_weights(state, saved.tensors, saved.facts)
        use_best(state)
        model = state.model.eval()
        loss = losses.create(name, **hyper)
        energy = loss.clamped(*model(torch.from_numpy(data.inputs[list(samples)])))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        if energy.requires_grad and 0 < float(energy.detach()) < loss.m2:
            energy.backward()
            optimiser.step()
        with torch.no_grad():
            embeddings = model(torch.from_numpy(data.inputs[rows])).numpy()
        scores = retrieval(embeddings, labels, ks=(1,))
        case = RetrievalFailure(Embeddings(embeddings, labels, np.zeros(len(labels), bool)), *triplet, on_sphere=True)
        told = found["after"][name]
        assert (told["right"], told["wrong"]) == (case.before.right, case.before.wrong)
        assert told["ap"] == pytest.approx(scores.per_query_average_precision[triplet[0]])
        assert told["map_at_r"] == pytest.approx(scores.map_at_r)
        moved = {k: told[k] for k in found["before"]} != found["before"]
        assert moved == told["active"]
    assert found["after"]["ranking"]["active"]
    assert "adam at rate 0.01" in found["rule"]


def test_a_question_survives_json_and_what_does_not_fit_is_named(run):
    question = Question(*worst(run), {"distance_sensitive": losses.formula("ranking").defaults})
    again = Question.from_json(question.to_json())
    assert (again.query, again.losses["distance_sensitive"]["m2"]) == (question.query, None)
    with pytest.raises(ValueError, match="not in the test split"):
        true_step.make(run, Question(10**7, 1, 2, {}))
    assert true_step.read(run.path / "spec.json") is None
    assert true_step.read(None) is None


def test_weights_that_were_not_evaluated_are_refused(run):
    source = run.embeddings()
    other = source.with_name("0" * 64 + ".npz")
    source.rename(other)
    try:
        with pytest.raises(RunError, match="evaluate it again"):
            true_step.make(run, Question(*worst(run), {}))
    finally:
        other.rename(source)
