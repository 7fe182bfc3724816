"""A study from end to end on small runs: done runs are kept, lost ones resumed, concurrent conductors refused."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from dmlcore.cli.options import CommandError
from dmlcore.cli.study import study as command
from dmlcore.data import DataError
from dmlcore.experiments import studies
from dmlcore.experiments.studies.results import save
from dmlcore.experiments.studies.shown_maps import maps_of
from dmlcore.inspection.local import weight_maps
from dmlcore.jobs import launch
from dmlcore.jobs.launch import JobError
from dmlcore.spec import SpecError
from dmlcore.storage import locks
from dmlcore.storage.runs import RunStore, best_validation
from dmlcore.training.loop import train
from tests.cli.here import here
from tests.data import layouts
from tests.experiments.studies.tiny import HEAD, SMALL
from tests.started import run_python, until
from tests.training.resumed import trained
from tests.wording import says

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_tasks")]
TOML = f"""{HEAD}
seeds = [0]
{SMALL}
[base.schedule]
steps = {{steps}}
validate_every = 2
checkpoint_every = 2

[[variants]]
name = "first"

[[variants]]
name = "second"
against = ["first"]
overrides = ["loss.m=0.3"]
"""


def study(folder: Path, steps: int = 3, name: str = "tiny") -> studies.StudyRequest:
    (folder / f"{name}.toml").write_text(TOML.format(steps=steps))
    return studies.StudyRequest(study=str(folder / f"{name}.toml"))


def test_runs_are_found_by_what_they_are_not_by_their_name(tmp_path):
    store, request = RunStore(tmp_path / "runs"), study(tmp_path)
    first, second = request.entries()
    assert studies.find([first, second], store) == [None, None]
    trained(store, first.spec.with_overrides(["seed=1"]))
    queued = store.create(second.spec)
    named = trained(store, first.spec.with_overrides(["name=by hand"]))
    later = trained(store, first.spec)
    assert [run and run.id for run in studies.find([first, second], store)] == [named.id, queued.id]
    assert later.state().state == "done"
    (measured,) = studies.measured([first, second], store)
    assert (measured.run, measured.variant, measured.digest) == (named.id, "first", first.digest())


def test_the_command_makes_the_runs_keeps_them_and_writes_what_they_reached(tmp_path, monkeypatch, capsys):
    request, runs = study(tmp_path), str(tmp_path / "runs")
    made = run_python("-m", "dmlcore", "study", request.study, "--runs", runs, "--write")
    assert made.returncode == 0, made.stderr
    store = RunStore(runs)
    found = studies.find(request.entries(), store)
    assert [run.state().state for run in found] == ["done", "done"]
    assert "run 2 of 2: second, seed 0: " in made.stdout

    again = here("study", request.study, "--runs", runs, "--only", "first")
    assert again.returncode == 0
    assert len(store.list()) == 2
    assert "second" not in again.stdout.splitlines()[-1]

    results = studies.load(request.study)
    assert [(r.variant, r.seed, r.steps) for r in results.runs] == [("first", 0, 3), ("second", 0, 3)]
    assert [r.digest for r in results.runs] == [e.digest() for e in request.entries()]
    live = studies.measured(request.entries(), store)
    whole = [r.model_copy(update={"run": "", "classes": studies.by_class(r, store)}) for r in live]
    assert whole == list(results.runs)
    assert all(len(r.classes) > 0 and abs(np.mean(r.classes) - r.scores["map_at_r"]) < 0.02 for r in whole)
    rows = [row for row in found[0].metrics()[0] if row["kind"] == "scores" and row["of"] == "trained"]
    (learned,) = (row for row in found[0].metrics()[0] if row["kind"] == "train")
    assert results.runs[0].scores == {"map_at_r": rows[-1]["map_at_r"], "recall_at_1": rows[-1]["recall_at"]["1"]} | {
        f"train.{key}": value for key, value in learned.items() if key not in ("kind", "step")
    }
    assert results.runs[0].validation.step == (0, 2, 3)
    assert results.torch
    assert results.data["digits"]
    assert str(tmp_path) not in studies.results_path(request.study).read_text()

    # One table of all variants with an own baseline, also for two studies; without runs, of the written results.
    monkeypatch.setenv("DML_RUNS", runs)
    command(f"{request.study},projections-birds", table=True, runs=tmp_path / "elsewhere")
    shown = capsys.readouterr().out
    assert "tiny.toml: no finished run here; shipped results of 20" in shown
    assert "projections-birds: no finished run here" in shown
    assert shown.splitlines()[-1] == made.stdout.splitlines()[-1]
    assert re.match(
        r"digits +second .+ first .+ no significant difference  higher in \d+ of \d+, ", shown.splitlines()[-1]
    )
    with pytest.raises(CommandError, match="--only: variants belong to one study"):
        command(f"{request.study},projections-birds", only=["first"], runs=tmp_path / "elsewhere")

    # Results that were written without baselines get those of the same runs.
    assert {"chance", "inputs", "untrained", "pca_whitened", "whitened"} == set(results.runs[0].baselines)
    assert "train.map_at_r" in results.runs[0].baselines["untrained"]
    bare = results.model_copy(update={"runs": tuple(r.model_copy(update={"baselines": {}}) for r in results.runs)})
    save(bare, studies.results_path(request.study))
    studies.add_baselines(request.study, store)
    assert studies.load(request.study) == results
    study(tmp_path, steps=4)
    with pytest.raises(SpecError, match="has changed since its results were written"):
        studies.add_baselines(request.study, store)


def test_a_killed_study_goes_on_from_its_last_checkpoint(tmp_path):
    store, request = RunStore(tmp_path / "runs"), study(tmp_path, steps=100_000)
    studies.launch(request, store)
    place = studies.conduct_of(request.study, store)
    with pytest.raises(JobError, match=r"tiny(:| is) (already|.* running)"):
        studies.launch(request, store)

    def current():
        return studies.find(request.entries(), store)[0]

    until(lambda: (run := current()) and run.state().step > 2, place.log_tail)
    with pytest.raises(locks.Busy):
        studies.conduct(request, store)
    state, run = place.state(), current()
    assert (place.status(), state.run) == ("running", run.id)
    os.kill(state.pid, signal.SIGKILL)
    os.kill(run.state().pid, signal.SIGKILL)
    until(lambda: place.status() == "lost" and run.status() == "lost", place.log_tail)
    at = run.state().step

    studies.launch(request, store)
    until(lambda: run.status() == "running" and run.state().step > at, place.log_tail)
    assert [r.id for r in store.list()] == [run.id]
    studies.cancel(place)
    until(lambda: place.status() == "cancelled" and not place.is_alive(), place.log_tail)
    assert run.status() == "cancelled"
    assert run.metrics()[0][-1]["step"] == run.state().step
    assert studies.find(request.entries(), store)[1] is None


class Here:
    """Replacement for a process: the task is done as soon as it has started."""

    def __init__(self, run, task: str) -> None:
        with pytest.MonkeyPatch.context() as patch, run.lock():
            patch.setenv("DML_RUNS", str(run.path.parent))
            train(run) if task == "train" else weight_maps.write(run)

    def poll(self) -> int:
        return 0

    wait = poll


def test_variants_start_from_the_pretraining_of_their_own_store_and_collages_are_weighed(tmp_path, monkeypatch):
    """One run in a separate process, because only this shows in which store it searches its pretraining."""
    started = launch.start_process
    monkeypatch.setattr(
        launch,
        "start_process",
        lambda run, task: (started if task == "train" and run.spec.model.start else Here)(run, task),
    )
    root = layouts.cifar100(tmp_path / "cifar-100-python", train=4, test=1)
    store = RunStore(tmp_path / "runs")
    overrides = ("schedule.steps=1", f"data.root={root}", "batch.classes=16", "batch.samples=2", "model.name=conv4_32")
    request = studies.StudyRequest(study="collage", overrides=overrides, seeds=(0,), only=("GAP",))
    said: list[str] = []
    state = studies.conduct(request, store, report=said.append)
    assert state.state == "done", (state.message, said)
    pretraining, gap = studies.find(request.entries(), store)
    assert gap.spec.model.start == pretraining.id
    assert weight_maps.path_of(pretraining) is None
    measured = studies.measured(request.entries(), store)
    assert measured[-1].scores["foreground"] == pytest.approx(0.25, abs=1e-3)
    maps = maps_of(request.entries(), store)
    assert maps.seed == 0
    assert len(maps.indices) == len(maps.names) == len(set(maps.content)) == len(maps.tile) == 24
    assert set(maps.tile) == {0, 1, 2, 3}
    assert maps.of("GAP").sum((1, 2)) == pytest.approx(1, abs=1e-2)

    # A run that fails affects only itself and the runs that start from it.
    monkeypatch.setattr(launch, "start_process", Here)
    failing = request.model_copy(update={"overrides": (*overrides, "model.embedding_dim=7", "batch.classes=99")})
    state = studies.conduct(failing, store, report=said.append)
    assert state.state == "incomplete"
    assert state.message.startswith("2 of 2 runs are not finished: run 1 of 2: pretraining")
    assert any("a batch needs 99 classes" in line for line in said)
    assert any(says(line, "GAP, seed 0", "skipped", "pretraining") for line in said)


def test_candidates_are_trained_first_and_the_chosen_one_with_the_other_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "start_process", Here)
    text = TOML.format(steps=4).replace("seeds = [0]", "seeds = [0, 1]\nchoice_seeds = [0]")
    rates = [f"optimiser.learning_rate={rate}" for rate in ("1e-6", "1e-2")]
    text = text.replace('name = "first"', f'name = "first"\nchoose = ["{rates[0]}", "{rates[1]}"]')
    text = text.replace(
        'overrides = ["loss.m=0.3"]', f'overrides = ["loss.m=0.3"]\nchoose = ["{rates[1]}", "{rates[0]}"]'
    )
    (tmp_path / "choice.toml").write_text(text)
    store, request = RunStore(tmp_path / "runs"), studies.StudyRequest(study=str(tmp_path / "choice.toml"))
    said: list[str] = []
    state = studies.conduct(request, store, report=said.append)
    assert (state.state, state.done, state.total) == ("done", 5, 6), state
    assert len(store.list()) == 6
    candidates = [line for line in said if "seed 0" in line]
    assert len(candidates) == 8
    assert not any("MAP@R" in line for line in candidates), "test scores of candidates are no results"

    reached = studies.measured(request.entries(), store)
    assert [(run.variant, run.seed) for run in reached] == [
        (name, seed) for seed in (0, 1) for name in ("first", "second")
    ]
    for run in reached:
        of_variant = [made for made in store.list() if bool(made.spec.loss.parameters) == (run.variant == "second")]
        validated = {
            made.spec.optimiser.learning_rate: (best_validation(made.metrics()[0]),)
            for made in of_variant
            if made.spec.seed == 0
        }
        assert run.candidates == {rate: validated[float(rate.partition("=")[2])] for rate in rates}
        assert run.candidate == max(run.candidates, key=lambda name: run.candidates[name])
    studies.write(request, store)
    assert list(studies.load(request.study).runs) == [
        run.model_copy(update={"run": "", "classes": studies.by_class(run, store)}) for run in reached
    ]


def test_what_cannot_be_studied_is_refused_before_anything_is_made(tmp_path):
    store, request = RunStore(tmp_path / "runs"), study(tmp_path)
    missing = request.model_copy(update={"overrides": ("data.name=cifar100", f"data.root={tmp_path}")})
    for start in (studies.launch, studies.conduct):
        with pytest.raises(DataError, match="CIFAR-100 was not found"):
            start(missing, store)
    with pytest.raises(SpecError, match="no results to write"):
        studies.write(request, store)
    assert studies.load(request.study) is None
    assert not store.root.exists()
    found = here("study", request.study, "--runs", str(store.root), "--seeds", "x")
    assert (found.returncode, found.stdout) == (1, "")
    assert "--seeds: give whole numbers" in found.stderr


def test_the_table_has_means_and_sample_deviations():
    def one(variant, seed, value):
        return studies.Measured(
            variant=variant,
            seed=seed,
            digest="",
            scores={"map_at_r": value},
            validation={},
            steps=1,
            seconds=1,
            device="",
        )

    rows = studies.table([one("a", 0, 0.2), one("b", 0, 0.5), one("a", 1, 0.4), one(studies.PRETRAINING, 0, 1.0)])
    assert [(row["variant"], row["seeds"]) for row in rows] == [("a", 2), ("b", 1)]
    assert rows[0]["map_at_r"] == (pytest.approx(0.3), pytest.approx(0.02**0.5))
    assert rows[1]["map_at_r"] == (0.5, None)
    assert "30.00 ± 14.14 %" in studies.as_text(rows)


def test_results_are_one_run_a_line_and_those_of_an_earlier_release_are_still_read(tmp_path):
    request = study(tmp_path)
    results = studies.load("omniglot-collage").model_copy(update={"study": "tiny"})
    path = save(results, studies.results_path(request.study))
    assert path.read_text().count("\n") == 1 + len(results.runs) + 1, "head, runs, maps"
    assert studies.load(request.study) == results
    path.write_text(path.read_text() + "[]\n")
    with pytest.raises(SpecError, match=r"tiny.jsonl cannot be read"):
        studies.load(request.study)
    path.unlink()
    assert studies.load(request.study) is None
    path.with_suffix(".results.json").write_text(results.model_dump_json())
    assert studies.load(request.study) == results
