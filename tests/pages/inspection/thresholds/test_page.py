"""The Thresholds page measures runs with validation classes, says what others lack, and survives invalid links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.storage.runs import Run
from pages.inspection.thresholds import service
from pages.inspection.thresholds.state import ThresholdLook
from tests.embedding_set_runs import make_set
from tests.inspection.threshold_runs import OPEN, QUICK
from tests.pages.conftest import load_page, make_run


def sent(app: AppTest) -> list[dict[str, Any]]:
    """Return the data that the page sends to its figure; empty if there is no figure."""
    given = (json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json)
    return [data for data in given if data.get("entry") == "inspection/thresholds/thresholds.js"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def warnings(app: AppTest) -> str:
    return "\n".join(each.value for each in app.warning)


def test_a_run_with_validation_classes_gets_thresholds_and_baselines_on_request(store):
    run = make_run(store, *OPEN, *QUICK)
    app = load_page("thresholds", run=run.id, side="seen", t="0.25")
    assert not app.exception
    assert not app.warning
    (data,) = sent(app)
    assert data["look"] == {"t": 0.25, "fmr": "0.01", "side": "seen", "order": "worst", "curve": "fmr"}
    found = service.measure(run, run.embeddings())
    assert data["address"] == found.address
    assert data["parameters"] == {"run": run.id}
    assert [row["name"] for row in data["baselines"]["rows"]] == ["this run"]
    assert data["baselines"]["offer"] == "Compute the baselines"
    assert [row["threshold"] for row in data["baselines"]["rows"][0]["recommended"]] == [
        each.threshold for each in found.recommended
    ]
    app.session_state[f"threshold baselines {run.id}"] = True
    app.run()
    assert not app.exception
    names = [row["name"] for row in sent(app)[0]["baselines"]["rows"]]
    assert names[:3] == ["this run", "raw inputs", "untrained network"]
    assert sent(app)[0]["baselines"]["offer"] == ""


def test_a_run_without_validation_classes_says_so_and_shows_its_test_pairs(run: Run):
    app = load_page("thresholds", run=run.id)
    assert not app.exception
    assert "No threshold can be recommended" in warnings(app)
    assert "has no validation classes" in warnings(app)
    assert sent(app)[0]["baselines"] == {"rows": [], "offer": ""}
    found = service.measure(run, run.embeddings())
    assert list(found.sides) == ["unseen"]
    assert found.recommended == []


def test_an_embedding_set_with_few_classes_shows_the_pairs_of_all(store):
    run = make_set(store)
    app = load_page("thresholds", run=run.id)
    assert not app.exception
    assert "has too few classes" in warnings(app)
    assert service.measure(run, run.embeddings()).unseen.classes == 3
    assert sent(app)[0]["set"] is True


def test_without_runs_or_labels_the_page_says_what_to_do(store):
    run = make_set(store, labels=False)
    app = load_page("thresholds", run=run.id)
    assert any("no labels" in each.value for each in app.info)
    assert not sent(app)


def test_invalid_values_of_a_link_are_replaced():
    look = ThresholdLook.from_query({"t": "nan", "fmr": "0.3", "side": "<b>", "order": "", "curve": "eer"})
    assert look == ThresholdLook()
    assert ThresholdLook.from_query({"t": "-7"}).t == -1
    assert ThresholdLook.from_query(ThresholdLook(t=0.31, side="seen").to_query()) == ThresholdLook(t=0.31, side="seen")
