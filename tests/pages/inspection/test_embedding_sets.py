"""All Inspection pages with embedding sets, with and without labels: no sentence speaks of what a set does not have."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.storage.runs import Run
from pages.inspection.neighbours import runs_beside
from tests.embedding_set_runs import make_set
from tests.pages.conftest import load_page

PAGES = ("explore", "neighbours", "failures", "confusions", "thresholds", "differences")
# words that are true only for a run that was trained
TRAINED = re.compile(
    r"test (split|sample|embedding|image)|training|checkpoint|network|trained|Evaluate|1 classes", re.I
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture(params=[True, False], ids=["labels", "no labels"])
def imported(store: Path, request: pytest.FixtureRequest) -> Run:
    return make_set(store, labels=request.param)


def texts(app: AppTest) -> list[str]:
    """Return the visible texts of a page, with help texts and labels of widgets."""
    elements = [*app.markdown, *app.caption, *app.info, *app.warning, *app.error, *app.subheader]
    shown = [str(each.value) for each in elements] + [str(getattr(each, "help", "") or "") for each in elements]
    widgets = [*app.button, *app.selectbox, *app.slider, *app.toggle, *app.multiselect]
    return shown + [f"{each.label} {each.help or ''}" for each in widgets] + [x.label for x in app.expander]


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_speaks_of_training(imported: Run, page: str) -> None:
    app = load_page(page, run=imported.id)
    assert not app.exception
    assert [text for text in texts(app) if TRAINED.search(text)] == []


@pytest.mark.parametrize("view", ["Class pairs", "Classes", "Distances", "Phase portrait", "Hubs"])
def test_no_view_of_confusions_speaks_of_training(store: Path, view: str) -> None:
    app = load_page("confusions", run=make_set(store).id, view=view)
    assert not app.exception
    # the parameters of a loss that may be drawn are described by the loss
    assert [text for text in texts(app) if TRAINED.search(text)] == []


def test_sets_of_the_same_ids_are_compared_and_of_others_get_a_message(store: Path) -> None:
    first, second = (make_set(store, seed=seed, name=f"Set {seed}", project=False) for seed in (0, 1))
    others = make_set(store, ids=False, name="Others", project=False)
    app = load_page("differences", run=first.id)
    assert not app.exception
    assert app.selectbox[1].label == "Embedding set B"
    assert app.selectbox[1].value == second.id, "the set of the same samples comes first"
    assert [metric.label for metric in app.metric][:2] == ["R@1, A → B", "MAP@R, A → B"]
    assert "of 90 queries" in app.caption[0].value
    app = load_page("differences", run=first.id, other=others.id)
    assert not app.exception
    assert any("no column of ids or images" in text.value for text in app.text)


def test_two_sets_in_different_orders_are_compared_by_id(store: Path) -> None:
    order = np.random.default_rng(0).permutation(90)
    first = make_set(store, project=False)
    second = make_set(store, seed=1, order=order, name="Shuffled", project=False)
    same_order = make_set(store, seed=1, name="In order", project=False)
    apps = [load_page("differences", run=first.id, other=other.id) for other in (second, same_order)]
    assert [metric.value for metric in apps[0].metric] == [metric.value for metric in apps[1].metric]
    assert not apps[0].exception
    app = load_page("neighbours", run=first.id, **{runs_beside.PARAMETER: second.id})
    assert not app.exception
    assert not app.warning
    assert any("Nearest neighbour right in A only" in caption.value for caption in app.caption)


def test_sets_without_labels_are_compared_neighbour_by_neighbour(store: Path) -> None:
    first, second = (make_set(store, labels=False, seed=seed, name=f"Set {seed}", project=False) for seed in (0, 1))
    app = load_page("differences", run=first.id)
    assert not app.exception
    assert any("have no labels" in text.value for text in app.markdown)
    app = load_page("neighbours", run=first.id, **{runs_beside.PARAMETER: second.id})
    assert not app.exception
    assert any("90 queries, page 1 of" in caption.value for caption in app.caption)
    assert not any("McNemar" in caption.value for caption in app.caption)


def test_near_duplicates_are_downloads_and_a_set_cannot_be_evaluated_again(store: Path) -> None:
    run = make_set(store, project=False)
    app = load_page("neighbours", run=run.id, view="Near-duplicates", closer="100 %")
    assert not app.exception
    assert any("pairs as CSV" in button.proto.label for button in app.get("download_button"))
    run.embeddings().write_bytes(b"damaged")
    app = load_page("neighbours", run=run.id)
    assert not app.exception
    assert not app.button
    assert any("Import its vectors again" in info.value for info in app.info)
