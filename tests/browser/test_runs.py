"""The table of runs during a training run: nothing is redrawn, and the selection is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import MetricsWriter, Run, RunStore
from tests.browser.harness import Server, address, becomes, eventually, go
from tests.made_runs import make_finished_run

pytestmark = pytest.mark.browser
MANY = 30
# The table is a canvas that contains its content as a table for screen readers.
SHOWN = """() => [...document.querySelectorAll('[data-testid=stDataFrame] canvas tbody tr')].map(
  (row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent).join(' | '))"""
SCROLLED = "() => document.querySelector('[data-testid=stDataFrame] .dvn-scroller').scrollTop"
PARTS = {
    "table": "[data-testid=stDataFrame] canvas",
    "curves": "[data-testid=stVegaLiteChart] :is(canvas, svg)",
}


@pytest.fixture(scope="module")
def many(server: Server) -> Iterator[list[Run]]:
    """Finished runs, whose scores rise from the first to the last."""
    store = RunStore(server.runs)
    made = [make_finished_run(store, [f"seed={k}", f"name=made{k:02}"], 0.3 + k / 100) for k in range(MANY)]
    yield made
    for run in made:
        run.delete()


@pytest.fixture
def store(server: Server, many: list[Run]) -> Iterator[RunStore]:
    """Folder of the runs; runs added by a test are removed afterwards."""
    store = RunStore(server.runs)
    before = {run.id for run in store.list()}
    yield store
    for run in store.list():
        if run.id not in before:
            run.delete()


def mark(page: Any) -> None:
    """Remember the current nodes of the table and the curves."""
    for name, selector in PARTS.items():
        page.wait_for_selector(selector)
        page.evaluate("([name, selector]) => { window[name] = document.querySelector(selector); }", [name, selector])


def same(page: Any) -> list[str]:
    """Return the parts that are still the remembered nodes."""
    script = "([name, selector]) => window[name] === document.querySelector(selector) && window[name].isConnected"
    return [name for name, selector in PARTS.items() if page.evaluate(script, [name, selector])]


def test_while_a_run_trains_the_table_keeps_selection_scroll_and_order(page, server, store, many):
    run = store.create(RunSpec().with_overrides(["schedule.steps=100", "name=alive"]))
    chosen = many[4]
    with run.lock(), MetricsWriter(run, 0) as rows:
        run.update(state="running", step=0)

        def train_to(step: int) -> None:
            for at in range(run.state().step + 1, step + 1):
                rows.append({"kind": "step", "step": at, "loss": 1.0 / at, "active": 0.5})
            run.update(step=step, seconds=step / 10, message="training")

        train_to(10)
        go(page, f"{server.url}/runs?run={run.id},{chosen.id}&sort=trained&up=1")
        becomes(lambda: page.evaluate(SHOWN), lambda lines: any("made00" in line for line in lines[:1]))
        page.get_by_text("step 10 of 100").first.wait_for()
        page.mouse.move(*middle(page))
        page.mouse.wheel(0, 140)
        scrolled = becomes(lambda: page.evaluate(SCROLLED), lambda top: top > 100)
        mark(page)
        for step in (40, 70):
            train_to(step)
            page.get_by_text(f"step {step} of 100").first.wait_for()
        assert same(page) == list(PARTS)
        assert page.evaluate(SCROLLED) == scrolled
        assert chosen_in(page) == [run.id, chosen.id]
        assert selected(page) == ["made04"]  # the running run has no score, so it is last, out of view

        make_finished_run(store, ["name=joined"], 0.01)  # in this order it is first
        becomes(lambda: page.evaluate(SHOWN), lambda lines: len(lines) > 1)
        eventually(lambda: present(page, MANY + 3))
        assert selected(page) == ["made04"], "the mark moves with its run"
        assert same(page) == list(PARTS)
        assert page.evaluate(SCROLLED) == scrolled
        assert chosen_in(page) == [run.id, chosen.id]
        box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
        for _ in range(2):  # by name, then reversed
            first = page.evaluate(SHOWN)[0]
            page.mouse.click(box["x"] + 80, box["y"] + 15)
            page.mouse.move(*middle(page))
            first = becomes(lambda: page.evaluate(SHOWN)[0], lambda line, before=first: line != before)
        assert first.startswith("made2")
        train_to(90)
        page.get_by_text("step 90 of 100").first.wait_for()
        assert page.evaluate(SHOWN)[0] == first, "a click on a heading must be kept, too"
        assert same(page) == list(PARTS)
        run.update(state="done", step=100, message="done")
    page.get_by_text("step 100 of 100").first.wait_for()
    assert "table" in same(page)
    page.mouse.click(box["x"] + 15, middle(page)[1])  # one more run, which the table has above the first
    chosen_now = becomes(lambda: chosen_in(page), lambda ids: len(ids) == 3)
    assert chosen_now[:2] == [run.id, chosen.id], "added last, so that the others keep their colours"


def chosen_in(page: Any) -> list[str]:
    """Return the runs that the address names, in its order."""
    return parse_qs(urlsplit(address(page)).query)["run"][0].split(",")


def middle(page: Any) -> tuple[float, float]:
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def present(page: Any, rows: int) -> None:
    """Check that the table has this many rows and a header."""
    counted = page.locator("[data-testid=stDataFrame] canvas table").first.get_attribute("aria-rowcount")
    assert counted == str(rows)


def selected(page: Any) -> list[str]:
    """Return the names of the selected runs in view."""
    script = """() => [...document.querySelectorAll('[data-testid=stDataFrame] canvas tbody tr')].filter(
      (row) => row.getAttribute('aria-selected') === 'true').map((row) => row.textContent)"""
    return [text[text.index("made") :][:6] for text in page.evaluate(script)]
