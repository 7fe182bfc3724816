"""The points of a map over HTTP: they are those of the run, and the route serves nothing else."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.inspection import duplicates, selections, tags_and_views
from dmlcore.inspection.maps import maps
from dmlcore.inspection.neighbours import read
from pages.inspection.explore import service as map_service
from pages.inspection.explore.colourings import columns
from pages.inspection.explore.service import MapData
from pages.shared.server.wire import unpack
from tests.embedding_set_runs import HOSTILE, make_set
from tests.members import in_one_case


@pytest.fixture
def get():
    """Return a function that fetches a file of a map and unpacks it."""
    with TestClient(Starlette(routes=map_service.ROUTES)) as client:
        yield lambda found, name: unpack(client.get(f"{found.address}{name}.bin").raise_for_status().content)


@pytest.fixture
def client():
    with TestClient(Starlette(routes=map_service.ROUTES)) as client:
        yield client


def set_bits(packed: np.ndarray, count: int) -> list[int]:
    return np.flatnonzero(np.unpackbits(packed, bitorder="little")[:count]).tolist()


@pytest.fixture
def found(run) -> MapData:
    return map_service.of_map(run, maps.list_settings(run)[0])


def test_the_points_are_those_of_the_map(client, run, found):
    response = client.get(f"{found.address}points.bin")
    assert "immutable" in response.headers["cache-control"]
    told = unpack(response.content)
    arrays, source = told["arrays"], np.load(run.embeddings())
    points = maps.read(run.projection()).points
    a, b = np.polyfit(points[:, 0], arrays["xy"][:, 0], 1)
    assert np.abs(a * points[:, 0] + b - arrays["xy"][:, 0]).max() < 2
    assert (np.cumsum(arrays["index_steps"]) == source["indices"]).all()
    labels = np.cumsum(arrays["label_steps"])
    assert (labels[arrays["group"]] == source["labels"]).all()
    assert told["names"] == list("0123456789")
    assert (arrays["group"][arrays["central"]] == np.arange(10)).all()
    assert int(response.headers["content-length"]) < 6 * len(points) + 1500


def test_colours_are_what_the_neighbours_say(get, run, found):
    known = read(run.embeddings())
    right, purity, density = (get(found, name) for name in ("right", "purity", "density"))
    assert (right["arrays"]["values"] == known.right[:, 0]).all()
    assert right["wrong"] == int((~known.right[:, 0]).sum())
    assert right["right"] + right["wrong"] == len(known.labels)
    assert (purity["arrays"]["values"] == np.rint(254 * known.right[:, :8].mean(axis=1))).all()
    dense = density["arrays"]["values"].astype(int)
    order = np.argsort(known.distances[:, 7])
    assert (np.diff(dense[order]) <= 0).all()
    assert (dense.min(), dense.max()) == (0, 254)
    near = get(found, "near-17")
    assert [n["row"] for n in near["neighbours"]] == known.neighbours[17].tolist()
    assert [n["right"] for n in near["neighbours"]] == known.right[17].tolist()
    assert (near["id"], near["metadata"]) == ("", [])


def test_columns_filter_by_what_the_neighbours_say(get, run, found):
    known = read(run.embeddings())
    rank, hubness = get(found, "rank"), get(found, "hubness")
    assert (rank["arrays"]["fine"] == known.positives.rank).all()
    names = [rank["names"][code] for code in rank["arrays"]["values"]]
    for name, place in zip(names, known.positives.rank.tolist(), strict=True):
        low, _, high = name.removeprefix("first hit at rank ").removeprefix("first hit beyond rank ").partition(" to ")
        assert (place > int(low)) if "beyond" in name else int(low) <= place <= int(high or low)
    times = np.bincount(known.neighbours[:, :10].ravel(), minlength=len(known.labels))
    assert (hubness["arrays"]["fine"] == times).all()
    assert ((hubness["arrays"]["values"] == 0) == (times == 0)).all()
    assert ((hubness["arrays"]["values"] >= 2) == (times > times.mean() + 2 * times.std())).all()
    doubted = np.flatnonzero(get(found, "doubted")["arrays"]["values"] == 1)
    assert doubted.tolist() == np.sort(duplicates.find_suspects(known).rows).tolist()
    assert not get(found, "split")["arrays"]["values"].any(), "all samples are queries"


def test_tags_and_selections_are_bits_by_their_id(client, get, run, found):
    chosen, count = found.sheet.indices[[3, 400]], len(found.sheet.indices)
    kept = tags_and_views.tag(run, "odd", chosen)
    told = get(found, f"tags-{kept.id}")
    assert told["names"] == ["odd"]
    assert set_bits(told["arrays"]["bits"][0], count) == [3, 400]
    selection = selections.save(run, chosen, "a test")
    assert set_bits(get(found, f"selection-{selection.id}")["arrays"]["bits"], count) == [3, 400]
    tags_and_views.tag(run, "odd", chosen[:1], on=False)
    assert client.get(f"{found.address}tags-{kept.id}.bin").status_code == 404
    (run.path / tags_and_views.FILE).write_text("{")
    assert client.get(f"{found.address}tags-{kept.id}.bin").status_code == 409


def test_contours_close_around_the_points(get, found):
    told = get(found, "contours-0")
    assert told["arrays"]["ends"][-1] == len(told["arrays"]["xy"])
    assert len(told["shares"]) == len(told["arrays"]["ends"])


def test_a_sample_has_a_history_where_checkpoints_are_embedded(client, get, run, found):
    response = client.get(f"{found.address}history-17.bin")
    assert unpack(response.content) == {"moments": [], "kept": 0, "arrays": {}}
    assert response.headers["cache-control"] == "no-cache", "the embeddings may change at any time"
    folder = run.path / "kept"
    folder.mkdir()
    (folder / "00000004.ckpt").write_bytes(b"")
    (folder / "00000004.npz").write_bytes(run.embeddings().read_bytes())
    told, known = get(found, "history-17"), read(run.embeddings())
    (moment,) = told["moments"]
    assert told["kept"] == 1
    assert (moment["step"], moment["rank"]) == (4, int(known.positives.rank[17]))
    assert moment["nearest"] == int(known.indices[known.neighbours[17, 0]])


def test_the_table_has_every_point(client, run, found):
    response = client.get(f"{found.address}map.csv")
    lines = list(csv.DictReader(io.StringIO(response.text)))
    known, points = read(run.embeddings()), maps.read(run.projection()).points
    assert [int(line["sample"]) for line in lines] == known.indices.tolist()
    assert [line["nearest_is_right"] for line in lines] == [str(int(right)) for right in known.right[:, 0]]
    assert np.array([[line["x"], line["y"]] for line in lines], float) == pytest.approx(points, rel=1e-4, abs=1e-4)


@in_one_case(
    file=[
        *("points.csv", "map.bin", "frame-1.bin", "frame.bin", "near-896.bin", "near--1.bin", "near-1e3.bin"),
        *("right-1.bin", "contours-a.bin", "contours-1.bin", "history-896.bin", "history.bin", "meta-0.bin"),
        *("tags-0123456789abcdef.bin", "tags.bin", "selection-0123456789abcdef.bin", "selection-..%2f..%2fspec.bin"),
        *("points.bin%00", "", "x" * 3000),
    ]
)
def test_there_are_no_other_files(client, found, file):
    assert client.get(f"{found.address}{file}").status_code == 404


def test_an_address_of_other_content_leads_nowhere(client, found):
    run, name, tag = found.address.strip("/").split("/")[2:]
    assert client.get(f"/api/map/{run}/{name}/{tag}/points.bin").status_code == 200
    others = [
        (run, name, "0" * 16),
        (run, "0" * 16, tag),
        (run, f"{name}-x", tag),
        ("..", name, tag),
        ("no", name, tag),
    ]
    for other in others:
        assert client.get(f"/api/map/{'/'.join(other)}/points.bin").status_code == 404


def test_samples_alone_in_their_class_or_only_searched_have_no_verdict(run):
    known = read(run.embeddings())
    alone = known.labels.copy()
    alone[0] = 99
    path = run.embeddings().with_name("other.npz")
    gallery = np.arange(len(alone)) % 3 == 0
    np.savez(path, embeddings=known.embeddings, labels=alone, indices=known.indices, is_gallery=gallery)
    sides = columns(read(path))
    right, purity = sides["right"][0], sides["purity"][0]
    assert (right[gallery] == 255).all()
    assert (right[~gallery] < 2).all()
    assert purity[0] == 255
    assert (purity[1:] < 255).all()


@pytest.fixture
def imported(tmp_path, monkeypatch) -> MapData:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    run = make_set(tmp_path / "runs")
    found = map_service.of_map(run, maps.list_settings(run)[0])
    assert found is not None
    return found


def test_metadata_columns_are_served_by_number(client, get, imported):
    assert [column.name for column in imported.metadata()] == ["price", "colour", HOSTILE]
    price, colour = (get(imported, f"meta-{k}") for k in (0, 1))
    assert price["range"] == [0.5, 44.5]
    assert colour["names"] == ["blue", "red"]
    assert np.flatnonzero(colour["arrays"]["values"] == 255).tolist() == list(range(0, 90, 10))
    for file in ("meta-3.bin", "meta-a.bin", "meta.bin", "meta-0.csv", f"{HOSTILE}.bin"):
        assert client.get(f"{imported.address}{file}").status_code == 404


def test_a_point_and_the_table_have_ids_and_metadata(client, get, imported):
    told = get(imported, "near-7")
    assert told["id"] == "item 007"
    assert told["metadata"] == [["price", "3.5"], ["colour", "blue"], [HOSTILE, "3"]]
    lines = list(csv.DictReader(io.StringIO(client.get(f"{imported.address}map.csv").text)))
    assert [line["id"] for line in lines] == [f"item {row:03}" for row in range(90)]
    assert (lines[7]["price"], lines[7]["colour"], lines[7]["name"]) == ("3.5", "blue", "birch")


def test_the_table_without_labels_says_nothing_about_classes(client, get, tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    run = make_set(tmp_path, labels=False)
    bare = map_service.of_map(run, maps.list_settings(run)[0])
    assert bare is not None
    (first, *_) = csv.DictReader(io.StringIO(client.get(f"{bare.address}map.csv").text))
    assert list(first) == ["sample", "id", "x", "y", "distance_to_nearest", "price", "colour", HOSTILE]
    assert "bad hub" not in get(bare, "hubness")["names"]
