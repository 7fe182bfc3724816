"""Row 14 of the fault matrix: runs of every released format can be opened, resumed and compared.

`tests/fixtures/runs/README.md` lists the versions that wrote them.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.inspection import comparison, neighbours
from dmlcore.jobs.launch import prepare_resume
from dmlcore.monitoring import comparability
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore, scores, series
from dmlcore.training import loop
from tests.training.resumed import trained

STORED = Path(__file__).parents[1] / "fixtures" / "runs"
RELEASES = sorted(path.name for path in (STORED / "finished").iterdir())


@pytest.fixture
def finished(tmp_path):
    shutil.copytree(STORED / "finished", tmp_path / "finished")
    return RunStore(tmp_path / "finished")


def test_row_14_runs_of_every_release_are_listed_and_read(finished):
    assert finished.unreadable() == []
    assert {run.id for run in finished.list()} == set(RELEASES)
    for run in finished.list():
        assert run.status() == "done"
        assert run.state().step == run.spec.schedule.steps == 12
        rows, _ = run.metrics()
        assert series(rows, "step", "loss")[0] == list(range(1, 13))
        assert scores(rows).keys() == {"inputs", "untrained", "trained"}
        assert checkpoint.load(run.path).facts["step"] == 12
        found = neighbours.read(run.embeddings())
        assert len(found.labels) == 896
        assert np.nanmean(found.average_precision) == pytest.approx(scores(rows)["trained"]["map_at_r"], abs=1e-3)


@pytest.mark.parametrize("release", RELEASES)
def test_row_14_a_run_of_each_release_goes_on_as_it_would_have_then(release, tmp_path):
    shutil.copytree(STORED / "stopped" / release, tmp_path / release)
    run, then = RunStore(tmp_path).open(release), RunStore(STORED / "finished").open(release)
    assert (run.status(), run.state().step) == ("cancelled", 6)
    with run.lock():
        prepare_resume(run)
        state = loop.train(run)
    assert (state.state, state.step) == ("done", 12), state.message
    ours, theirs = numbers(run), numbers(then)
    assert theirs.keys() <= ours.keys()  # a later release may measure more
    # Other processors round differently: 2 of 896 queries may have another nearest neighbour.
    assert {key: ours[key] for key in theirs} == pytest.approx(theirs, rel=1e-3, abs=2.5e-3, nan_ok=True)
    mine, stored = checkpoint.load(run.path), checkpoint.load(then.path)
    for name, tensor in stored.tensors.items():
        torch.testing.assert_close(mine.tensors[name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("release", RELEASES)
def test_row_14_a_run_of_each_release_may_be_forked(release, finished):
    parent = finished.open(release)
    changes = [f"fork.run={release}", "fork.step=12", "schedule.steps=14", "loss.name=contrastive"]
    run = trained(finished, parent.spec.with_overrides(changes))
    assert series(run.metrics()[0], "step", "loss")[0] == [13, 14]


def numbers(run):
    """Return all numbers that the run measured, by (kind, of, step, key path)."""

    def leaves(value, *names):
        if isinstance(value, dict):
            return [leaf for key, inner in value.items() for leaf in leaves(inner, *names, key)]
        if isinstance(value, list):
            return [leaf for place, inner in enumerate(value) for leaf in leaves(inner, *names, place)]
        return [(names, value)] if isinstance(value, (int, float)) else []

    return {
        (row["kind"], row.get("of"), row["step"], *names): value
        for row in run.metrics()[0]
        for names, value in leaves(row)
    }


def test_row_14_runs_of_all_releases_are_compared(finished):
    runs = [finished.open(release) for release in RELEASES]
    assert "incomparable" not in {issue.severity for issue in comparability.lint(runs)}
    views = [neighbours.read(run.embeddings()) for run in runs]
    found = comparison.compare(views)
    assert found.right.shape == (len(runs), 896)
    assert found.average_precision.mean(1) == pytest.approx([np.mean(view.average_precision) for view in views])
