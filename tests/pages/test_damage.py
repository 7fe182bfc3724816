"""Pages survive damaged and forged runs: each says what is wrong, and the other runs are listed."""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.inspection import selections
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore
from pages.shared.words import titles
from tests.faults import damage
from tests.members import note_member
from tests.pages.conftest import load_page
from tests.wording import says

ON_RUNS = [
    "rows without step",
    "rows of noise",
    "rows of brackets",
    "numbers of 5,000 digits",
    "huge losses",
    "steps without end",
    "created in 1e20",
    "created never",
    "seconds NaN",
    "a spec of brackets",
    "a loss with strange parameters",
    "a terabyte of rows",
    "rows in a pipe",
    "a lock that is a loop",
]
READABLE = [name for name in ON_RUNS if not name.startswith(("created", "seconds", "a spec"))]


@pytest.fixture
def beside(runs: Path) -> Run:
    return RunStore(runs).create(RunSpec(name="beside"))


@pytest.fixture(autouse=True)
def sentences_are_for_users() -> None:
    """Disable the fixture of this name in conftest.py, which checks texts of healthy runs."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def forged(run: Run, *names: str) -> dict[str, Run]:
    """Return one forged copy of a run per name, stored next to it."""
    made = {}
    for number, name in enumerate(names):
        folder = run.path.with_name(f"forged-{number}")
        shutil.copytree(run.path, folder)
        pattern, change = damage.FORGED[name]
        for path in damage._matching(folder, pattern):
            change(path)
        made[name] = Run(folder)
    return made


def page_text(app: AppTest) -> str:
    return "\n".join(
        str(element.value) for kind in ("error", "text", "caption", "warning") for element in app.get(kind)
    )


def test_a_sample_of_flipped_bits_harms_no_reader(run: Run, beside: Run) -> None:
    source, store = random.Random(12), RunStore(run.path.parent)
    selections.save(run, np.arange(5), "lasso")
    for _ in range(80):
        with damage.drawn(run, source) as flip:
            try:
                damage.look(store, run.id, beside.id, str(flip.path.relative_to(run.path)))
            except Exception as error:
                raise AssertionError(str(flip)) from error


def test_no_forged_file_harms_a_reader(run: Run, beside: Run) -> None:
    store = RunStore(run.path.parent)
    selections.save(run, np.arange(5), "lasso")
    for name, made in forged(run, *damage.FORGED).items():
        with note_member(name):
            damage.look(store, made.id, beside.id)


def test_runs_that_anybody_may_have_forged_take_no_page_from_the_others(run: Run, beside: Run) -> None:
    made = forged(run, *ON_RUNS)
    for page in damage.PAGES:
        app = load_page(page)
        assert not app.exception, page
    for ids in (READABLE[:8], READABLE[8:]):
        app = load_page("runs", run=",".join(made[name].id for name in ids))
        assert not app.exception, ids
        listed = [name for frame in app.dataframe if "status" in frame.value for name in frame.value["run"]]
        assert titles.label(beside) in listed
        assert sum(button.key.startswith("delete-for-good-") for button in app.button) == len(ids)
    unreadable = {expander.label.removeprefix("Unreadable: ") for expander in app.expander}
    assert {made[name].id for name in ON_RUNS if name not in READABLE} <= unreadable


@pytest.mark.parametrize("page", ["neighbours", "explore", "confusions", "failures", "thresholds"])
def test_embeddings_that_do_not_fit_are_a_sentence_on_every_page(run: Run, beside: Run, page: str) -> None:
    words = {
        "fewer labels": "has a dimension of",
        "23 TiB": "is declared as",
        "NaN embeddings": "must contain numbers",
        "samples beyond the data": "belongs to other data",
    }
    for name, made in forged(run, *words).items():
        if page == "explore" and name in ("NaN embeddings", "samples beyond the data"):
            continue  # the map page shows the points only
        app = load_page(page, run=made.id)
        assert not app.exception, name
        assert words[name] in page_text(app), name


def test_a_part_that_fails_leaves_the_rest_of_the_page(run: Run, beside: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("histogram")

    monkeypatch.setattr("pages.shared.widgets.results.show", broken)
    app = load_page("runs", run=run.id)
    assert not app.exception
    assert says(page_text(app), "curves", "damaged")
    assert any("Command line" in expander.label for expander in app.expander)


def test_a_selection_of_brackets_or_of_strange_numbers_is_none(run: Run) -> None:
    kept = selections.save(run, np.arange(5), "lasso")
    path = run.path / "selections" / f"{kept.id}.json"
    for text in ("[" * 10**6, '{"origin": "x", "indices": [1e999]}', '{"origin": "x", "indices": [-1]}', "{}"):
        path.write_text(text)
        assert selections.load(run, kept.id) is None
    path.write_text(json.dumps({"origin": "x" * 10**5, "indices": [3, 1, 1]}))
    found = selections.load(run, kept.id)
    assert found is not None
    assert (found.indices.tolist(), len(found.origin)) == ([1, 3], 1000)
