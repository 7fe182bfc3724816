"""The Confusions page shows the counts of dmlcore, passes samples on, and survives invalid links and hostile names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dmlcore import data
from dmlcore.data.printable import printable
from dmlcore.inspection import confusions, distance_density, selections, snapshots
from dmlcore.inspection.hubness import hubness
from dmlcore.inspection.neighbours import TestNeighbours, read
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import EXAMPLE, Run, RunStore, scores
from tests.pages.conftest import load_page, make_run

HOSTILE = "<img src=x onerror=alert(1)>![](http:evil.test:a.png)$x^2$\u202edrow"


def hostile_run(root: Path, tree: Path) -> Run:
    """Return a run on four image folders with confused classes; one folder has a hostile name."""
    for number, name in enumerate((HOSTILE, "b", "c", "d")):
        (tree / name).mkdir(parents=True)
        for i in range(6):
            Image.new("RGB", (20, 16), (60 * number, 40 * i, 7)).save(tree / name / f"{i}.png")
    settings = ["data.name=folder", f"data.root={tree}", "data.split=samples", "data.validation=none"]
    run = RunStore(root).create(RunSpec().with_overrides(settings))
    made = data.load("folder", root=tree, split="samples", validation="none")
    assert printable(HOSTILE) in made.class_names
    embeddings = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    (run.path / "embeddings").mkdir(exist_ok=True)
    file = run.path / "embeddings" / f"{'0' * 64}.npz"
    np.savez(file, embeddings=embeddings, labels=made.labels, indices=np.arange(24))
    with run.lock():
        run.update(state="running")
        run.update(state="done")
    return run


def view(name: str, **query: str) -> AppTest:
    app = load_page("confusions", view=name, **query)
    assert not app.exception
    return app


def charts(app: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def texts(app: AppTest) -> str:
    return "\n".join(element.value for kind in ("markdown", "caption", "html", "text") for element in app.get(kind))


@pytest.fixture
def found(run) -> TestNeighbours:
    return read(run.embeddings())


def test_the_first_screen_shows_the_most_confused_pair_and_its_queries(run, found):
    app = view("Class pairs")
    table = confusions.of_neighbours(found.labels, found.neighbours, ~found.is_gallery, 8)
    best = confusions.pairs(table)
    names = data.load("digits").class_names
    frame = app.dataframe[0].value
    assert frame["class"].tolist() == [names[i] for i in best.first]
    assert frame["confused"].tolist() == pytest.approx(best.mutual, abs=6e-4)
    assert f"**{100 * table.wrong:.1f} %** of the neighbours are" in texts(app)
    assert any("mean of AP@R over the queries" in each.help for each in app.markdown), "scores must be explained"
    first, second = best.first[0], best.second[0]
    query, other = (first, second) if best.there[0] >= best.back[0] else (second, first)
    assert f"Queries of “{names[query]}” with neighbours of “{names[other]}”" in texts(app)
    near = (found.labels[found.neighbours[:, :8]] == other).sum(1)
    expected = int(((found.labels == query) & (near > 0)).sum())
    assert f"{expected} of {(found.labels == query).sum()} queries" in texts(app)
    spec = charts(app)[0]
    assert spec["encoding"]["x"]["scale"]["domain"] == confusions.order_classes(table.matrix()).tolist()


def test_a_pair_becomes_a_selection(run, found):
    app = view("Class pairs", pair="8-1", neighbours="4")
    near = found.labels[found.neighbours[:, :4]] == 1
    rows = np.flatnonzero((found.labels == 8) & near.any(1))
    met = found.neighbours[rows, :4][near[rows]]
    app.button(key="select-8-1").click().run()
    assert not app.exception
    (name,) = np.atleast_1d(app.query_params["selection"])
    kept = selections.load(run, name)
    assert kept.indices.tolist() == sorted({*found.indices[rows], *found.indices[met]})
    assert kept.origin == "8 found near 1"
    assert f"{len(kept.indices)} samples" in texts(app)
    app.button(key="swap").click().run()
    assert "Queries of “1” with neighbours of “8”" in texts(app)


def ticked(app: AppTest) -> set[str]:
    """Return the class names of the selected pair."""
    (frame,) = app.dataframe
    (row,) = json.loads(frame.proto.selection_default)["selection"]["rows"]
    return set(frame.value.loc[row, ["class", "and"]])


def test_the_tick_stays_with_the_pair_where_its_row_is_another(run, found):
    def pairs(k: int) -> list[set[int]]:
        best = confusions.pairs(confusions.of_neighbours(found.labels, found.neighbours, ~found.is_gallery, k), 100)
        return [{int(a), int(b)} for a, b in zip(best.first, best.second, strict=True)]

    four, sixteen = pairs(4), pairs(16)
    pair = next(each for each in four if each in sixteen and four.index(each) != sixteen.index(each))
    first, second = sorted(pair)
    app = view("Class pairs", pair=f"{first}-{second}", neighbours="4")
    assert ticked(app) == {str(first), str(second)}
    app.select_slider(key="neighbours").set_value("16").run()
    assert ticked(app) == {str(first), str(second)}
    app.button(key="swap").click().run()
    assert ticked(app) == {str(first), str(second)}


def test_of_many_classes_those_are_shown_that_can_be_named_and_all_on_request(runs):
    app = view("Class pairs", run=EXAMPLE)
    box = app.selectbox(key="around")

    def shown() -> tuple[list[int], bool]:
        encoding = charts(app)[0]["encoding"]["x"]
        return encoding["scale"]["domain"], encoding["axis"]["labels"]

    classes, named = shown()
    assert (len(classes), named) == (40, True)
    assert "40 of 120 classes" in texts(app)
    assert len(box.options) == 2 + 120
    box.select_index(1).run()
    everything, named = shown()
    assert (len(everything), named) == (120, False)
    other = next(label for label in everything if label not in classes)
    app.selectbox(key="around").select(other).run()
    assert other in shown()[0]


@pytest.mark.parametrize("bad", ["<script>", "1-99"])
def test_a_senseless_link_gets_a_plain_message(run, bad):
    app = load_page("confusions", run=bad, view=bad, pair=bad, neighbours=bad)
    assert not app.exception
    assert "no such pair of classes" in app.warning[-1].value
    assert "<script>" not in texts(app)


def test_classes_have_the_scores_that_the_evaluation_kept(run, found):
    app = view("Classes")
    with np.load(run.embeddings()) as kept:
        values = zip(kept["class_map_at_r"], kept["class_recall_at_1"], strict=True)
        by_name = dict(zip(kept["class_labels"], values, strict=True))
    table = app.dataframe[0].value
    assert table["MAP@R"].is_monotonic_increasing
    names = data.load("digits").class_names
    for row in table.itertuples():
        assert (row[3], row[4]) == pytest.approx(by_name[names.index(row[1])], abs=6e-4)
    assert f"Queries of “{table['class'][0]}”, worst first" in texts(app)


def test_distances_say_what_was_counted_and_compare_runs(runs, run, found):
    other = make_run(runs, "seed=1", "loss.name=multi_similarity")
    app = view("Distances", run=run.id)
    measured = distance_density.measure(found.embeddings, found.labels).distances
    assert app.metric[0].value == f"{100 * measured.overlap:.1f} %"
    assert f"All {measured.positives.sum():,} ordered pairs of the same class" in texts(app)
    app.selectbox(key="compare-distances").set_value(other.id).run()
    assert not app.exception
    theirs = read(other.embeddings())
    overlap = distance_density.measure(theirs.embeddings, theirs.labels).distances.overlap
    assert app.metric[0].delta == f"{100 * overlap:.1f} % in the other run"
    assert "not defined on single triplets" in texts(view("Distances", run=other.id))


def test_the_portrait_counts_what_the_loss_of_the_run_moves(run, found):
    app = view("Phase portrait", triplets="nearest")
    loss = distance_density.loss_of(run.spec)
    measured = distance_density.measure(found.embeddings, found.labels)
    table = app.dataframe[0].value.set_index("triplets")
    for kind in distance_density.KINDS:
        triplets = measured.triplets(kind)
        assert table.loc[kind, "active"] == pytest.approx(triplets.active(loss).mean(), abs=6e-5)
        assert table.loc[kind, "wrong"] == pytest.approx(triplets.violated, abs=6e-5)
    recall = scores(run.metrics()[0])["trained"]["recall_at"]["1"]
    assert table.loc["nearest", "wrong"] == pytest.approx(1 - recall, abs=6e-5)
    margin = app.slider[0]
    margin.set_value(margin.max).run()
    assert app.dataframe[0].value["active"][1] > table["active"].iloc[1], "a larger margin must occupy more space"
    assert "kept no intermediate checkpoints" in app.info[0].value


def test_the_portrait_follows_the_kept_checkpoints(runs):
    run = make_run(runs, "schedule.keep_every=4", "seed=2")
    app = view("Phase portrait", run=run.id)
    assert app.button(key="snapshots"), "stored, but not embedded"
    assert snapshots.embed_all(run) == 3
    app.run()
    assert not app.exception
    assert not [button for button in app.button if button.key == "snapshots"]
    slider = app.select_slider[0]
    assert slider.options == ["0", "4", "8", "tested"]
    before = app.dataframe[0].value["wrong"].tolist()
    slider.set_value("0").run()
    first = np.load(snapshots.snapshots(run)[0].embeddings)
    expected = distance_density.measure(first["embeddings"], first["labels"], triplets=10_000)
    after = app.dataframe[0].value["wrong"].tolist()
    assert after == pytest.approx([expected.triplets(kind).violated for kind in distance_density.KINDS], abs=6e-5)
    assert after != before


def test_hubs_are_counted_and_selected(run, found):
    app = view("Hubs")
    counted = hubness(found.labels, found.neighbours, found.is_gallery, 8)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Skewness of N_k"] == f"{counted.skewness:.2f}"
    assert shown["Bad hubs"] == f"{len(counted.bad_hubs)} of {len(counted.hubs)}"
    assert f"{counted.occurrences.max()} times" in texts(app)
    app.button(key="select-hubs-hubs-8").click().run()
    (name,) = np.atleast_1d(app.query_params["selection"])
    assert selections.load(run, name).indices.tolist() == sorted(found.indices[counted.rows[counted.hubs]])


def test_all_that_could_be_right_are_counted_on_request_and_a_single_class_is_told(run, found):
    table = confusions.of_class_size(found.embeddings, found.labels, found.is_gallery)
    assert f"**{100 * table.wrong:.1f} %** of the neighbours are" in texts(view("Class pairs", neighbours="R"))
    with np.load(run.embeddings()) as kept:
        arrays = dict(kept) | {"labels": np.zeros(len(kept["labels"]), np.int64)}
    np.savez(run.embeddings(), **arrays)
    assert "no classes are confused" in view("Class pairs").info[0].value
    assert "No sample has both" in view("Distances").info[0].value


def test_names_that_hurt_are_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    hostile_run(tmp_path / "runs", tmp_path / "tree")
    for name in ("Class pairs", "Hubs"):
        app = view(name)
        assert printable(HOSTILE) not in "".join(x.value for kind in ("markdown", "caption") for x in app.get(kind))
        assert "<img src=x" not in texts(app)
