"""The Studies page: scores, comparisons, candidates, selections, correlations and sweeps of measured studies."""

from __future__ import annotations

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import Measured, StudyResults
from dmlcore.experiments.studies.results import ValidationCurve
from tests.pages.conftest import load_page


@pytest.fixture
def train_study(monkeypatch, tmp_path):
    """Return a function that opens a study with results: scores by entry, and the same validation curve for all."""

    def open_with(name: str, scores, curve: ValidationCurve | None = None, seeds: tuple[int, ...] | None = None):
        monkeypatch.setenv("DML_RUNS", str(tmp_path))
        entries = studies.expand(studies.read(name), **({"seeds": seeds} if seeds else {}))
        known = {"validation": curve or ValidationCurve(), "steps": 200, "seconds": 1.0, "device": "CPU"}
        runs = tuple(
            Measured(variant=e.variant, seed=e.seed, digest=e.digest(), scores=scores(number, e), **known)
            for number, e in enumerate(entries)
        )
        found = StudyResults(study=name, written="2026-11-22", torch="2.13.0", machine="a test", data={}, runs=runs)
        monkeypatch.setattr(studies, "load", lambda asked: found if asked == name else None)
        return open_page(name)

    return open_with


def open_page(name: str) -> AppTest:
    app = load_page("studies")
    app.selectbox(key="study").select(name).run()
    assert not app.exception
    return app


def table(app: AppTest, column: str) -> pd.DataFrame:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def has_text(app: AppTest, text: str) -> bool:
    return any(text in element.value for element in (*app.markdown, *app.caption))


def test_a_study_of_many_variants_shows_bars_numbers_curves_and_the_printed_table(train_study):
    variants = [variant.name for variant in studies.read("toy-table").variants]
    names = ("train.map_at_r", "train.r_precision", "train.recall_at_1", "train.recall_at_8", "map_at_r", "recall_at_1")

    def scores(number, entry):  # MAP@R 0.30 and 0.32 with m = 0.01, then decreasing
        return dict.fromkeys(names, 0.30 + 0.02 * entry.seed - 0.001 * (number % len(variants)))

    app = train_study("toy-table", scores, ValidationCurve(step=(0, 10), map_at_r=(0.2, 0.3)), seeds=(0, 1))
    frames = {frame.value.columns[1]: frame.value for frame in app.dataframe}
    assert frames["R@1"]["MAP@R"][0] == "31.0 ± 1.4 | 37.32"  # Karaman 2021, Table 4.1, ranking m = 0.01
    assert frames["seeds"]["train MAP@R"][0] == pytest.approx(31.0)
    assert frames["seeds"]["± train MAP@R"][0] == pytest.approx(1.4142, abs=1e-3)
    assert has_text(app, "Ranking, m = 0.01 minus Ranking, m = 0.1: +0.1")
    app.selectbox(key="against-toy-table").select("Ranking, m = 40").run()
    assert has_text(app, "Ranking, m = 0.01 minus Ranking, m = 40: +0.3")
    assert app.multiselect[0].value == variants[:4]


def test_a_study_with_candidates_shows_the_chosen_ones_and_counts_the_others(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    app = open_page("forces-birds")
    scores = table(app, "chosen")
    variants = [variant.name for variant in studies.read("forces-birds").variants]
    chosen = scores[scores["variant"].isin(variants)]["chosen"]
    assert len(chosen) == len(variants)
    written = [studies.load(name).runs for name in ("forces-birds", "forces-omniglot")]
    assert all(text.endswith(f"(of {len(written[0][0].candidates)})") for text in chosen)
    rejected = sum(len({r.variant: r for r in runs}) * (len(runs[0].candidates) - 1) for runs in written)
    assert sum(table(app, "configuration")["result"].str.startswith("not chosen, validation ")) == rejected


def test_a_study_on_selection_shows_the_scores_of_both_selections_and_the_steps_to_95_percent(train_study):
    def scores(number, entry):
        by_test = {"selection.step": 0.31 + 0.001 * entry.seed, "selection.both": 0.33 + 0.001 * entry.seed}
        return {"map_at_r": 0.30, "recall_at_1": 0.5} | by_test

    curve = ValidationCurve(step=(0, 100, 200), map_at_r=(0.0, 0.45, 0.50))
    app = train_study("selection-omniglot", scores, curve)
    frames = {frame.value.columns[1]: frame.value for frame in app.dataframe}
    shown = ["30.0 ± 0", "31.10 ± 0.10", "33.10 ± 0.10", "+3.10 ± 0.10", "+2.9 to +3.3", "significant"]
    assert frames["by validation"].iloc[0].tolist() == ["Contrastive", *shown]
    assert frames["seeds"]["steps to 95 %"].tolist() == pytest.approx([150.0] * 3)  # 0.475 is halfway from 0.45 to 0.50


def test_a_study_of_thresholds_shows_which_losses_keep_their_promise(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    app, study, runs = open_page("losses-birds"), studies.read("losses-birds"), studies.load("losses-birds").runs
    for sentence in studies.promises.summary(study, runs):
        assert has_text(app, sentence)
    shown = table(app, "measured / promised")
    (arcface,) = shown[shown["variant"] == "ArcFace"]["false matches"]
    rates = [100 * run.scores["fmr"] for run in runs if run.variant == "ArcFace"]
    assert arcface == f"{sum(rates) / 3:.2f} ± {pd.Series(rates).std():.2f}"
    assert {"raw inputs", "whitened features"} < set(shown["variant"])


def test_a_study_of_a_correlation_shows_its_points(train_study):
    def scores(number, entry):
        radii = {"train_radius": 0.2 + 0.01 * number, "test_radius": 0.3 + 0.01 * (number % 7), "test_between": 1.0}
        radii = {f"tested_covering.{name}": value for name, value in radii.items()}
        return {"map_at_r": 0.3 - 0.001 * number, "recall_at_1": 0.5} | radii

    app = train_study("covering-birds", scores)
    assert has_text(app, "covering radius of the training classes goes with a higher test MAP@R: yes")
    assert has_text(app, "One point per variant")
    assert table(app, "covering radius, test classes")["covering radius, training classes"].max() > 0.5


def test_a_study_of_a_sweep_shows_the_score_against_the_setting(train_study):
    app = train_study("gsp-mu-birds", lambda number, _: {"map_at_r": 0.3 - 0.001 * number, "recall_at_1": 0.5})
    assert has_text(app, "values of the setting are equally spaced")
