"""The form of a fork starts the run that it shows and says which changes are impossible."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.jobs import launch
from dmlcore.storage.runs import EXAMPLE_REMOVED, Run, RunStore
from dmlcore.training.build import load_data
from pages.shared.words.sentences import called
from tests.pages.conftest import load_page, make_run
from tests.wording import says

open_page = partial(load_page, "fork")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kept")
    make_run(root, "schedule.keep_every=4", "model.hidden=[16]", "loss.m=0.5", "name=Parent")
    return root


@pytest.fixture
def run(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    root = tmp_path / "runs"
    shutil.copytree(kept, root)
    monkeypatch.setenv("DML_RUNS", str(root))
    started: list[str] = []
    # start no process
    monkeypatch.setattr(launch, "start_process", lambda run, task: started.append(f"{task} {run.id}"))
    return RunStore(root).list()[0]


def texts(app: AppTest) -> str:
    return "\n".join(element.value for kind in (app.markdown, app.text, app.code, app.caption) for element in kind)


def test_nothing_changed_is_said_and_the_clock_of_the_parent_goes_on(run: Run) -> None:
    app = open_page(run=run.id)
    assert not app.exception
    assert "will repeat its parent bit for bit" in texts(app)
    assert app.select_slider(key=f"fork-step-{run.id}").value == 4
    app.button(key="fork-start").click().run()
    assert not app.exception
    made = next(other for other in RunStore().list() if other.id != run.id)
    assert made.spec.differences(run.spec) == [
        f"fork.run: {run.id!r} | ''",
        "fork.step: 4 | 0",
        "name: 'Parent from 4' | 'Parent'",
    ]
    assert made.spec.schedule.steps == 8
    assert (made.path / "origin.ckpt").samefile(run.path / "kept" / "00000004.ckpt")


def test_another_loss_rate_and_training_split_reach_the_fork(run: Run) -> None:
    app = open_page(run=run.id, step="0")
    app.selectbox(key="fork-loss-name").set_value("contrastive").run()
    app.number_input(key="fork-optimiser-learning-rate").set_value(0.01).run()
    app.multiselect(key=f"fork-leave-{run.id}").set_value([3, 9]).run()
    app.number_input(key=f"fork-more-{run.id}-0").set_value(30).run()
    assert not app.exception
    assert "Loss: Ranking → Contrastive\n" in texts(app)
    assert "Learning rate: 0.001 → 0.01\n" in texts(app)
    assert "Classes left out of training: none → 3, 9\n" in texts(app)
    command = next(code.value for code in app.code if code.value.startswith("python -m dmlcore fork"))
    words = (f"fork {run.id} --step 0", "--leave-out 3 --leave-out 9", "loss.name=contrastive", "schedule.steps=30")
    assert all(word in command for word in words)
    app.button(key="fork-start").click().run()
    spec = next(other for other in RunStore().list() if other.id != run.id).spec
    assert (spec.loss.name, spec.optimiser.learning_rate, spec.schedule.steps) == ("contrastive", 0.01, 30)
    assert (spec.fork.step, spec.fork.leave_out) == (0, (3, 9))


def test_a_link_leaves_samples_out(run: Run) -> None:
    train = load_data(run.spec).splits["train"]
    first, second = int(train[0]), int(train[1])
    app = open_page(run=run.id, step="0", without=f"{second},{first}")
    assert not app.exception
    assert f"Samples left out of training: none → {first}, {second}\n" in texts(app)
    command = next(code.value for code in app.code if code.value.startswith("python -m dmlcore fork"))
    assert f"--without {first},{second}" in command
    app.text_input(key=f"fork-without-{run.id}").set_value("1; 2").run()
    assert says(texts(app), "expected numbers of samples")
    assert app.button(key="fork-start").disabled


def test_what_cannot_be_trained_keeps_the_fork_from_starting(run: Run) -> None:
    app = open_page(run=run.id, step="0")
    app.number_input(key=f"fork-more-{run.id}-0").set_value(None).run()
    app.number_input(key="fork-optimiser-learning-rate").set_value(-1).run()
    missing, beyond = (text.value for text in app.text if "must" in text.value or "required" in text.value)
    assert says(missing, "Further steps", "required")
    assert says(beyond, "Learning rate", "0", "10", "-1")
    assert app.button(key="fork-start").disabled
    app = open_page(run=run.id)
    app.multiselect(key=f"fork-leave-{run.id}").set_value([1, 2, 3]).run()
    assert not app.exception
    assert says(texts(app), "Batch classes", "8 classes", "7")
    assert app.button(key="fork-start").disabled


def test_a_fork_tells_what_was_carried_over(run: Run) -> None:
    made = RunStore().create(run.spec.with_overrides([f"fork.run={run.id}", "fork.step=4", "loss.m=0.1"]))
    row = {
        "kind": "fork",
        "step": 4,
        "run": run.id,
        "changed": ["loss.parameters.m"],
        "carried": ["network"],
        "anew": [],
    }
    (made.path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    app = open_page(run=run.id)
    assert not app.exception
    assert says(texts(app), "step 4", called(run), "Loss parameters", "network", "nothing")
    assert not open_page(run=made.id).exception  # this run has no checkpoint yet


def test_without_runs_it_leads_to_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    (tmp_path / EXAMPLE_REMOVED).touch()
    app = open_page()
    assert not app.exception
    assert app.get("page_link")[0].proto.page == "data"


def test_the_train_page_tells_a_fork_and_can_begin_anew(run: Run) -> None:
    made = RunStore().create(run.spec.with_overrides([f"fork.run={run.id}", "fork.step=4", "fork.leave_out=[3]"]))
    app = load_page("settings", like=made.id)
    assert not app.exception
    assert f"Continues from step 4 of “{called(run)}”." in texts(app)
    app.button(key="unfork").click().run()
    assert not app.exception
    assert "Continues from step" not in texts(app)
    assert '[fork]\nrun = ""' in texts(app)
