"""The page shows the flips that the library finds, refuses runs that cannot be compared, and passes selections on."""

from __future__ import annotations

import importlib
import re
import shutil
from functools import partial
from html import escape, unescape
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.inspection import differences, neighbours, selections, snapshots
from dmlcore.jobs import launch
from dmlcore.monitoring.estimate import estimate
from dmlcore.storage.runs import Run, RunStore
from pages.inspection.differences import queries as queries_view
from pages.inspection.differences.queries import ROWS, ShownDifference
from pages.inspection.differences.sides import RunSide
from tests.pages.conftest import load_page, make_run

GONE_AT = (
    "pages.inspection.differences.sides.snapshots",
    "pages.shared.widgets.test_neighbours.read",
    "pages.shared.server.thumbnails.dataset",
    "dmlcore.inspection.differences.difference",
    "dmlcore.inspection.neighbours.read",  # called for the snapshots
)

open_page = partial(load_page, "differences")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with snapshots on few, difficult classes, so that query results flip."""
    root = tmp_path_factory.mktemp("kept")
    run = make_run(root, "schedule.keep_every=3", "optimiser.learning_rate=0.02", "model.hidden=[16]")
    assert snapshots.embed_all(run) == 4
    return root


@pytest.fixture
def run(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    root = tmp_path / "runs"
    shutil.copytree(kept, root)
    monkeypatch.setenv("DML_RUNS", str(root))
    return RunStore(root).list()[0]


def of(run: Run, first: int, second: int) -> differences.Difference:
    paths = {snapshot.step: snapshot.embeddings for snapshot in snapshots.snapshots(run)}
    return differences.difference(neighbours.read(paths[first]), neighbours.read(paths[second]))


def blocks(app: AppTest) -> str:
    return next(element.body for element in app.get("html") if 'class="difference"' in element.body)


def test_the_flips_shown_are_those_of_the_library(run: Run) -> None:
    app = open_page(run=run.id)
    assert not app.exception
    best = app.selectbox(key=f"differences-after-{run.id}")
    step = int(re.fullmatch(r"best: step (\d+)", best.format_func(best.value)).group(1))
    kept = {snapshot.step for snapshot in snapshots.snapshots(run)}
    assert best.options == [f"best: step {step}", *(f"step {other}" for other in sorted(kept - {step}))]
    first = snapshots.snapshots(run)[0].embeddings
    found = differences.difference(neighbours.read(first), neighbours.read(run.embeddings()))
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["right in A only"] == f"{found.lost.sum():,}"
    assert shown["right in B only"] == f"{found.gained.sum():,}"
    assert f"{100 * found.comparison.right[0].mean():.1f} %" in shown["R@1, A → B"]
    kind = "lost" if found.lost.any() else "gained"
    expected = found.indices[found.queries(kind)][:ROWS]
    assert len(expected)
    assert [int(n.replace(",", "")) for n in re.findall(r"<span>sample ([\d,]+)</span>", blocks(app))] == list(expected)
    before, after = found.comparison.average_precision[:, found.queries(kind)[0]]
    words = unescape(re.search(r'class="change">(.*?)<', blocks(app)).group(1))
    gain = f"{100 * (after - before):+.1f}".replace("-", "−")
    assert words == f"AP@R {100 * before:.1f} % → {100 * after:.1f} % ({gain})"


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, str]]:
    """Jobs that would have started."""
    jobs: list[tuple[str, str]] = []
    monkeypatch.setattr(launch, "start_job", lambda run, task, *_: jobs.append((run.id, task)))
    return jobs


@pytest.mark.parametrize("seconds", [30, 300])
def test_what_is_not_embedded_is_embedded_at_once_where_that_is_quick(run: Run, asked, monkeypatch, seconds) -> None:
    for snapshot in snapshots.snapshots(run):
        snapshot.embeddings.unlink()
    monkeypatch.setattr(estimate, "embedding_seconds", lambda *_: seconds)
    app = open_page(run=run.id)
    assert not app.exception
    first = app.selectbox(key=f"differences-before-{run.id}")
    assert (first.value, first.options[1]) == ("0", "step 0 (not embedded)")
    assert app.selectbox(key=f"differences-after-{run.id}").value == "best"
    assert asked == ([(run.id, "snapshots")] if seconds == 30 else [])
    app.button(key="snapshots").click().run()
    assert asked[-1] == (run.id, "snapshots")


def test_a_run_that_is_not_evaluated_is_evaluated_at_once(run: Run, asked) -> None:
    for file in (run.path / "embeddings").glob("*"):
        file.unlink()
    assert not open_page(run=run.id, other=run.id, before="best").exception
    assert asked == [(run.id, "evaluate")]


@pytest.mark.parametrize("at", GONE_AT)
def test_a_run_that_is_deleted_while_it_is_shown_gives_way_to_another(run: Run, monkeypatch, at: str) -> None:
    """The page must restart at each place that may find the files deleted."""
    module, name = at.rsplit(".", 1)
    original = getattr(importlib.import_module(module), name)

    def deleted_before(*arguments):
        shutil.rmtree(run.path, ignore_errors=True)
        return original(*arguments)

    monkeypatch.setattr(f"{module}.{name}", deleted_before)
    app = open_page(run=run.id)
    assert not app.exception
    assert not app.error
    assert run.id not in app.query_params["run"]
    assert any("not in this store" in warning.value for warning in app.warning)


def test_the_link_chooses_both_sides_and_a_broken_one_does_no_harm(run: Run) -> None:
    app = open_page(run=run.id, before="0", after="6")
    assert {metric.label: metric.value for metric in app.metric}["right in B only"] == f"{of(run, 0, 6).gained.sum():,}"
    app = open_page(run=run.id, before="../../etc", after="7", other="<b>")
    assert not app.exception
    assert app.metric
    app = open_page(run=run.id, before="8", after="8")
    assert not app.exception
    assert "A and B are the same" in " ".join(element.value for element in app.markdown)


def test_queries_are_handed_on_as_a_selection(run: Run) -> None:
    app = open_page(run=run.id, before="0", after="8")
    found = of(run, 0, 8)
    app.button(key="select-queries").click().run()
    assert not app.exception
    name = app.query_params["selection"]
    kept = selections.load(run, name if isinstance(name, str) else name[0])
    kind = "lost" if found.lost.any() else "gained"
    assert np.array_equal(kept.indices, np.sort(found.indices[found.queries(kind)]))
    assert kept.origin.endswith(("A is step 0, B is step 8", "A is step 0, B is best weights"))


def test_labels_that_many_snapshots_doubt_are_listed(run: Run) -> None:
    wrong = 17
    for snapshot in snapshots.snapshots(run):  # a label error in the test split, wrong in every snapshot
        with np.load(snapshot.embeddings) as file:
            arrays = dict(file)
        arrays["labels"][wrong] = (arrays["labels"][wrong] + 1) % 10
        np.savez(snapshot.embeddings, **arrays)
    app = open_page(run=run.id, before="0", after="3")
    app.segmented_control(key="difference-kind").set_value("labels").run()
    assert not app.exception
    views = [neighbours.read(snapshot.embeddings) for snapshot in snapshots.snapshots(run) if snapshot.step]
    expected = differences.find_label_errors(views)
    sample = views[0].indices[wrong]
    assert sample in expected.indices
    assert f"<span>sample {sample:,}, labelled</span>" in blocks(app) or len(expected.indices) > 4
    assert f"{len(expected.indices):,} samples" in " ".join(element.value for element in app.caption)


def test_other_test_samples_are_refused_with_the_reason(run: Run) -> None:
    other = make_run(run.path.parent, "data.split=classes", "batch.classes=3")
    app = open_page(run=run.id, other=other.id, before="best", after="best")
    assert not app.exception
    assert not app.metric
    assert any("the test splits differ" in element.value for element in app.text)


def test_without_snapshots_and_without_others_it_says_what_to_do(runs: Path) -> None:
    app = open_page()
    assert not app.exception
    assert "A and B are the same" in " ".join(element.value for element in app.markdown)
    assert [link.proto.page for link in app.get("page_link")] == ["settings"]


def test_hostile_names_stay_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = '<img src="//evil/x" onerror=alert(1)>![x](//evil/y)\u202e$\\frac{1}{2}$'
    found = of(run, 0, 8)
    paths = {snapshot.step: snapshot.embeddings for snapshot in snapshots.snapshots(run)}
    sides = (RunSide(run, "0", paths[0]), RunSide(run, "8", paths[8]))
    difference = ShownDifference(sides, found, lambda label: hostile)
    shown: list[str] = []
    monkeypatch.setattr(queries_view.st, "html", shown.append)
    queries_view.blocks(difference, found.queries("better")[:1], 4)
    doubted = differences.Doubted(found.indices[:1], np.array([3]), np.array([2]), np.array([1.0]), 2)
    queries_view.labels(difference, doubted)
    assert len(shown) == 2
    for text in shown:
        assert hostile not in text
        assert '<img src="//evil' not in text
        assert f"<bdi>{escape(hostile)}</bdi>" in text
        assert set(re.findall(r'<img src="([^"]*)"', text)) <= {f"/api/thumb/{run.id}/{i}" for i in range(2000)}
