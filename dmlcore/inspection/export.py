"""Exports of a run: weights as safetensors, embeddings as npz or Parquet, map as CSV, Embedding Projector folder."""

from __future__ import annotations

import io
import math
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dmlcore.data import DataError, Dataset
from dmlcore.inspection import images
from dmlcore.inspection import report as reports
from dmlcore.inspection.embedding_table import EmbeddingTable, ExportError, table
from dmlcore.inspection.maps.maps import Map
from dmlcore.inspection.metadata import samples_csv
from dmlcore.inspection.neighbours import read
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.csv_text import as_csv
from dmlcore.storage.runs import Run
from dmlcore.typing import Array

if TYPE_CHECKING:
    from dmlcore.inspection.trained_model import TrainedModel

# names of the exports that `content` returns
CONTENTS = ("report.html", "samples.csv", "embeddings.npz", "embeddings.parquet", "projector.zip", "map.csv")
LARGEST_SPRITE = 8192  # largest side in pixels of a sprite that the Embedding Projector accepts
_USUAL_SPRITE = 2560  # pixels; a sprite of this side still loads quickly
_TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})


def write_npz(table: EmbeddingTable, file: IO[bytes]) -> None:
    """Write an npz file with embeddings (n, D), labels and indices (n,), class_names (C,) and keys (n,).

    If some rows are gallery samples, which are searched but are not queries, the file also has is_gallery (n,). Names
    are stored as text and nothing is pickled. The file can be read with `inspection.neighbours.read`.
    """
    is_gallery = table.learned.is_gallery[table.rows]
    names = [table.class_name(label) for label in range(int(table.learned.labels.max()) + 1)]
    np.savez_compressed(
        file,
        allow_pickle=False,
        embeddings=table.embeddings,
        labels=table.labels,
        indices=table.indices,
        class_names=np.array(names, np.str_),
        keys=np.array(table.keys(), np.str_),
        **({"is_gallery": is_gallery} if is_gallery.any() else {}),
    )


def write_parquet(table: EmbeddingTable, file: IO[bytes], *, neighbours: bool = False) -> None:
    """Write a Parquet file with the columns index, key, label, class, part and embedding (a list of D float32).

    For an embedding set, key is its id, and the imported columns follow, after image, the path of the image, if it has
    images. A column of metadata whose name is taken is written as "imported NAME". The schema metadata holds the run
    id, the digest of the weights and the spec of the run.

    Args:
        table: Embeddings to export.
        file: File to write to.
        neighbours: If True, also write the columns neighbours (sample indices, nearest first), distances, and right
            (True where the neighbour has the class of the sample). Neighbours are among all samples of the split, even
            if the table holds a selection.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "index": pa.array(table.indices, pa.int64()),
        "key": pa.array(table.keys(), pa.string()),
        "label": pa.array(table.labels, pa.int64()),
        "class": pa.array(table.names(), pa.string()),
        "part": pa.array(table.splits(), pa.string()),
        "embedding": _lists(table.embeddings, pa.float32()),
    }
    if neighbours:
        learned, rows = table.learned, table.rows
        columns |= {
            "neighbours": _lists(learned.indices[learned.neighbours[rows]], pa.int64()),
            "distances": _lists(learned.distances[rows], pa.float64()),
            "right": _lists(learned.right[rows], pa.bool_()),
        }
    if table.run.is_embedding_set and table.data is not None:
        _add_imported(columns, table)
    about = {"run": table.run.id, "weights": table.weights, "spec": table.run.spec.to_json()}
    pq.write_table(pa.table(columns).replace_schema_metadata(about), file, compression="zstd")


def _add_imported(columns: dict[str, Any], table: EmbeddingTable) -> None:
    """Add the imported columns of an embedding set, and the paths of its images, to the columns of an export."""
    import pyarrow as pa

    from dmlcore.data.embedding_sets import stored  # imported here because pyarrow takes time to import

    imported = stored.load(Path(table.run.spec.data.root or ""))
    if imported.images is not None:
        columns["image"] = pa.array([str(imported.images[int(index)]) for index in table.indices], pa.string())
    if imported.columns.num_columns:
        chosen, roles = imported.columns.take(table.indices), imported.roles
        for name, values in zip(chosen.column_names, chosen.columns, strict=True):
            if name not in columns:
                columns[name] = values
            elif name not in (roles.label, roles.id, roles.image):  # these are class, key and image
                columns[f"imported {name}"] = values


def _lists(values: Array, kind: Any) -> Any:
    """Return the rows of a matrix as an Arrow array of lists of equal length."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).ravel(), kind), values.shape[1])


def map_csv(table: EmbeddingTable, points: NDArray[np.floating[Any]]) -> str:
    """Return a map as CSV text, one line per row of the table.

    The columns are index, key, label, class, part, x, y, nearest_is_right and average_precision.

    Args:
        table: Embeddings to export.
        points: Map (N, 2) of all embeddings of the split, in the order of `table.learned`.

    Raises:
        ExportError: The map does not have one point per embedding.
    """
    if points.shape != (len(table.learned.labels), 2):
        raise ExportError(f"the map has shape {points.shape}, the embeddings {table.learned.embeddings.shape}")
    lines: list[Sequence[Any]] = [
        ("index", "key", "label", "class", "part", "x", "y", "nearest_is_right", "average_precision")
    ]
    for row, key, name, split in zip(table.rows, table.keys(), table.names(), table.splits(), strict=True):
        learned, precision = table.learned, float(table.learned.average_precision[row])
        x, y = (f"{float(value):.7g}" for value in points[row])
        right, scored = int(learned.right[row, 0]), "" if math.isnan(precision) else f"{precision:.6f}"
        lines.append((learned.indices[row], key, learned.labels[row], name, split, x, y, right, scored))
    return as_csv(lines)


def write_projector(table: EmbeddingTable, folder: Path) -> None:
    r"""Write a folder for the Embedding Projector: vectors.tsv, metadata.tsv, sprite.png and projector_config.pbtxt.

    TSV has no quoting, so tabs and line ends in names are written as \t and \n. The sprite is omitted if the data set
    cannot be read, or if its images would have fewer than 8 pixels per side.
    """
    with open(folder / "vectors.tsv", "w", encoding="utf-8") as file:
        for embedding in table.embeddings:
            file.write("\t".join(f"{value:.7g}" for value in embedding) + "\n")
    learned = table.learned
    with open(folder / "metadata.tsv", "w", encoding="utf-8") as file:
        file.write("class\tlabel\tindex\tkey\tpart\tnearest_is_right\taverage_precision\n")
        for row, name, key, split in zip(table.rows, table.names(), table.keys(), table.splits(), strict=True):
            cells = (name, learned.labels[row], learned.indices[row], key, split, int(learned.right[row, 0]))
            scored = f"{learned.average_precision[row]:.6f}"
            file.write("\t".join(str(cell).translate(_TSV) for cell in (*cells, scored)) + "\n")
    side = _write_sprite(table, folder / "sprite.png")
    about = [f'tensor_name: "{table.run.id}"', 'tensor_path: "vectors.tsv"', 'metadata_path: "metadata.tsv"']
    if side:
        about += ["sprite {", '  image_path: "sprite.png"', *[f"  single_image_dim: {side}"] * 2, "}"]
    lines = ["embeddings {", *(f"  {line}" for line in about), "}", ""]
    (folder / "projector_config.pbtxt").write_text("\n".join(lines))


def sprite_side(count: int) -> int:
    """Return the side in pixels of each of `count` images on a square sprite of at most 8192 pixels.

    Returns:
        The side, or 0 if it would be below 8 pixels.
    """
    columns = math.ceil(math.sqrt(count))
    side = min(64, max(_USUAL_SPRITE // columns, min(16, LARGEST_SPRITE // columns)))
    return side if side >= 8 else 0


def _write_sprite(table: EmbeddingTable, path: Path) -> int:
    side = sprite_side(len(table.rows))
    if table.data is None or not side:
        return 0
    columns = math.ceil(math.sqrt(len(table.rows)))  # the projector expects as many rows as columns
    images.sheet(images.small(table.data, table.indices, side), side, columns, columns).save(path)
    return side


def projector_zip(table: EmbeddingTable) -> bytes:
    """Return the files of `write_projector` as the bytes of a ZIP archive."""
    file = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        write_projector(table, Path(place))
        for path in sorted(Path(place).iterdir()):
            archive.write(path, path.name)
    return file.getvalue()


def save_folder(table: EmbeddingTable, folder: Path) -> None:
    """Write the files of `write_projector` to a new or empty folder, all of them or none.

    Raises:
        ExportError: The folder exists and is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder} exists and is not empty; give another folder, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_projector(table, staging)
        staging.chmod(0o755)
        os.replace(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    atomic_files.sync_directory(folder.parent)


def write(
    run: Run,
    to: Path,
    selection: ArrayLike | None = None,
    *,
    split: str = "test",
    fmr: float | None = None,
    remarks: Sequence[str] = (),
    report: Callable[[str], None] = lambda text: None,
) -> Path:
    """Export a run in the format given by the file extension; the target is written atomically.

    Args:
        run: Run to export.
        to: Path with extension .safetensors (weights), .onnx (network), .npz or .parquet (embeddings), .html (report),
            .csv (map), or a new folder, whose name has no dot (embeddings for the Embedding Projector).
        selection: Sample indices in the data set; see `table`.
        split: Split whose embeddings are written: "test" (with the gallery, if there is one), "train" or "validation".
            Embeddings of the test split are those of the last evaluation; embeddings of the other splits are computed
            by this call with the best weights of the run.
        fmr: Promised false match rate of the threshold in the metadata of weights or a network; 0 for no threshold. By
            default it is 0.01, and the threshold is left out, with a report, if none can be chosen.
        remarks: Lines shown below the scores of a report; see `report.html`.
        report: Called with one sentence for each item that could not be included, and with the threshold.

    Returns:
        The path `to`.

    Raises:
        ExportError: The extension is unknown, the run lacks the requested data, no threshold can be chosen for the
            given rate, or the folder is not empty.
    """
    if to.suffix not in ("", ".safetensors", ".onnx", ".html", ".npz", ".parquet", ".csv"):
        raise ExportError(
            f"{to.name}: end it in .safetensors, .onnx, .html, .npz, .parquet or .csv, or give a folder, whose "
            "name has no dot"
        )
    if to.suffix in (".safetensors", ".onnx", ".html", ".csv") and split != "test":
        raise ExportError(f"{to.name}: only embeddings have a split; end it in .npz or .parquet, or give a folder")
    if to.suffix == ".safetensors":
        return _write_weights(run, to, selection, fmr, report)
    if to.suffix == ".onnx":
        return _write_onnx(run, to, selection, fmr, report)
    if fmr is not None:
        raise ExportError(f"{to.name}: only a network carries a threshold; end it in .safetensors or .onnx")
    rows = _test_table(run, selection, report) if split == "test" else _split_table(run, split, selection)
    if not to.suffix:
        save_folder(rows, to)
        return to
    # The CSV file of a map needs a map; a report can be made without one.
    plane = reports.newest_map(run) if to.suffix in (".html", ".csv") else None
    if plane is None and to.suffix == ".csv":
        raise ExportError(f"{run.id} has no map yet; open it on the Map page once")
    if plane is None and to.suffix == ".html":
        report("the report has no map, as none is computed yet")
    to.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(to, lambda file: _write_rows(rows, file, to.suffix, plane, remarks))
    return to


def _write_rows(rows: EmbeddingTable, file: IO[bytes], suffix: str, plane: Map | None, remarks: Sequence[str]) -> None:
    """Write embeddings (.npz, .parquet), a report (.html) or, if there is one, a map (.csv)."""
    if suffix == ".npz":
        write_npz(rows, file)
    elif suffix == ".parquet":
        write_parquet(rows, file, neighbours=True)
    elif suffix == ".csv" and plane is not None:
        file.write(map_csv(rows, plane.points).encode())
    else:
        file.write(reports.html(rows, plane, remarks).encode())


def _write_weights(
    run: Run, to: Path, selection: ArrayLike | None, fmr: float | None, report: Callable[[str], None]
) -> Path:
    from dmlcore.inspection import trained_model  # imported here because it imports torch

    if selection is not None:
        raise ExportError(f"{to.name}: weights have no selection; drop it")
    try:
        trained_model.export(_load_with_threshold(run, fmr, report), to)
    except ValueError as error:
        raise ExportError(str(error)) from None
    return to


def _write_onnx(
    run: Run, to: Path, selection: ArrayLike | None, fmr: float | None, report: Callable[[str], None]
) -> Path:
    from dmlcore.inspection import onnx_file  # imported here because it imports torch

    if selection is not None:
        raise ExportError(f"{to.name}: a network has no selection; drop it")
    if run.is_embedding_set:
        raise ExportError(f"{run.id} is an embedding set and has no network; export its embeddings (.parquet or .npz)")
    try:
        difference = onnx_file.export(_load_with_threshold(run, fmr, report), to)
    except onnx_file.OnnxError as error:
        raise ExportError(f"{to.name}: {error}") from None
    if difference is None:
        report("the file was not checked, because onnxruntime is missing; install: pip install onnxruntime")
    else:
        report(f"checked with onnxruntime: the largest difference from PyTorch is {difference:.1e}")
    return to


def _load_with_threshold(run: Run, fmr: float | None, report: Callable[[str], None]) -> TrainedModel:
    """Return the trained network of a run with a threshold; see `fmr` of `write`."""
    from dmlcore.inspection import thresholds, trained_model  # imported here because they import torch
    from dmlcore.storage import checkpoint

    model = trained_model.load(run)
    if fmr == 0:
        return model
    try:
        source = run.embeddings()
        if source is not None and source.stem != checkpoint.digest_of(model.network.state_dict()):
            raise ExportError(f"{run.id} was trained further since its evaluation; run: dml evaluate {run.id}")
        model.threshold = thresholds.threshold(run, thresholds.FMR if fmr is None else fmr)
    except (ValueError, RuntimeError, OSError) as error:
        if fmr is not None:
            raise ExportError(f"no threshold for --fmr {fmr:g}: {error}") from None
        report(f"the file has no threshold: {error}")
    else:
        report(model.threshold.sentence)
    return model


def _test_table(
    run: Run,
    selection: ArrayLike | None,
    report: Callable[[str], None] = lambda text: None,
    load: Callable[[RunSpec], Dataset] | None = None,
) -> EmbeddingTable:
    """Return the table of the test embeddings of the last evaluation; `load` reads the data set."""
    from dmlcore.training.build import load_data

    source = run.embeddings()
    if source is None:
        raise ExportError(f"{run.id} has no embeddings yet: python -m dmlcore evaluate {run.id}")
    try:
        # Images and names are optional in an export.
        data: Dataset | None = (load or load_data)(run.spec)
    except DataError as error:
        data = None
        report(f"no images and no names, as the data set cannot be read: {error}")
    return table(run, source, read(source), data, selection)


def _split_table(run: Run, split: str, selection: ArrayLike | None) -> EmbeddingTable:
    """Compute the table of the training or validation embeddings with the best weights of the run."""
    from dmlcore.storage import checkpoint
    from dmlcore.training import evaluation, starts
    from dmlcore.training.state import embedder, use_best

    if split not in ("train", "validation"):
        raise ExportError(f"split: {split!r} does not exist; use train, validation or test")
    state = starts.load_for_evaluation(run)
    if len(state.data.splits[split]) < 2:
        raise ExportError(f"split: {split} has fewer than two samples in {run.id}; choose another one")
    use_best(state)
    network = embedder(state)
    embeddings = evaluation.embed(network, state.data, split, state.device)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{checkpoint.digest_of(network.state_dict())}.npz"
        evaluation.save_embeddings(source, embeddings, state.data, split)
        return table(run, source, read(source), state.data, selection, split)


def content(
    run: Run,
    name: str,
    selection: ArrayLike | None = None,
    *,
    load: Callable[[RunSpec], Dataset] | None = None,
    remarks: Sequence[str] = (),
) -> bytes:
    """Return an export of the last evaluation of a run, as a server sends it.

    Args:
        run: Run to export.
        name: One of CONTENTS.
        selection: Sample indices in the data set; see `table`.
        load: Function that reads the data set of a spec, by default `load_data`; a server passes one with a cache.
        remarks: Lines shown below the scores of a report.

    Raises:
        ExportError: The name is unknown, or the run lacks the requested data.
    """
    if name not in CONTENTS:
        raise ExportError(f"{name}: there is no such export of a run; choose one of {', '.join(CONTENTS)}")
    rows = _test_table(run, selection, load=load)
    if name == "samples.csv":
        if rows.data is None:
            raise ExportError("the data set of this run cannot be read; restore its files")
        return samples_csv(rows.data, rows.indices).encode()
    if name == "projector.zip":
        return projector_zip(rows)
    plane = None
    with suppress(Unreadable):  # a report can be made without a map
        plane = reports.newest_map(run) if name in ("report.html", "map.csv") else None
    if name == "map.csv" and plane is None:
        raise ExportError("the map of this run does not exist or is damaged; compute it again")
    file = io.BytesIO()
    _write_rows(rows, file, Path(name).suffix, plane, remarks)
    return file.getvalue()
