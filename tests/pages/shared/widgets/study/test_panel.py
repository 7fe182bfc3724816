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


def panel():
    from pages.shared.widgets.study import panel as study_panel
    from pages.shared.widgets.study.panel import Layout

    columns = {"map_at_r": "test MAP@R", "overlap.hull_iou": "hull IoU"}
    study_panel.show("tokens", Layout(columns, scores="What is measured.", curves="What is drawn."))
    study_panel.about("tokens")


def test_nothing_trained_is_said_with_what_it_would_take(store, monkeypatch):
    monkeypatch.setattr(studies, "load", lambda name: None)
    app = AppTest.from_function(panel, default_timeout=180).run()
    assert not app.exception
    said = " ".join(m.value for m in app.markdown)
    assert "Not trained here yet" in said
    assert f"{len(studies.read('tokens').variants)} variants" in said
    assert app.button(key="start-tokens").label == "Start the study"
    assert studies.read("tokens").claim in said


def test_shipped_results_are_shown_as_mean_and_deviation_with_their_origin(store, monkeypatch):
    entries = studies.expand(studies.read("tokens"), only=["GAP"])
    runs = tuple(
        Measured(
            variant="GAP",
            seed=entry.seed,
            digest=entry.digest(),
            scores={"map_at_r": value, "overlap.hull_iou": 0.25},
            baselines={"inputs": {"map_at_r": 0.5}, "untrained": {"map_at_r": value / 2}},
            validation=ValidationCurve(step=(0, 512), map_at_r=(0.1, value)),
            steps=512,
            seconds=1.0,
            device="CPU",
        )
        for entry, value in zip(entries, (0.2, 0.3, 0.4), strict=True)
    )
    shipped = studies.StudyResults(
        study="tokens", written="2026-11-21", torch="2.13", machine="test", data={}, runs=runs
    )
    monkeypatch.setattr(studies, "load", lambda name: shipped)
    app = AppTest.from_function(panel, default_timeout=180).run()
    assert not app.exception
    table, _ = app.dataframe  # the scores and the record of trials
    assert table.value.fillna("–").to_dict("records") == [
        {"variant": "raw inputs", "seeds": 3, "test MAP@R": "50.0 ± 0 %", "hull IoU": "–"},
        {"variant": "untrained network", "seeds": 3, "test MAP@R": "15.0 ± 5.0 %", "hull IoU": "–"},
        {"variant": "GAP", "seeds": 3, "test MAP@R": "30.0 ± 10.0 %", "hull IoU": "0.250 ± 0.000"},
    ]
    assert any(
        says(m.value, "GAP", "below the raw inputs", "not significantly", "50.0", "untrained network", "15.0")
        for m in app.markdown
    )
    said = " ".join(c.value for c in app.caption)
    assert says(said, "2026-11-21", "torch 2.13", "test")
    assert "The study has changed" not in " ".join(w.value for w in app.warning)


def test_a_study_that_is_already_running_is_refused_aloud(store, monkeypatch):
    monkeypatch.setattr(studies, "load", lambda name: None)

    def busy(request: StudyRequest, store: RunStore, backend: str) -> None:
        raise JobError("tokens is already running")

    monkeypatch.setattr(study_panel.studies, "launch", busy)
    app = AppTest.from_function(panel, default_timeout=180).run()
    app.button(key="start-tokens").click().run()
    assert [e.value for e in app.error] == ["Tokens is already running"]


def test_curves_are_those_of_the_best_fold_of_a_seed():
    def run(fold, validated):
        return Measured(
            variant="a",
            seed=7,
            digest="",
            scores={"map_at_r": 0.5},
            validation=ValidationCurve(step=(0, 50), map_at_r=(0.1, validated)),
            steps=50,
            seconds=1.0,
            device="CPU",
            fold=fold,
            validated=validated,
            best_step=50,
        )

    [found] = study_scores.seed_curves([run(1, 0.3), run(2, 0.6), run(3, 0.4)])
    assert (found.variant, found.seed, list(found.values)) == ("a", 7, [0.1, 0.6])


def test_candidates_are_counted_as_the_runs_that_are_trained(store, monkeypatch):
    """The runs that depend on a choice count once for all candidates, before and after the choice."""
    request = StudyRequest(study="forces-omniglot")
    entries = request.entries()
    assert study_panel._done(request) == [False] * studies.candidates.count_runs(entries)
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
    assert app.button[0].label == "Continue the study (29 of 30 runs missing)"
