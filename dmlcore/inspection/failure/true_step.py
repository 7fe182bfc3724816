"""Effect of one optimiser step on a triplet: the weights change, and the test split is embedded again.

`one_step` shows the forces on three embeddings. A network cannot move these alone, because a change of the weights
changes every embedding. Here, each loss takes one step from the weights of the last evaluation, with the optimiser of
the run at its initial learning rate and without the state of earlier steps. Batch norm and dropout are in evaluation
mode, because statistics of three samples are meaningless.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.inspection.failure import answers
from dmlcore.inspection.failure.answers import Question, plain
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback

if TYPE_CHECKING:
    from dmlcore.losses import TripletLoss
    from dmlcore.training.state import TrainingState

FOLDER = "true_steps"
log = logging.getLogger(__name__)


def path_of(run: Run, query: int, right: int, wrong: int) -> Path | None:
    """Return the path of the result for a triplet of the newest evaluation; None if the run has not been evaluated."""
    return answers.path_of(run, FOLDER, query, right, wrong)


def read(path: Path | None) -> dict[str, Any] | None:
    """Return the result that `make` wrote; None if it is missing or incomplete."""
    return answers.read(path, ("rule", "before", "after"))


def make(run: Run, question: Question, tell: ProgressCallback = lambda words, done, total: None) -> Path:
    """Take one optimiser step with each requested loss, write the results and return the path of the file.

    The file holds {"rule", "before", "after"}. `rule` names the optimiser and the learning rate. `before` and
    `after[loss]` hold right and wrong (the ranks of the two neighbours), ap, map_at_r and the distances d_ap and d_an
    (missing in files of earlier releases). `after[loss]` also holds active (False if the step changed nothing) and
    hyper. The file is written after each loss and keeps the results of earlier requests.

    Args:
        run: Evaluated run.
        question: Triplet and losses.
        tell: Callback for progress.

    Raises:
        RunError: The run has no current evaluation, or its embeddings depend on neighbours.
        DataError: The data set cannot be read.
        CheckpointError: The checkpoint is damaged.
        ValueError: A sample is not in the test split, or has the wrong class for its role in the triplet.
    """
    from dmlcore import losses
    from dmlcore.inspection.failure.one_step import Embeddings, RetrievalFailure
    from dmlcore.training import batches, evaluation
    from dmlcore.training.batches import to_device
    from dmlcore.training.state import embedder

    state, path = _state(run), path_of(run, *question.triplet)
    assert path is not None  # _state raises RunError if there is no evaluation
    rows, searched = batches.rows_of(state.data, "test")
    labels, place = state.data.labels[rows], {int(index): row for row, index in enumerate(rows)}
    # Find the rows of the three samples in the test split.
    samples = question.triplet
    missing = [index for index in samples if index not in place]
    if missing:
        raise ValueError(f"sample {missing[0]} is not in the test split of {run.id}")
    triplet = [place[index] for index in samples]
    inputs = to_device(state.data, np.asarray(samples), state.device)
    # Every loss starts from these weights.
    network = embedder(state)
    start = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    def measure() -> dict[str, Any]:
        embeddings = evaluation.embed(network, state.data, "test", state.device)
        case = RetrievalFailure(
            Embeddings(embeddings, labels, searched), *triplet, on_sphere=state.spec.model.normalize
        )
        score = evaluation.score(embeddings, state.data, "test", (1,))
        d_ap, d_an = (float(np.linalg.norm(case.points[0] - case.points[i])) for i in (1, 2))
        return case.before.to_json() | {"map_at_r": score.map_at_r, "d_ap": d_ap, "d_an": d_an}

    # Keep the results of losses from earlier requests for this triplet.
    o = state.spec.optimiser
    result: dict[str, Any] = {
        "rule": f"{o.name} at rate {o.learning_rate:g}",
        "before": measure(),
        "after": (read(path) or {"after": {}})["after"],
    }
    for number, (name, hyper) in enumerate(question.losses.items()):
        tell(f"loss {number + 1} of {len(question.losses)}", number, len(question.losses))
        loss = losses.create(name, **hyper)
        active = _step(state, loss, inputs)
        result["after"][name] = (measure() if active else dict(result["before"])) | {
            "active": active,
            "hyper": plain(hyper),
        }
        network.load_state_dict(start)
        answers.keep(path, result)
        log.info("true step of %s: %s", name, result["after"][name])
    return path


def _state(run: Run) -> TrainingState:
    """Return the training state with the weights of the newest evaluation, in evaluation mode."""
    from dmlcore.storage import checkpoint
    from dmlcore.training import starts
    from dmlcore.training.state import embedder, use_best

    saved, source = checkpoint.load(run.path), run.embeddings()
    if saved is None or source is None:
        raise RunError(f"{run.id} has no checkpoint or no embeddings; evaluate it first")
    if run.spec.conditioning.neighbours:
        raise RunError(answers.READ_TOGETHER)
    state = starts.load_for_evaluation(run, saved)
    use_best(state)
    network = embedder(state).eval()
    if checkpoint.digest_of(network.state_dict()) != source.stem:
        raise RunError(f"{run.id} was trained further since its last evaluation; evaluate it again")
    return state


def _step(state: TrainingState, loss: TripletLoss, inputs: Any) -> bool:
    """Take one optimiser step on the triplet; return False if the gradient is zero and no step was taken, else True."""
    from torch import nn

    from dmlcore.training import loop, optimisers
    from dmlcore.training.state import embedder

    optimiser = optimisers.create(state.spec, state.model, state.loss)
    network = embedder(state)
    network.zero_grad()
    anchor, positive, negative = network(inputs).float()
    energy = loss.raw(anchor, positive, negative)
    if not 0 < float(energy.detach()) < loss.m2:
        return False
    energy.backward()
    norm = nn.utils.get_total_norm(loop.gradients_of(optimiser))
    optimisers.clip(optimiser, state.spec.optimiser, norm)
    optimiser.step()
    state.model.after_step()
    return True
