"""Pages of a run that another program trains: it is called a run trained elsewhere, and an embedding set at its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dmlcore
from pages.shared.words import titles
from tests.pages.conftest import load_page
from tests.pages.inspection.test_embedding_sets import PAGES, texts

LABELS = np.arange(40) % 4


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_a_logged_run_is_an_embedding_set_only_when_it_has_finished(store: Path) -> None:
    logged = dmlcore.log_run("My loop", runs=store)
    assert titles.label(logged.run).startswith("My loop · trained elsewhere · ")
    logged.finish(np.eye(40, dtype=np.float32), LABELS)
    assert titles.label(logged.run).startswith("My loop · embedding set · ")


@pytest.mark.parametrize("page", [*PAGES, "runs"])
def test_no_page_calls_a_training_run_an_embedding_set(store: Path, page: str) -> None:
    with dmlcore.log_run("My loop", steps=10, runs=store) as logged:
        logged.log(3, loss=1.0)
        app = load_page(page, run=logged.id)
        assert not app.exception
        assert not any("embedding set" in text.lower() for text in texts(app))
        if page != "runs":
            assert any("Its embeddings appear here when" in caption.value for caption in app.caption)


@pytest.mark.parametrize("page", PAGES)
def test_pages_explain_why_a_logged_run_without_embeddings_shows_nothing(store: Path, page: str) -> None:
    with dmlcore.log_run("My loop", steps=10, runs=store) as logged:
        logged.log(3, loss=1.0)
    app = load_page(page, run=logged.id)
    assert not app.exception
    assert any("ended without storing embeddings" in info.value for info in app.info)
    assert not any("embedding set" in text.lower() or "Evaluate" in text for text in texts(app))
