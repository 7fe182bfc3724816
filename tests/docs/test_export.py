"""The recipes of docs/export.md work as printed and find the neighbours of the Parquet file."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import export, onnx_file
from dmlcore.storage.runs import RunStore
from tests.inspection.test_onnx_file import build

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8")
COUNT = 200


def recipe(title: str, language: str) -> str:
    """Return the code block below a heading."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.DOTALL | re.M)
    return code


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Return the working directory, which has the file embeddings.parquet of an embedding set."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    columns = {"label": random.integers(0, 4, COUNT), "sku": [f"s{row}" for row in range(COUNT)], "price": range(COUNT)}
    columns = {name: list(values) for name, values in columns.items()}
    table = files.from_arrays(random.normal(size=(COUNT, 16)).astype(np.float32), columns)
    run = embedding_sets.create(RunStore(tmp_path / "runs"), table, Roles(label="label", id="sku"))
    export.write(run, tmp_path / "embeddings.parquet")
    return tmp_path


def first_neighbours(place: Path, count: int = 5) -> list[int]:
    return pq.read_table(place / "embeddings.parquet")["neighbours"][0].as_py()[:count]


@pytest.mark.parametrize(("title", "library"), [("LanceDB", "lancedb"), ("Qdrant", "qdrant_client")])
def test_a_vector_database_finds_the_same_neighbours(title, library, place):
    pytest.importorskip(library, reason=f"the recipe needs {library}: pip install {library.replace('_', '-')}")
    names: dict[str, object] = {}
    exec(recipe(title, "python"), names)
    assert names["neighbours"] == first_neighbours(place)
    payload = names["hits"][1]
    stored = payload if isinstance(payload, dict) else payload.payload
    assert (stored["key"], stored["price"]) == (f"s{stored['index']}", stored["index"])


def test_embedding_atlas_finds_the_same_neighbours(place):
    pytest.importorskip("embedding_atlas", reason="the recipe needs embedding-atlas: pip install embedding-atlas")
    name, *arguments = recipe("Embedding Atlas", "sh").split()
    (script,) = metadata.entry_points(group="console_scripts", name=name)
    code = f"import sys; from {script.module} import {script.attr} as main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments, "--export-application", "atlas.zip"]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    with zipfile.ZipFile(place / "atlas.zip") as site:
        (data,) = [name for name in site.namelist() if name.endswith(".parquet")]
        rows = pq.read_table(io.BytesIO(site.read(data)))
    assert rows["__neighbors"][0].as_py()["ids"][1:6] == first_neighbours(place)
    assert rows["price"].to_pylist() == list(range(COUNT))


def test_onnxruntime_returns_one_embedding_per_image(place):
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"the recipe needs {library}: pip install {library}")
    onnx_file.export(build("conv4_32", (3, 32, 32)), place / "network.onnx")
    names: dict[str, np.ndarray] = {}
    exec(recipe("ONNX", "python"), names)
    assert names["embeddings"].shape == (10, 8)


def test_the_file_can_be_imported_again(place):
    table = files.read(place / "embeddings.parquet", vectors="embedding")
    assert table.vectors.shape == (COUNT, 16)
    assert {"class", "key", "price"} <= set(table.columns.column_names)
