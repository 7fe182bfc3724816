"""Maps of a run: computed once, found by their settings, refused if damaged, with progress during computation."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.maps import Settings
from dmlcore.inspection.neighbours import Unreadable
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunError, RunStore

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 15)
BLOBS = (RNG.normal(size=(60, 8)) * 0.1 + np.eye(8)[LABELS]).astype(np.float32)
QUICK = Settings(iterations=100)


def evaluated(run: Run, digest: str = "a" * 64, embeddings: np.ndarray = BLOBS) -> Path:
    path = run.path / "embeddings" / f"{digest}.npz"
    np.savez(path, embeddings=embeddings, labels=LABELS[: len(embeddings)], indices=np.arange(len(embeddings)))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = RunStore(tmp_path).create(RunSpec(seed=3))
    evaluated(made)
    return made


def test_a_map_is_made_once_and_found_by_its_settings(run):
    assert maps.find(run, QUICK) is None
    assert maps.list_settings(run) == []
    path = maps.make(run, QUICK)
    before = path.read_bytes()
    assert maps.make(run, replace(QUICK, neighbours=99)) == path, "t-SNE has no setting for neighbours"
    assert path.read_bytes() == before
    assert maps.find(run, QUICK) == path
    assert maps.find(run, replace(QUICK, seed=1)) is None
    found = maps.read(path)
    assert found.points.shape == (60, 2)
    assert found.points.dtype == np.float32
    assert found.settings == QUICK
    assert found.perplexity == pytest.approx(59 / 3)
    assert found.words == "t-SNE, perplexity 19.67, 100 iterations, seed 0"
    assert found.quality.trustworthiness > 0.9
    assert found.source == run.embeddings(), "a map is not mistaken for embeddings"

    pca = maps.make(run, Settings("pca"))
    os.utime(path, (1, 1))
    assert maps.list_settings(run) == [Settings("pca"), QUICK]
    assert maps.read(pca).perplexity is None
    assert maps.read(pca).words == "PCA"


def test_left_to_itself_it_takes_the_seed_of_the_run(run):
    assert maps.read(maps.make(run)).settings == Settings(seed=3)


def test_a_new_evaluation_needs_a_new_map(run):
    maps.make(run, Settings("pca"))
    newer = evaluated(run, "b" * 64)
    os.utime(newer, (2e9, 2e9))
    assert maps.find(run, Settings("pca")) is None
    assert maps.list_settings(run) == []
    assert maps.make(run, Settings("pca")).name.startswith("b" * 64)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:300]),
        lambda path: np.savez(path, points=np.zeros((60, 3)), perplexity=1.0, facts=maps.read(path).settings.to_json()),
        lambda path: np.savez(path, points=np.zeros((60, 2)), perplexity=1.0, facts="{}"),
        lambda path: np.savez(path, points=np.full((60, 2), np.nan), perplexity=1.0, facts=facts(path)),
    ],
)
def test_a_damaged_map_is_refused_and_made_again(run, damage):
    path = maps.make(run, Settings("pca"))
    before = maps.read(path).points
    damage(path)
    with pytest.raises(Unreadable, match="Compute the map again"):
        maps.read(path)
    assert maps.make(run, Settings("pca")) == path
    np.testing.assert_array_equal(maps.read(path).points, before)


def facts(path: Path) -> np.ndarray:
    with np.load(path) as file:
        return file["facts"]


@pytest.mark.parametrize("embeddings", [BLOBS[:4], np.ones((30, 8), np.float32)])
def test_what_has_no_map_says_why(run, embeddings):
    evaluated(run, embeddings=embeddings)
    with pytest.raises(RunError, match=r"no t-SNE map: embeddings (must hold at least 5|are all equal)"):
        maps.make(run, QUICK)
    run.embeddings().unlink()
    with pytest.raises(RunError, match="evaluate it first"):
        maps.make(run, QUICK)


def test_new_points_come_to_their_neighbours(run):
    fresh = np.eye(8, dtype=np.float32)[:4]
    for settings in (QUICK, Settings("pca")):
        found = maps.read(maps.make(run, settings))
        placed = maps.place(found, fresh)
        distances = np.linalg.norm(placed[:, None] - found.points, axis=2)
        assert LABELS[distances.argmin(axis=1)].tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="8 dimensions"):
            maps.place(found, fresh[:, :7])
    evaluated(run, embeddings=BLOBS[:50])
    with pytest.raises(Unreadable, match="60 points, its embeddings 50"):
        maps.place(found, fresh)


def test_progress_is_told(run):
    told: list[tuple[float, str]] = []
    maps.make(run, QUICK, lambda done, words: told.append((done, words)))
    shares = [done for done, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] > 0.9
    assert told[0][1] == "t-SNE: finding neighbours"
    assert [words for _, words in told[-2:]] == ["t-SNE: iteration 100 of 100", "measuring the quality"]


def test_the_command_makes_the_map(run):
    command = ["project", run.id, "--method", "pca", "--runs", str(run.path.parent)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "PCA: trustworthiness" in done.output
    assert launch.Job(run).status() == "never", "no files must remain"
    assert maps.list_settings(run) == [Settings("pca")]
    refused = CliRunner().invoke(app, [*command, "--method", "som"])
    assert "--method: choose one of tsne, umap, pca" in str(refused.exception)


def test_a_job_can_be_stopped_and_leaves_nothing(run):
    embeddings = RNG.normal(size=(2000, 8))  # half a minute of work
    np.savez(run.embeddings(), embeddings=embeddings, labels=np.zeros(2000, int), indices=np.arange(2000))
    job = launch.Job(run)
    job.cancel()
    launch.project(run, replace(QUICK, iterations=5000))
    deadline = time.monotonic() + 180
    while not ((state := job.state()) and 0 < state.done < state.total == 1):
        assert time.monotonic() < deadline, run.log_tail()
        assert not maps.list_settings(run), "the map was finished before it could be cancelled"
        time.sleep(0.01)
    job.cancel()
    while run.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert maps.list_settings(run) == []
    assert job.status() == "cancelled"
