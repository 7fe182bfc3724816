"""The page shows the published tables, marks insignificant differences, and adds our runs to the tables."""

from __future__ import annotations

import json
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.experiments import protocols, studies
from dmlcore.published import collection
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import MetricsWriter, RunStore
from pages.library.published_results import service as published_service
from pages.shared.widgets import linked_box
from tests.pages.conftest import load_page
from tests.wording import says


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return RunStore(tmp_path / "runs")


open_page = partial(load_page, "published_results")


def finished(store: RunStore, spec: RunSpec, recall: float, precision: float) -> str:
    """Create a finished, tested run without training it."""
    run = store.create(spec)
    row = {"kind": "scores", "of": "trained", "step": 1, "map_at_r": precision, "r_precision": 0.3, "weights": "x"}
    row |= {"queries": 45}
    row |= {"recall_at": {"1": recall, "2": 0.7, "4": 0.8, "8": 0.9}, "precision_at": {"2": 0.5}}
    with run.lock():
        run.update(state="running")
        with MetricsWriter(run, 0) as metrics:
            metrics.append(row)
        run.update(state="done")
    return run.id


def words(app: AppTest) -> str:
    return " ".join(x.value for x in (*app.markdown, *app.caption))


def test_the_first_screen_is_a_table_beside_our_study():
    app = open_page()
    assert not app.exception
    printed, ours = (frame.value for frame in app.dataframe[:2])
    assert printed["MAP@R"].tolist() == [row.values["MAP@R"] for row in collection.table("K-4.1").rows]
    assert ours["ours"].tolist()[:2] == ["raw inputs, 5 seeds", "untrained network, 5 seeds"]
    assert ours["method"].tolist()[:3] == ["without training", "without training", "Ranking"]
    assert ours["MAP@R"][0] == pytest.approx(32.03, abs=0.01)
    assert len(ours) == 2 + 10
    assert printed["MAP@R, ours"].tolist() == ours["MAP@R"].tolist(), "every printed row has our results"
    runs = studies.load("toy-table").runs
    ranking = [run.scores["train.map_at_r"] for run in runs if run.variant == "Ranking, m = 0.1"]
    (shown,) = ours[ours["setting"] == "m=0.1"]["MAP@R"]
    assert shown == pytest.approx(100 * sum(ranking) / len(ranking))
    assert "so the noise of its scores is unknown" in words(app)
    assert "karaman-2021-toy" in words(app)


def test_rows_within_the_noise_are_marked_alike_and_values_from_damaged_text_too():
    app = open_page(table="K-4.12")
    styler = app.dataframe[0].proto.arrow_data.styler
    assert "●".encode() in styler.display_values
    assert "font-weight: bold" in styler.styles
    assert says(words(app), "0.9 R@1", "0.2 MAP@R")
    app = open_page(table="G-5.2a")
    shown = app.dataframe[0].proto.arrow_data.styler.display_values
    assert all(value in shown for value in (b"64.32 ?", b"77.63 ?"))
    assert b"79.29 ?" not in shown
    assert "damaged" in words(app)


def test_search_finds_rows_of_all_tables():
    app = open_page()
    app.text_input(key="published_q").set_value("contrastive CUB").run()
    assert not app.exception
    found = app.dataframe[0].value
    assert len(found) == len(collection.search("contrastive CUB"))
    assert set(found["data"]) == {"CUB-200-2011"}
    assert f"{len(found)} rows of" in words(app)
    app.text_input(key="published_q").set_value("nothing of the kind").run()
    assert "No row matches" in app.info[0].value


def test_our_runs_stand_under_their_protocol_with_what_they_deviate_in(store, monkeypatch):
    entries = protocols.expand(protocols.read("karaman-2021"), "karaman-2021", loss="ranking", training=5864)
    for entry, recall in zip(entries, (0.5, 0.52, 0.48, 0.50), strict=True):
        finished(store, entry.spec.with_overrides(["loss.m=0.01", "optimiser.learning_rate=1e-3"]), recall, 0.16)
    finished(store, entries[0].spec.with_overrides(["loss.m=0.2"]).model_copy(update={"protocol": ""}), 0.9, 0.9)
    monkeypatch.setattr(protocols, "images", lambda spec: 189)
    published_service._images.clear()
    app = open_page(table="K-4.2")
    assert not app.exception
    assert "R@1, ours" not in app.dataframe[0].value, "runs that deviate from the protocol must not be listed"
    ours = app.dataframe[1].value
    assert ours["ours"].tolist() == ["mean of 4 runs"], "a run without a protocol must not be listed"
    assert ours["R@1"][0] == pytest.approx(50.0)
    assert ours["± R@1"][0] == pytest.approx(1.633, abs=1e-3)
    assert ours["deviates in"][0] == 2
    assert "not comparable" in app.warning[0].value
    lines = " ".join(text.value for text in app.text)
    assert says(lines, "Training samples", "189", "published", "5,864")
    assert "Learning rate: 0.001 instead of 1e-06" in lines
    assert "There is no run under this protocol" in words(open_page(table="P-6"))


def test_every_table_opens():
    app = open_page()
    for table in collection.collection()[::9]:
        app.query_params["table"] = table.key
        app.run()
        assert not app.exception, table.key
        assert app.subheader[0].value == table.title
        rows = app.dataframe[0].value
        assert len(rows) == len(table.rows)
        for column in table.columns:
            assert column in rows


def test_margins_show_printed_scores_the_band_and_ours():
    app = open_page(view="Margins", sweep="cub-ranking-m")
    assert not app.exception
    spec = json.loads(app.get("vega_lite_chart")[0].proto.spec)
    (band,) = [layer["data"]["values"][0] for layer in spec["layer"] if "values" in layer.get("data", {})]
    assert (band["low"], band["high"]) == (pytest.approx(51.9), 52.8)
    assert "(only 0.01)" in words(app)
    assert "our results" in words(open_page(view="Margins", sweep="toy-ranking-m"))


def test_the_tournament_without_and_with_the_band():
    app = open_page(view="Tournament", competition="psomas-cub")
    assert not app.exception
    standings = app.dataframe[0].value.set_index("method")
    assert standings.loc["Triplet", "rank without band"] == pytest.approx(103 / 12, abs=1e-4)
    assert standings.loc["Triplet", "printed rank"] == 8.85
    assert standings["tied"].sum() > 0
    app.slider[0].set_value(0.0).run()
    plain = app.dataframe[0].value.set_index("method")
    assert plain["tied"].sum() == 0
    assert plain["mean rank"].tolist() == plain["rank without band"].tolist()
    assert plain.index[0] == "ProxyAnchor"


def test_csv_keeps_every_column_of_every_row():
    assert (
        linked_box.rows_as_csv([{"a": 1, "b": None}, {"a": 2, "c": 'x,"y"'}])
        == '"a","b","c"\n1,"",""\n2,"","x,""y"""\n'
    )
