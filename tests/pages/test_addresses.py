"""Addresses contain the shown run and selection, also after using the menu, and never a deleted run."""

from __future__ import annotations

import logging
import shutil

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.inspection import selections
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import EXAMPLE_REMOVED, Run, RunStore
from pages.inspection.neighbours import queries as queries_view
from pages.shared.widgets import run_picker
from tests.pages.conftest import go_to, load_page, make_run
from tests.wording import says

INSPECTION = ("neighbours", "failures", "explore", "differences", "confusions", "thresholds", "fork")
SELECTING = ("neighbours", "failures", "explore", "differences")


def address(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def by_menu(app: AppTest, page: str) -> AppTest:
    """Open another page through the menu, which clears the query."""
    go_to(app, page)
    app.query_params.clear()
    return app.run()


def test_pages_of_the_menu_name_the_run_that_they_show(run: Run, runs) -> None:
    make_run(runs, "model.embedding_dim=2")
    app = load_page("explore", run=run.id)
    for page in INSPECTION:
        app = by_menu(app, page)
        assert not app.exception
        assert address(app)["run"] == run.id, page


def test_a_selection_survives_the_menu_until_it_is_dropped(run: Run) -> None:
    kept = selections.save(run, [900, 901, 1000], "lasso on the map")
    app = load_page("explore", run=run.id, selection=kept.id)
    app = by_menu(app, "confusions")
    for page in SELECTING:
        app = by_menu(app, page)
        assert not app.exception
        if page == "differences":  # without snapshots there is nothing to select
            continue
        assert address(app) | {"run": run.id, "selection": kept.id} == address(app), page
        assert any("3 samples selected" in badge.value for badge in app.markdown), page
    app = by_menu(app, "neighbours")
    app.button(key="drop_selection").click().run()
    assert "selection" not in address(app)
    for page in ("explore", "neighbours"):
        app = by_menu(app, page)
        assert "selection" not in address(app), page


def test_the_selection_of_one_run_is_none_of_another(run: Run, runs) -> None:
    kept = selections.save(run, [900, 901], "lasso on the map")
    other = make_run(runs, "model.embedding_dim=2")
    app = load_page("explore", run=run.id, selection=kept.id)
    go_to(app, "neighbours")
    app.query_params.clear()
    app.query_params["run"] = other.id
    assert "selection" not in address(app.run())


@pytest.mark.parametrize("page", ["neighbours", "confusions", "fork"])
def test_a_run_that_is_gone_is_replaced_in_the_address_and_said(run: Run, page: str) -> None:
    gone = "20260101-0000-digits-gone-0000"
    app = load_page(page, run=gone)
    for _ in range(2):  # the message remains when another widget changes
        assert not app.exception
        assert address(app)["run"] == run.id
        assert any(says(w.value, "run", "not in this store", "another") for w in app.warning)
        app.run()
    app = by_menu(app, "explore" if page == "neighbours" else "neighbours")
    assert not app.warning


def test_a_run_whose_folder_vanishes_while_it_is_looked_at_says_so(
    run: Run, runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_picker, "_label", lambda run: run.id)  # AppTest requests old labels of the select box again
    other = make_run(runs, "model.embedding_dim=2")
    app = load_page("neighbours", run=run.id)
    shutil.rmtree(run.path)
    app.toggle(key="failures").set_value(True).run()
    assert not app.exception
    assert [says(w.value, "run", "not in this store", "another") for w in app.warning] == [True]
    assert address(app)["run"] == other.id
    shutil.rmtree(other.path)
    (runs / EXAMPLE_REMOVED).touch()  # otherwise the example would be shown
    app.run()
    assert not app.exception
    assert [warning.value for warning in app.warning] == ["The run in the link is not in this store."]


def test_keys_turn_pages_without_a_word_in_the_log(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("streamlit")
    logger.propagate = True
    app = load_page("neighbours", run=run.id)
    shown = [caption.value for caption in app.caption if "page 1 of" in caption.value]
    assert shown
    last = app.session_state[queries_view.PAGE]["last"]
    for step, page in ((1, 2), (1, 3), (-1, 2)):
        app.session_state[queries_view.PAGE] = _turned(app.session_state[queries_view.PAGE], step)
        app.run()
        assert any(f"page {page} of {last}" in caption.value for caption in app.caption)
    assert not [r for r in caplog.records if "Session State" in r.getMessage()]


def _turned(at: dict, step: int) -> dict:
    return at | {"number": at["number"] + step, "turned": at["turned"] + 1}


@pytest.mark.parametrize(
    ("page", "query", "wrong"),
    [
        ("fields", {"loss": "nonsense"}, "nonsense"),
        ("fields", {"loss": "ranking", "m": "abc"}, "abc"),
        ("fields", {"shade": "<b>", "snap": "x"}, "option"),
        ("compare", {"l1": "nonsense,m:1"}, "nonsense"),
        ("charges", {"classes": "many"}, "many"),
        ("errata", {"loss": "nonsense"}, "nonsense"),
        ("transport", {"mu": "1e999"}, "1e999"),
        ("toy_training", {"a.loss": "nonsense"}, "nonsense"),
    ],
)
def test_an_address_with_a_typo_says_what_is_shown_instead(page: str, query: dict[str, str], wrong: str) -> None:
    app = load_page(page, **query)
    assert not app.exception
    (line,) = (caption.value for caption in app.caption if "This address" in caption.value)
    assert wrong in line


def test_a_good_address_is_read_without_a_word() -> None:
    app = load_page("fields", loss="ranking", m="0.2", n="0.3,1e6", shade="force", hide="take", unknown="x")
    assert not [caption.value for caption in app.caption if "This address" in caption.value]


def test_a_fragment_starts_its_page_anew_once_the_run_is_gone(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(run_picker.st, "rerun", lambda: asked.append("page"))
    run = RunStore(tmp_path).create(RunSpec())
    assert run_picker.present(run)
    assert not asked
    shutil.rmtree(run.path)
    assert not run_picker.present(run)
    assert asked == ["page"]
