"""The Neighbours page shows the neighbours that the metrics count, marks them correctly and survives every link."""

from __future__ import annotations

import io
import json
import re
import time
from functools import partial
from html import unescape

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.distance import cdist
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from dmlcore import data
from dmlcore.inspection import neighbour_lists, neighbours, selections, whole_search
from dmlcore.inspection.local import weight_maps
from dmlcore.inspection.whole_search import WholeSearch
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import EXAMPLE, RunStore, scores
from pages.inspection.neighbours import service as gallery_service
from pages.shared.widgets import job_button, neighbour_grid, test_neighbours
from pages.shared.widgets.test_neighbours import learned, outdated
from tests.pages.conftest import go_to, load_page, make_run
from tests.started import until

open_page = partial(load_page, "neighbours")


def figures(app: AppTest) -> list[list[tuple[str, int, str, str]]]:
    """Return (kind, index, alt, text) of each figure, by row."""
    body = next(x.body for x in app.get("html") if 'class="neighbours"' in x.body)
    found = []
    for row in body.split('<div class="row">')[1:]:
        parts = re.findall(r'<figure class="(\w+)"><a .*?data-index="(\d+)".*?alt="(.*?)".*?<figcaption>(.*?)</f', row)
        found.append([(k, int(i), unescape(alt), re.sub("<.*?>", "|", text)) for k, i, alt, text in parts])
    return found


def plain_neighbours(run, row: int) -> np.ndarray:
    """Return all other rows by distance and the distances, computed by definition."""
    embeddings = np.load(run.embeddings())["embeddings"].astype(float)
    distance = np.linalg.norm(embeddings - embeddings[row], axis=1)
    order = np.lexsort((np.arange(len(distance)), distance))
    return order[order != row], distance


def test_before_anybody_trains_the_example_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "none"))
    app = open_page(k="4")
    assert not app.exception
    assert app.selectbox(key="picked_run").value == EXAMPLE
    assert app.query_params["run"] in (EXAMPLE, [EXAMPLE])
    assert len(figures(app)) == 10
    made = RunStore().create(RunSpec())
    assert open_page().selectbox(key="picked_run").value == made.id


def test_each_row_is_a_query_with_its_nearest_neighbours(run):
    app = open_page(order="by index", k="5")
    assert not app.exception
    assert not any(toggle.key == "weights" for toggle in app.toggle), "this run pools nothing"
    arrays = np.load(run.embeddings())
    digits = data.load("digits")
    rows = figures(app)
    assert len(rows) == 10
    for row, (query, *found) in enumerate(rows):
        order, distance = plain_neighbours(run, row)
        assert query[:2] == ("query", arrays["indices"][row])
        assert [i for _, i, *_ in found] == arrays["indices"][order[:5]].tolist()
        for (kind, index, alt, text), other in zip(found, order, strict=False):
            right = digits.labels[index] == digits.labels[query[1]]
            assert kind == ("right" if right else "wrong")
            assert f"class {digits.class_names[digits.labels[index]]}, {kind}" in alt
            assert f"{distance[other]:.3f}" in text


def test_worst_first_then_filters(run):
    app = open_page()
    row = scores(run.metrics()[0])["trained"]
    summary = next(x.value for x in app.markdown if "MAP@R" in x.value and "failures" in x.value)
    assert f"MAP@R {100 * row['map_at_r']:.1f} %" in summary
    assert f"R@1 {100 * row['recall_at']['1']:.1f} %" in summary
    assert f"{round((1 - row['recall_at']['1']) * row['queries'])} failures" in summary
    found = learned(run.embeddings())
    precision = found.average_precision[[found.row(str(row[0][1])) for row in figures(app)]]
    assert (np.diff(precision) >= 0).all()
    assert precision[0] == np.nanmin(found.average_precision)
    app.toggle(key="failures").set_value(True)
    app.selectbox(key="class").set_value(8).run()
    labels = data.load("digits").labels
    rows = figures(app)
    assert rows
    assert all(labels[query[1]] == 8 and first[0] == "wrong" for query, first, *_ in rows)
    expected = int((found.failures & (found.labels == 8)).sum())
    assert any(x.value.startswith(f"{expected} queries") for x in app.caption)


def test_a_query_of_the_link_is_shown_alone_with_more_neighbours(run):
    index = int(np.load(run.embeddings())["indices"][3])
    app = open_page(run=run.id, query=str(index))
    (row,) = figures(app)
    assert row[0][1] == index
    assert len(row) == 25
    app.button(key="all_queries").click().run()
    assert len(figures(app)) == 10
    assert "query" not in app.query_params
    training_sample = data.load("digits").splits["train"][0]
    assert "not in the test split" in open_page(query=str(training_sample)).warning[0].value


BAD = ["../../etc/passwd", "<script>"]


@pytest.mark.parametrize("bad", [*BAD, ""])
def test_a_senseless_link_gets_a_plain_message(run, bad):
    app = open_page(run=bad, query=bad, order=bad, k=bad, failures=bad)
    assert not app.exception
    assert len(app.warning) == 2
    assert "<script>" not in "".join(x.value for x in app.warning)
    assert len(figures(app)) == 10


def test_a_run_without_embeddings_is_evaluated_by_a_job(run):
    run.embeddings().unlink()
    app = open_page(run=run.id)
    assert not app.get("html")
    app.button(key="evaluate").click().run()
    assert not app.exception
    until(lambda: run.embeddings() and not run.is_alive(), run.log_tail)
    app.run()
    assert len(figures(app)) == 10


def test_a_job_that_fails_shows_the_log(run):
    run.embeddings().unlink()
    for name in ("last.ckpt", "prev.ckpt"):
        (run.path / name).write_bytes(b"damaged")
    app = open_page(run=run.id)
    app.button(key="evaluate").click().run()
    until(lambda: time.sleep(0.5) or app.run().error, run.log_tail)
    assert "failed" in app.error[0].value
    assert "last.ckpt" in app.code[0].value


def test_a_training_run_is_waited_for_and_one_that_never_began_offers_no_job(runs):
    run = RunStore(runs).create(RunSpec())
    app = open_page(run=run.id)
    assert not app.exception
    assert not app.button
    assert "training: step 0 of 400" in app.get("progress")[0].proto.text
    with run.lock():
        run.update(state="cancelled")
    app = open_page(run=run.id)
    assert "before its first checkpoint" in app.info[0].value
    assert not app.button


def test_embeddings_are_outdated_once_training_went_on(run):
    source = run.embeddings()
    assert not outdated(run, source)
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"kind": "step", "step": 9, "loss": 0.1}) + "\n")
    assert outdated(run, source)
    app = open_page(run=run.id)
    assert app.button(key="evaluate")
    assert len(figures(app)) == 10


def test_names_are_shown_literally(run):
    nasty = '<img src=x onerror=alert(1)> "quote" \u202e **bold** $x$'
    html = neighbour_grid.html(
        [(neighbour_grid.Tile(1, nasty), [neighbour_grid.Neighbour(2, nasty, ("<b>",), True)])],
        '/x"',
        lambda i: f"?q={i}&r=1",
    )
    assert "<img src=x" not in html
    assert "<b>" not in html
    assert 'src="/x&quot;2"' in html
    assert html.count("<bdi") == 2


def test_a_run_on_vectors_says_what_its_tiles_are_and_takes_no_images(runs):
    run = make_run(runs, "data.name=toy", "batch.classes=4")
    app = open_page(run=run.id)
    assert not app.exception
    assert any("3 input values" in x.value for x in app.caption)
    assert "Gaussian" in figures(app)[0][0][2]
    app = open_page(run=run.id, view="Own picture")
    assert not app.exception
    assert any("no images" in x.value for x in app.info)


def test_data_that_is_gone_leaves_the_neighbours(run):
    spec = json.loads((run.path / "spec.json").read_text())
    spec["data"] |= {"name": "cub", "root": str(run.path)}
    (run.path / "spec.json").write_text(json.dumps(spec))
    app = open_page(run=run.id)
    assert not app.exception
    assert "No images" in app.warning[0].value
    assert "class 8" in str(figures(app))


def test_the_session_keeps_its_run_when_the_page_changes(runs):
    older = RunStore(runs).list()[0]
    newer = make_run(runs, "seed=1")
    app = open_page()
    assert app.selectbox(key="picked_run").value == newer.id
    app.selectbox(key="picked_run").set_value(older.id).run()
    assert app.query_params["run"] in (older.id, [older.id])
    go_to(app, "explore")
    app.query_params.clear()
    app.run()
    assert app.selectbox(key="picked_run").value == older.id


def test_runs_side_by_side_show_the_same_queries(run, runs):
    other = make_run(runs, "model.embedding_dim=2")
    app = open_page(run=run.id, **{"with": other.id}, order="by index")
    assert not app.exception
    body = next(x.body for x in app.get("html") if 'class="neighbours"' in x.body)
    rows = body.split('<div class="row">')[1:]
    assert len(rows) == 5
    indices = np.load(run.embeddings())["indices"]
    for row, text in enumerate(rows):
        found = [int(i) for i in re.findall(r'data-index="(\d+)"', text)]
        assert found[0] == indices[row]
        for line, each in enumerate((run, other)):
            order, _ = plain_neighbours(each, row)
            assert found[1 + 8 * line : 9 + 8 * line] == indices[order[:8]].tolist()
    assert any("McNemar p" in x.value for x in app.caption)


def test_runs_on_other_samples_are_refused_with_the_reason(run, runs):
    other = make_run(runs, "seed=1")
    app = open_page(run=run.id, **{"with": other.id})
    assert not app.exception
    assert any("left out" in x.value for x in app.warning)
    assert any("test splits differ" in x.value for x in app.get("text"))
    assert len(figures(app)) == 10


def test_near_duplicates_are_the_nearest_pairs_of_different_classes(run):
    app = open_page(run=run.id, view="Near-duplicates", closer="1 %")
    assert not app.exception
    body = next(x.body for x in app.get("html") if 'class="neighbours"' in x.body)
    pairs = [tuple(map(int, re.findall(r'data-index="(\d+)"', part))) for part in body.split('class="pair"')[1:]]
    found = learned(run.embeddings())
    x, labels = found.embeddings.astype(float), found.labels
    distance = cdist(x, x)
    distance[labels[:, None] == labels] = np.inf
    nearest = np.unravel_index(distance.argmin(), distance.shape)
    assert set(pairs[0]) == set(found.indices[list(nearest)].tolist())
    assert all(digit[a] != digit[b] for digit in [data.load("digits").labels] for a, b in pairs)


def test_suspicious_labels_show_what_the_neighbours_agree_on(run):
    with np.load(run.embeddings()) as file:
        arrays = dict(file)
    found = learned(run.embeddings())
    sure = int(np.flatnonzero(found.right[:, :8].all(axis=1))[0])
    arrays["labels"][sure] = wrong = (arrays["labels"][sure] + 1) % 10
    np.savez(run.embeddings(), **arrays)
    app = open_page(run=run.id, view="Suspicious labels", agree="8")
    assert not app.exception
    query, *neighbours = next(row for row in figures(app) if row[0][1] == arrays["indices"][sure])
    assert f"8 of 8: {found.labels[sure]}" in query[3]
    assert f"class {wrong}" in query[2]
    assert len(neighbours) == 8


def test_a_selection_filters_and_the_filtered_become_one(run):
    chosen = selections.save(run, np.load(run.embeddings())["indices"][10:14], "by <b>hand</b>")
    app = open_page(run=run.id, selection=chosen.id, order="by index")
    assert [row[0][1] for row in figures(app)] == chosen.indices.tolist()
    assert any(x.value == "by <b>hand</b>" for x in app.get("text"))
    app = open_page(run=run.id, failures="true")
    app.button(key="select_shown").click().run()
    (name,) = np.ravel(app.query_params["selection"])
    kept = selections.load(run, name)
    found = learned(run.embeddings())
    assert kept.indices.tolist() == np.sort(found.indices[found.failures]).tolist()


def test_the_weights_of_a_pooling_lie_where_the_network_looks(runs, tmp_path):
    folder = tmp_path / "data"
    random = np.random.default_rng(0)
    for c in "abcd":
        (folder / c).mkdir(parents=True)
        for i in range(4):
            pixels = random.integers(0, 255, (40, 80, 3), np.uint8)
            Image.fromarray(pixels).save(folder / c / f"{i}.png")
    of = ["data.name=folder", f"data.root={folder}", "data.image_size=32", "data.validation=none", "schedule.steps=1"]
    run = make_run(runs, *of, "model.name=resnet20", "pooling.name=crow", "batch.classes=2", "batch.samples=2")
    app = open_page(run=run.id, weights="true")
    assert not app.exception
    assert any("have not been computed" in x.value for x in app.markdown)
    path = weight_maps.write(run)
    found = weight_maps.read(path)
    app = open_page(run=run.id, weights="true")
    assert not app.exception
    assert found.weights.shape[1:] == (8, 8)
    body = next(x.body for x in app.get("html") if 'class="neighbours"' in x.body)
    address = re.search(r'class="over" src="/api/weights/([^/]+)/([^/]+)/(\d+)"', body)
    assert address[1] == run.id
    client = TestClient(Starlette(routes=gallery_service.ROUTES))
    served = client.get(f"/api/weights/{run.id}/{address[2]}/{address[3]}")
    assert "immutable" in served.headers["cache-control"]
    for invented in (
        "x",
        address[2] + "0",
        address[2].partition("-")[0],
        "0" * 12,
    ):  # browsers would cache such a response for a year
        assert client.get(f"/api/weights/{run.id}/{invented}/{address[3]}").status_code == 404
    alpha = np.asarray(Image.open(io.BytesIO(served.content)))[..., 1]
    assert alpha.shape == (128, 128)
    assert not alpha[:32].any(), "the area next to the wide image is empty"
    assert (alpha[33:95, :35] == round(gallery_service.OUTSIDE * 255)).all(), "cropped before the network"
    middles = 35 + ((np.arange(8) + 0.5) * 57 / 8).astype(int)
    weights = found.weights[found.indices.tolist().index(int(address[3]))]
    light = 1 - alpha[np.ix_(middles, middles)] / (255 * gallery_service.DARKEST)
    full = np.quantile(found.weights, gallery_service.QUANTILE)
    np.testing.assert_allclose(light, np.minimum(1, weights / full), atol=0.01)


def test_other_weights_than_the_embeddings_are_named(run):
    source = run.embeddings()
    source.rename(source.with_stem("0" * 64))
    app = open_page(run=run.id, view="Own picture")
    assert not app.exception
    assert any("do not match its checkpoint" in x.value for x in app.get("text"))


def test_of_many_queries_some_are_asked_and_then_all_by_an_index(run, monkeypatch):
    neighbours.path_of(run.embeddings()).unlink()
    monkeypatch.setattr(neighbour_lists, "MOST_PAIRS", 1)
    monkeypatch.setattr(neighbour_lists, "SAMPLE", 20)
    test_neighbours._learned.clear()
    app = open_page(run=run.id)
    assert not app.exception
    assert any("20 random queries" in each.value and "±" in each.value for each in app.caption)
    asked = []
    monkeypatch.setattr(
        job_button, "begin", lambda run, task, settings: asked.append((task, WholeSearch.from_json(settings)))
    )
    app.toggle(key="search-all").set_value(True).run()
    assert "minutes" not in str(app.radio(key="search-all how").options)
    app.radio(key="search-all how").set_value("ivf").run()
    app.button(key="search-all begin").click().run()
    assert asked == [("search-all", WholeSearch("ivf"))]
    others = learned(run.embeddings())
    unasked = int(np.flatnonzero(~others.queries)[0])
    order, _ = plain_neighbours(run, unasked)
    app = open_page(run=run.id, query=str(others.indices[unasked]))
    assert [index for _, index, *_ in figures(app)[0]][1:4] == others.indices[order[:3]].tolist()

    known = whole_search.make(run, asked[0][1])
    test_neighbours._learned.clear()
    app = open_page(run=run.id)
    assert not app.exception
    assert any(known.words in each.value for each in app.caption)
    assert any("R@1 ≈" in each.value and "MAP@R ≈" in each.value for each in app.markdown)
    assert "AP@R ≈" in figures(app)[0][0][3]
