"""The map page: the canvas receives the addresses of its points, lassos become selections, jobs create missing maps."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dmlcore.inspection import selections, tags_and_views
from dmlcore.inspection.maps import maps
from dmlcore.storage.runs import Run, scores
from pages.inspection.explore import canvas as canvas_view
from pages.inspection.explore import keeping as keeping_view
from pages.inspection.explore import service as map_service
from pages.inspection.explore.state import Look
from tests.members import in_one_case
from tests.pages.conftest import load_page
from tests.pages.inspection.neighbours.test_page import BAD
from tests.started import until


def canvas(app: AppTest) -> dict:
    return json.loads(app.get("bidi_component")[0].proto.json)


def shown(run: Run) -> map_service.MapData:
    found = map_service.of_map(run, maps.list_settings(run)[0])
    assert found is not None
    return found


def test_the_map_shows_the_points_of_the_run_and_what_the_link_says(run):
    app = load_page("explore")
    assert not app.exception
    told, found = canvas(app), maps.read(run.projection())
    assert told["points"] == shown(run).address
    assert told["images"].endswith(f"/api/thumb/{run.id}/")
    assert [link["page"] for link in told["links"]] == ["neighbours", "failures"]
    assert told["marks"] == []
    assert len(json.dumps(told)) < 3000, "the points are sent by HTTP"
    row = scores(run.metrics()[0])["trained"]
    parts = ("t-SNE, perplexity 30", "seed 0", "896 test", "10 classes", f"MAP@R {100 * row['map_at_r']:.1f} %")
    assert any(all(part in caption.value for part in (*parts, "mean nothing")) for caption in app.caption)
    quality = (f"Trustworthiness {found.quality.trustworthiness:.3f}", f"{100 * found.quality.kept_neighbours:.1f} %")
    assert any(all(part in caption.value for part in quality) for caption in app.caption)
    first, second = (int(index) for index in np.load(run.embeddings())["indices"][[5, 9]])
    link = {"run": run.id, "point": str(first), "query": str(second), "colour": "purity", "classes": "3,8"}
    told = canvas(load_page("explore", **link))
    assert told["marks"] == [first, second]
    assert told["look"] == Look(colour="purity", classes=(3, 8)).to_json()


@pytest.mark.parametrize("bad", BAD)
def test_a_senseless_link_gets_a_plain_message(run, bad):
    names = ("run", "point", "map", "colour", "selection", "training")
    app = load_page("explore", **dict.fromkeys(names, bad), classes=f"{bad},-1")
    assert not app.exception
    assert len(app.warning) == 3  # run, point, selection
    told = canvas(app)
    assert (told["marks"], told["look"]["colour"], told["selection"]) == ([], "class", None)
    assert all(number >= 0 for number in told["look"]["classes"]), "an absent class must not be highlighted"


def test_the_selection_of_the_link_is_drawn_and_counted_by_class(run):
    indices = shown(run).sheet.indices[::7]
    kept = selections.save(run, indices, "a test")
    app = load_page("explore", run=run.id, selection=kept.id)
    assert not app.exception
    assert canvas(app)["selection"] == {"id": kept.id}
    table = app.dataframe[0].value
    assert table["selected"].sum() == len(indices)
    assert (np.diff(table["selected"]) <= 0).all()
    labels = np.load(run.embeddings())["labels"]
    assert dict(zip(table["class"], table["of"], strict=True)) == {str(c): int((labels == c).sum()) for c in range(10)}


# ---- messages from the canvas


def lasso(corners: object) -> str:
    return base64.b64encode(np.asarray(corners, "<u2").tobytes()).decode()


def test_a_lasso_selects_what_lies_inside_and_another_adds(run):
    found = shown(run)
    x, y = found.sheet.frames[0].T.astype(int)
    left, right = [[0, 0], [30_000, 0], [30_000, 65_535], [0, 65_535]], [[40_000, 0], [65_535, 0], [65_535, 65_535]]
    first = canvas_view.rows(found, {"polygon": lasso(left), "frame": 0}, None)
    assert (first == np.sort(found.sheet.indices[(x < 30_000) & (y < 65_535)])).all()
    assert len(first)
    before = selections.Selection("x", first, "")
    both = canvas_view.rows(found, {"polygon": lasso(right), "frame": 0, "add": True}, before)
    alone = canvas_view.rows(found, {"polygon": lasso(right), "frame": 0}, before)
    assert (both == np.union1d(first, alone)).all()
    assert len(both) > len(first)


def test_a_point_is_added_and_taken_out_again(run):
    found = shown(run)
    one = int(found.sheet.indices[3])
    before = selections.Selection("x", canvas_view.rows(found, {"toggle": one}, None), "")
    assert before.indices.tolist() == [one]
    assert canvas_view.rows(found, {"toggle": one}, before).tolist() == []


SQUARE = lasso(np.zeros((4, 2)))


@in_one_case(
    message=[
        *({}, {"polygon": None}, {"polygon": "%%%"}, {"polygon": 5}, {"polygon": "AAAA"}),
        *({"polygon": lasso(np.zeros((65, 2)))}, {"polygon": SQUARE, "frame": 7}, {"polygon": SQUARE, "frame": "0"}),
        *({"toggle": -4}, {"toggle": "1"}),
    ]
)
def test_a_senseless_message_is_refused(run, message):
    with pytest.raises(ValueError, match=r"lasso|frame|not on the map|could not be read"):
        canvas_view.rows(shown(run), message, None)


# ---- data stored with the run


def bits(mask: np.ndarray) -> str:
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()


def test_the_images_shown_are_tagged_and_the_canvas_told(run):
    indices = shown(run).sheet.indices
    keeping_view.keep(run, indices, {"tag": "odd", "bits": bits(np.arange(len(indices)) % 7 == 2), "on": True})
    keeping_view.keep(run, indices, {"tag": "odd", "index": int(indices[2]), "on": False})
    kept = tags_and_views.read(run)
    assert kept.tags["odd"].tolist() == indices[9::7].tolist()
    told = canvas(load_page("explore", run=run.id, tags="odd"))
    assert (told["tags"], told["look"]["tags"], told["closed"]) == (kept.id, ["odd"], "")


@in_one_case(
    message=[
        *(None, {}, {"tag": "a"}, {"tag": "a", "bits": "AA=="}, {"tag": "a", "bits": "%"}, {"tag": "a", "bits": 5}),
        *({"tag": "a", "index": "1"}, {"tag": "a", "index": -1}, {"tag": "a", "index": 10**6}),
        *({"tag": "a" * 99, "index": 900}, {"view": ""}, {"view": 5}),
        {"tag": "a", "bits": base64.b64encode(bytes(112)).decode()},
        {"tag": "a", "bits": base64.b64encode(b"\xff" * 113).decode()},
    ]
)
def test_a_senseless_wish_keeps_nothing(run, message):
    keeping_view.keep(run, shown(run).sheet.indices, message)
    assert not (run.path / tags_and_views.FILE).exists()


def test_views_that_cannot_be_read_are_said_and_the_map_is_shown(run):
    (run.path / tags_and_views.FILE).write_text("{")
    told = canvas(load_page("explore", run=run.id))
    assert "damaged" in told["closed"]
    assert (told["tags"], told["views"]) == ("", [])


# ---- missing data


def finished(run: Run, app: AppTest) -> AppTest:
    """Wait for the job that the page has started and return the page after another run."""
    assert not app.exception
    until(lambda: run.projection() and not run.is_alive(), run.log_tail)
    return app.run()


def test_a_small_map_that_is_missing_is_made_unasked(run):
    run.projection().unlink()
    app = load_page("explore")
    assert not app.get("bidi_component")
    assert canvas(finished(run, app))["points"] == shown(run).address


def test_a_large_map_is_made_on_request_with_the_chosen_settings(run):
    run.projection().unlink()
    with np.load(run.embeddings()) as arrays:
        wide = {k: np.repeat(v, 20, axis=1) if k == "embeddings" else v for k, v in arrays.items()}
    np.savez(run.embeddings(), **wide)
    app = load_page("explore")
    assert not run.is_alive()
    assert run.projection() is None
    app.button_group(key="map method").set_value("pca").run()
    app.button(key="project").click().run()
    assert canvas(finished(run, app))["points"] == shown(run).address
    assert maps.list_settings(run) == [maps.Settings("pca")]


def test_of_several_maps_the_link_names_one(run):
    maps.make(run, maps.Settings("pca"))
    first, second = maps.list_settings(run)
    assert first.method == "pca"
    assert canvas(load_page("explore"))["title"] == "PCA"
    app = load_page("explore", run=run.id, map=second.name)
    assert canvas(app)["title"].startswith("t-SNE")
    app.selectbox(key=f"map of {run.id}").set_value(first.name).run()
    assert canvas(app)["title"] == "PCA"


def test_newer_embeddings_need_a_newer_map(run):
    source = run.embeddings()
    newer = source.with_name("0" * 64 + ".npz")
    newer.write_bytes(source.read_bytes())
    row = json.loads((run.path / "metrics.jsonl").read_text().splitlines()[-1]) | {"weights": newer.stem}
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")
    app = load_page("explore")
    assert not app.exception
    assert not app.get("bidi_component"), "the old map is not shown for the new embeddings"
    finished(run, app)
    assert run.projection().name.startswith("0" * 64)


def test_a_map_that_does_not_fit_is_refused(run):
    path = run.projection()
    with np.load(path) as arrays:
        kept = dict(arrays)
    np.savez(path, **kept | {"points": np.zeros((3, 2), np.float32)})
    app = load_page("explore")
    assert not app.exception
    assert "embeddings has a dimension of 896 instead of 3" in app.error[0].value
    assert app.button(key="project")
