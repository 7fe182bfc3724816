"""Exported data equal the learned data, for all names."""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import export, metadata, neighbours
from dmlcore.inspection.export import ExportError
from dmlcore.storage.runs import RunStore
from tests.inspection import hostile
from tests.members import in_one_case
from tests.wording import says


@pytest.fixture
def made(tmp_path):
    return hostile.make(tmp_path)


def test_npz_reads_back_as_what_was_learned(made, tmp_path):
    _, data, table = made
    path = tmp_path / "taken.npz"
    with open(path, "wb") as file:
        export.write_npz(table, file)
    again = neighbours.read(path)
    assert np.array_equal(again.embeddings, table.learned.embeddings)
    assert np.array_equal(again.indices, data.splits["test"])
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["class_names"].tolist() == list(hostile.NAMES)
        assert arrays["keys"].tolist() == [data.keys[i] for i in range(36, 72)]


def test_parquet_holds_every_sample_with_its_neighbours(made, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    run, data, table = made
    path = tmp_path / "taken.parquet"
    with open(path, "wb") as file:
        export.write_parquet(table, file, neighbours=True)
    found = pq.read_table(path)
    assert found.column("class").to_pylist() == [hostile.NAMES[label] for label in table.labels]
    assert str(found.schema.field("embedding").type) == "fixed_size_list<element: float>[5]"
    embeddings = np.stack(found.to_pandas()["embedding"])
    assert np.array_equal(embeddings, table.embeddings)
    first = found.slice(0, 1).to_pylist()[0]
    order = np.argsort(np.linalg.norm(embeddings - embeddings[0], axis=1))[1:4]
    assert first["neighbours"][:3] == data.splits["test"][order].tolist()
    assert first["right"][:3] == (data.labels[36 + order] == data.labels[36]).tolist()
    about = {key.decode(): value.decode() for key, value in found.schema.metadata.items()}
    assert (about["run"], about["weights"]) == (run.id, "ab" * 32)
    assert json.loads(about["spec"])["name"] == run.spec.name


def test_a_selection_is_exported_alone_but_its_neighbours_are_of_all(made):
    run, data, table = made
    source = run.embeddings()
    some = export.table(run, source, table.learned, data, [50, 38, 3])  # 3 is not in the test split
    assert some.indices.tolist() == [38, 50]
    assert some.names() == [hostile.NAMES[0], hostile.NAMES[2]]
    assert np.array_equal(some.embeddings, table.embeddings[[2, 14]])
    with pytest.raises(ExportError, match="no sample of the selection"):
        export.table(run, source, table.learned, data, [3])


def test_the_map_as_csv_keeps_names_whole(made):
    _, _, table = made
    points = table.learned.embeddings[:, :2]
    rows = list(csv.DictReader(io.StringIO(export.map_csv(table, points), newline="")))
    # Equal except for text that a spreadsheet with the separator ";" would evaluate.
    assert [row["class"].replace("; '=", "; =") for row in rows] == table.names()
    assert [row["key"].replace("; '=", "; =") for row in rows] == table.keys()
    assert np.allclose([[float(row["x"]), float(row["y"])] for row in rows], points, rtol=1e-6)
    assert [int(row["nearest_is_right"]) for row in rows] == table.learned.right[:, 0].tolist()
    with pytest.raises(ExportError, match="shape"):
        export.map_csv(table, points[:5])


def test_the_projector_folder_fits_together(made, tmp_path):
    _, _, table = made
    folder = tmp_path / "out" / "projector"
    export.save_folder(table, folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["projector"], "no temporary files must remain"
    vectors = np.loadtxt(folder / "vectors.tsv", delimiter="\t")
    assert np.allclose(vectors, table.embeddings, rtol=1e-6)
    head, *rows = [line.split("\t") for line in (folder / "metadata.tsv").read_text().split("\n")[:-1]]
    assert len(rows) == 36
    assert {len(row) for row in rows} == {len(head)}, "names must not create columns or lines"
    assert rows[35][0] == "tab\\there\\nline \"quoted\" 'single' &amp; =1+1"
    sprite = Image.open(folder / "sprite.png")
    assert sprite.size == (6 * 64, 6 * 64)
    for place in (0, 13, 35):
        middle = (place % 6 * 64 + 32, place // 6 * 64 + 32)
        assert sprite.getpixel(middle) == tuple(hostile.image(36 + place)[0, 0])
    config = (folder / "projector_config.pbtxt").read_text()
    assert config.count("single_image_dim: 64") == 2
    with pytest.raises(ExportError, match="not empty"):
        export.save_folder(table, folder)
    names = zipfile.ZipFile(io.BytesIO(export.projector_zip(table))).namelist()
    assert names == ["metadata.tsv", "projector_config.pbtxt", "sprite.png", "vectors.tsv"]


def test_a_folder_appears_complete_or_not_at_all(made, tmp_path, monkeypatch):
    _, _, table = made

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "_write_sprite", full)
    with pytest.raises(OSError, match="No space"):
        export.save_folder(table, tmp_path / "out" / "projector")
    assert list((tmp_path / "out").iterdir()) == []


@in_one_case(count=[1, 2, 36, 3500, 5924, 60_502, 1_000_000, 2_000_000])
def test_a_sprite_is_never_larger_than_the_projector_takes(count):
    side, columns = export.sprite_side(count), int(np.ceil(np.sqrt(count)))
    assert side * columns <= export.LARGEST_SPRITE
    assert side >= 8 or count > 1_000_000


def test_without_the_data_set_there_are_numbers_for_names(made, tmp_path):
    run, _, table = made
    bare = export.table(run, run.embeddings(), table.learned)
    assert bare.names()[0] == "class 0"
    assert set(bare.keys()) == {""}
    export.save_folder(bare, tmp_path / "projector")
    assert not (tmp_path / "projector" / "sprite.png").exists()
    assert "sprite" not in (tmp_path / "projector" / "projector_config.pbtxt").read_text()


def test_samples_that_are_only_searched_are_of_the_gallery(tmp_path):
    _, _, table = hostile.make(tmp_path, gallery=True)
    assert table.splits()[:4] == ["gallery", "test", "test", "gallery"]


def test_an_export_by_the_ending_of_its_name(made, tmp_path, monkeypatch):
    run, data, table = made
    monkeypatch.setattr("dmlcore.training.build.load_data", lambda spec: data)
    for name in ("a/report.html", "a/e.npz", "a/e.parquet", "a/map.csv", "a/projector"):
        assert export.write(run, tmp_path / name).exists()
    assert (tmp_path / "a/map.csv").read_bytes() == export.map_csv(table, table.learned.embeddings[:, :2]).encode()
    assert not list((tmp_path / "a").glob(".*"))
    with pytest.raises(ExportError, match=r"\.docx: end it in"):
        export.write(run, tmp_path / "a.docx")
    run.projection().unlink()
    said = []
    export.write(run, tmp_path / "b.html", report=said.append)
    assert [says(text, "no map") for text in said] == [True]
    with pytest.raises(ExportError, match="no map yet"):
        export.write(run, tmp_path / "b.csv")
    run.embeddings().unlink()
    with pytest.raises(ExportError, match="dmlcore evaluate"):
        export.write(run, tmp_path / "b.npz")


def test_the_content_of_an_export_by_its_name(made):
    run, data, table = made
    content = {name: export.content(run, name, load=lambda spec: data) for name in export.CONTENTS}
    assert content["report.html"].startswith(b"<!DOCTYPE html>")
    assert content["map.csv"].decode() == export.map_csv(table, table.learned.embeddings[:, :2])
    assert content["samples.csv"].decode() == metadata.samples_csv(data, table.indices)
    with np.load(io.BytesIO(content["embeddings.npz"])) as arrays:
        assert np.array_equal(arrays["embeddings"], table.embeddings)
    names = zipfile.ZipFile(io.BytesIO(content["projector.zip"])).namelist()
    assert {"vectors.tsv", "metadata.tsv"} <= set(names)
    some = export.content(run, "samples.csv", [50, 38, 3], load=lambda spec: data)  # 3 is not in the test split
    assert len(some.decode().splitlines()) == 3
    with pytest.raises(ExportError, match=r"no such export"):
        export.content(run, "run.exe", load=lambda spec: data)
    run.projection().write_bytes(b"damaged")
    assert b'id="map"' not in export.content(run, "report.html", load=lambda spec: data)
    run.projection().unlink()
    with pytest.raises(ExportError, match="does not exist or is damaged"):
        export.content(run, "map.csv", load=lambda spec: data)


@pytest.mark.parametrize("has_images", [True, False])
def test_parquet_of_an_embedding_set_holds_ids_images_and_metadata(tmp_path, has_images):
    pq = pytest.importorskip("pyarrow.parquet")
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    columns = {"sku": [f"s{row}" for row in range(12)], "label": ["a", "b"] * 6, "price": [None, *range(11)]}
    columns |= {"part": ["left", "right"] * 6, "when": [datetime.date(2026, 1, 1 + row) for row in range(12)]}
    for row in range(12 * has_images):
        Image.new("RGB", (4, 4)).save(tmp_path / f"s{row}.png")
    run = embedding_sets.create(
        RunStore(tmp_path / "runs"),
        files.from_arrays(vectors, columns),
        Roles(label="label", id="sku"),
        images=tmp_path if has_images else None,
    )
    whole = pq.read_table(export.write(run, tmp_path / "whole.parquet")).to_pydict()
    assert list(whole)[:6] == ["index", "key", "label", "class", "part", "embedding"]
    added = ["image"] * has_images + ["sku", "price", "imported part", "when"]
    assert list(whole)[6:] == ["neighbours", "distances", "right", *added]
    assert whole["key"] == whole["sku"] == columns["sku"]
    assert whole["class"] == columns["label"]
    assert whole["price"] == columns["price"]
    assert whole["imported part"] == columns["part"]
    assert whole["when"] == columns["when"]
    assert whole.get("image") == ([str(tmp_path / f"s{row}.png") for row in range(12)] if has_images else None)
    some = pq.read_table(export.write(run, tmp_path / "some.parquet", [7, 2])).to_pydict()
    assert some["sku"] == ["s2", "s7"]
