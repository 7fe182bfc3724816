"""Helpers that stop and resume runs, for the tests of all ways of training."""

from collections.abc import Iterator

import torch

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.checkpoint import Checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop


def trained(store: RunStore, spec: RunSpec, stops: tuple[int, ...] = (), dataset: Dataset | None = None) -> Run:
    """Return a finished run that was stopped after each of these steps and resumed."""
    run = store.create(spec)
    with run.lock():
        for stop in stops:
            asked: Iterator[bool] = iter([False] * (stop - run.state().step - 1) + [True])  # once a step
            loop.train(run, dataset=dataset, stop=lambda asked=asked: next(asked))
            assert run.state().step == stop, run.state().message
            run.update(state="queued")
        assert loop.train(run, dataset=dataset).state == "done", run.state().message
    return run


def same_to_the_bit(whole: Run, stopped: Run) -> tuple[Checkpoint, Checkpoint]:
    """Assert that both runs have the same rows, facts and tensors; return their last checkpoints."""
    assert (stopped.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()
    one, two = checkpoint.load(whole.path), checkpoint.load(stopped.path)
    assert one.facts == two.facts
    assert one.tensors.keys() == two.tensors.keys()
    assert all(torch.equal(one.tensors[name], two.tensors[name]) for name in one.tensors)
    return one, two
