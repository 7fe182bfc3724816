from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import Measured, StudyRequest
from dmlcore.experiments.studies.results import ValidationCurve
from dmlcore.jobs.launch import JobError
from dmlcore.storage.runs import RunStore
from pages.shared.widgets.study import panel as study_panel
from pages.shared.widgets.study import scores as study_scores
from tests.wording import says


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    return RunStore(tmp_path)


def measured(**values) -> Measured:
    known = {"variant": "GAP", "seed": 7, "digest": "", "scores": {}, "steps": 50, "seconds": 1.0, "device": "CPU"}
    return Measured(**known | values)


def panel():
    from pages.shared.widgets.study import panel as study_panel
    from pages.shared.widgets.study.panel import Layout

    columns = {"map_at_r": "test MAP@R", "overlap.hull_iou": "hull IoU"}
    study_panel.show("tokens", Layout(columns, scores="What is measured.", curves="What is drawn."))
    study_panel.about("tokens")


@pytest.fixture
def open_panel(store, monkeypatch):
    """Return a function that opens the panel with these shipped results."""

    def run(results: studies.StudyResults | None = None) -> AppTest:
        monkeypatch.setattr(studies, "load", lambda name: results)
        app = AppTest.from_function(panel, default_timeout=180).run()
        assert not app.exception
        return app

    return run


def test_nothing_trained_is_said_with_what_it_would_take(open_panel):
    app = open_panel()
    said = " ".join(m.value for m in app.markdown)
    assert f"{len(studies.read('tokens').variants)} variants" in said
    assert app.button(key="start-tokens").label == "Start the study"
    assert studies.read("tokens").claim in said


def test_shipped_results_are_shown_as_mean_and_deviation_with_their_origin(open_panel):
    runs = tuple(
        measured(
            seed=entry.seed,
            digest=entry.digest(),
            scores={"map_at_r": value, "overlap.hull_iou": 0.25},
            baselines={"inputs": {"map_at_r": 0.5}, "untrained": {"map_at_r": value / 2}},
            validation=ValidationCurve(step=(0, 512), map_at_r=(0.1, value)),
        )
        for entry, value in zip(studies.expand(studies.read("tokens"), only=["GAP"]), (0.2, 0.3, 0.4), strict=True)
    )
    origin = {"written": "2026-11-21", "torch": "2.13", "machine": "test"}
    app = open_panel(studies.StudyResults(study="tokens", data={}, runs=runs, **origin))
    table, _ = app.dataframe  # the scores and the record of trials
    assert table.value.fillna("–").to_dict("records") == [
        {"variant": "raw inputs", "seeds": 3, "test MAP@R": "50.0 ± 0 %", "hull IoU": "–"},
        {"variant": "untrained network", "seeds": 3, "test MAP@R": "15.0 ± 5.0 %", "hull IoU": "–"},
        {"variant": "GAP", "seeds": 3, "test MAP@R": "30.0 ± 10.0 %", "hull IoU": "0.250 ± 0.000"},
    ]
    compared = ("GAP", "below the raw inputs", "not significantly", "50.0", "untrained network", "15.0")
    assert any(says(m.value, *compared) for m in app.markdown)
    assert says(" ".join(c.value for c in app.caption), *origin.values())
    assert "The study has changed" not in " ".join(w.value for w in app.warning)


def test_a_study_that_is_already_running_is_refused_aloud(open_panel, monkeypatch):
    def busy(request: StudyRequest, store: RunStore, backend: str) -> None:
        raise JobError("tokens is already running")

    monkeypatch.setattr(study_panel.studies, "launch", busy)
    app = open_panel()
    app.button(key="start-tokens").click().run()
    assert [e.value for e in app.error] == ["Tokens is already running"]


def test_curves_are_those_of_the_best_fold_of_a_seed():
    runs = [
        measured(fold=fold, validated=v, best_step=50, validation=ValidationCurve(step=(0, 50), map_at_r=(0.1, v)))
        for fold, v in ((1, 0.3), (2, 0.6), (3, 0.4))
    ]
    [found] = study_scores.seed_curves(runs)
    assert (found.variant, found.seed, list(found.values)) == ("GAP", 7, [0.1, 0.6])


def test_candidates_are_counted_as_the_runs_that_are_trained(store, monkeypatch):
    """The runs that depend on a choice count once for all candidates, before and after the choice."""
    request = StudyRequest(study="forces-omniglot")
    entries = request.entries()
    runs = studies.candidates.count_runs(entries)
    assert study_panel._done(request) == [False] * runs
    dependent = [entry for entry in entries if entry.if_chosen]
    run = store.create(dependent[1].spec)
    with run.lock():
        run.update(state="running")
        run.update(state="done")
    assert sum(study_panel._done(request)) == 1
    monkeypatch.setattr(studies, "load", lambda name: None)
    app = AppTest.from_string(
        "from pages.shared.widgets.study import panel\npanel.progress('forces-omniglot')", default_timeout=180
    ).run()
    assert not app.exception
    assert app.button[0].label == f"Continue the study ({runs - 1} of {runs} runs missing)"
