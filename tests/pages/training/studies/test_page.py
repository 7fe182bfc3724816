from pathlib import Path

import pytest

from dmlcore.experiments import studies
from dmlcore.experiments.studies import Measured, StudyResults
from dmlcore.experiments.studies.results import ValidationCurve
from tests.pages.conftest import load_page

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def toy_results(monkeypatch, tmp_path):
    """Results of the toy table as if measured on another machine: MAP@R 0.30, 0.32 with m = 0.01, then decreasing."""
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    study = studies.read("toy-table")
    runs = []
    for number, entry in enumerate(studies.expand(study, seeds=(0, 1))):
        base = 0.30 + 0.02 * entry.seed - 0.001 * (number % len(study.variants))
        names = ("train.map_at_r", "train.r_precision", "train.recall_at_1", "train.recall_at_8", "map_at_r")
        scores = dict.fromkeys((*names, "recall_at_1"), base)
        curve = ValidationCurve(step=(0, 10), map_at_r=(0.2, base))
        runs.append(
            Measured(
                variant=entry.variant,
                seed=entry.seed,
                digest=entry.digest(),
                scores=scores,
                validation=curve,
                steps=10,
                seconds=1.0,
                device="CPU",
            )
        )
    found = StudyResults(
        study="toy-table", written="2026-11-22", torch="2.13.0", machine="a test", data={}, runs=tuple(runs)
    )
    monkeypatch.setattr(studies, "load", lambda name: found if name == "toy-table" else None)


def test_a_study_of_many_variants_shows_bars_numbers_curves_and_the_printed_table(toy_results):
    app = load_page("studies")
    app.selectbox(key="study").select("toy-table").run()
    assert not app.exception
    frames = {frame.value.columns[1]: frame.value for frame in app.dataframe}
    beside, numbers = frames["R@1"], frames["seeds"]
    assert beside["MAP@R"][0] == "31.0 ± 1.4 | 37.32"  # Karaman 2021, Table 4.1, ranking m = 0.01
    assert numbers["train MAP@R"][0] == pytest.approx(31.0)
    assert numbers["± train MAP@R"][0] == pytest.approx(1.4142, abs=1e-3)
    said = [m.value for m in app.markdown]
    assert any(value.startswith("Ranking, m = 0.01 minus Ranking, m = 0.1: +0.1") for value in said)
    app.selectbox(key="against-toy-table").select("Ranking, m = 40").run()
    assert any("Ranking, m = 0.01 minus Ranking, m = 40: +0.3" in m.value for m in app.markdown)
    assert any("configurations were run for this claim" in m.value for m in app.markdown)
    assert app.multiselect[0].value == [variant.name for variant in studies.read("toy-table").variants[:4]]


def test_a_study_with_candidates_shows_the_chosen_ones_and_counts_the_others(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    app = load_page("studies")
    app.selectbox(key="study").select("forces-birds").run()
    assert not app.exception
    scores = next(frame.value for frame in app.dataframe if "chosen" in frame.value.columns)
    variants = studies.read("forces-birds").variants
    chosen = scores[scores["variant"].isin([variant.name for variant in variants])]["chosen"]
    assert len(chosen) == len(variants)
    written = [studies.load(name).runs for name in ("forces-birds", "forces-omniglot")]
    assert all(text.endswith(f"(of {len(written[0][0].candidates)})") for text in chosen)
    rejected = sum(len({r.variant: r for r in runs}) * (len(runs[0].candidates) - 1) for runs in written)
    ledger = next(frame.value for frame in app.dataframe if "configuration" in frame.value.columns)
    assert sum(ledger["result"].str.startswith("not chosen, validation ")) == rejected
    assert any(f"each with {len(variants[0].choose)} candidates" in m.value for m in app.markdown)


def test_a_study_on_selection_shows_the_scores_of_both_selections_and_the_steps_to_95_percent(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    name = "selection-omniglot"
    by_test = {"selection.step": 0.31, "selection.both": 0.33}
    runs = [
        Measured(
            variant=entry.variant,
            seed=entry.seed,
            digest=entry.digest(),
            scores={"map_at_r": 0.30, "recall_at_1": 0.5} | {k: v + 0.001 * entry.seed for k, v in by_test.items()},
            validation=ValidationCurve(step=(0, 100, 200), map_at_r=(0.0, 0.45, 0.50)),
            steps=200,
            seconds=1.0,
            device="CPU",
        )
        for entry in studies.expand(studies.read(name))
    ]
    found = StudyResults(study=name, written="", torch="", machine="", data={}, runs=tuple(runs))
    monkeypatch.setattr(studies, "load", lambda asked: found if asked == name else None)
    app = load_page("studies")
    app.selectbox(key="study").select(name).run()
    assert not app.exception
    frames = {frame.value.columns[1]: frame.value for frame in app.dataframe}
    assert frames["by validation"].iloc[0].tolist() == [
        *("Contrastive", "30.0 ± 0", "31.10 ± 0.10", "33.10 ± 0.10", "+3.10 ± 0.10", "+2.9 to +3.3", "significant"),
    ]
    assert frames["seeds"]["steps to 95 %"].tolist() == pytest.approx([150.0] * 3)  # 0.475 is halfway from 0.45 to 0.50
    assert any(m.value.startswith("**Selection on the test split adds 3.1 points") for m in app.markdown)


def test_a_study_of_a_correlation_shows_its_points(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    runs = tuple(
        Measured(
            variant=entry.variant,
            seed=entry.seed,
            digest=entry.digest(),
            scores={
                "map_at_r": 0.3 - 0.001 * number,
                "recall_at_1": 0.5,
                "tested_covering.train_radius": 0.2 + 0.01 * number,
                "tested_covering.test_radius": 0.3 + 0.01 * (number % 7),
                "tested_covering.test_between": 1.0,
            },
            validation=ValidationCurve(),
            steps=10,
            seconds=1.0,
            device="CPU",
        )
        for number, entry in enumerate(studies.expand(studies.read("covering-birds")))
    )
    found = StudyResults(
        study="covering-birds", written="2026-11-27", torch="2.13.0", machine="a test", data={}, runs=runs
    )
    monkeypatch.setattr(studies, "load", lambda name: found if name == "covering-birds" else None)
    app = load_page("studies")
    app.selectbox(key="study").select("covering-birds").run()
    assert not app.exception
    words = [m.value for m in app.markdown]
    assert any("covering radius of the training classes goes with a higher test MAP@R: yes" in text for text in words)
    assert any("One point per variant" in caption.value for caption in app.caption)
    scores = next(frame.value for frame in app.dataframe if "covering radius, test classes" in frame.value.columns)
    assert scores["covering radius, training classes"].max() > 0.5


def test_a_study_of_a_sweep_shows_the_score_against_the_setting(monkeypatch, tmp_path):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    runs = tuple(
        Measured(
            variant=entry.variant,
            seed=entry.seed,
            digest=entry.digest(),
            scores={"map_at_r": 0.3 - 0.001 * number, "recall_at_1": 0.5},
            validation=ValidationCurve(),
            steps=10,
            seconds=1.0,
            device="CPU",
        )
        for number, entry in enumerate(studies.expand(studies.read("gsp-mu-birds")))
    )
    found = StudyResults(study="gsp-mu-birds", written="2026-11-27", torch="2.13.0", machine="a", data={}, runs=runs)
    monkeypatch.setattr(studies, "load", lambda name: found if name == "gsp-mu-birds" else None)
    app = load_page("studies")
    app.selectbox(key="study").select("gsp-mu-birds").run()
    assert not app.exception
    assert any("values of the setting are equally spaced" in caption.value for caption in app.caption)
