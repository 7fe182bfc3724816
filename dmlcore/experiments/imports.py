"""Imports of embeddings or photographs from files of a user, in this process or in the background.

An import is a task whose folder holds the request and, for uploads, the files. Folders that are no longer used are
removed after a day.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.embedding_sets.source import reading, source_file
from dmlcore.data.embedding_sets.table import VectorTable
from dmlcore.data.files import archives, locate
from dmlcore.experiments import embedding_sets, photographs
from dmlcore.experiments.photographs import EmbedRequest, ProgressReport
from dmlcore.storage import atomic_files
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import Progress, ProgressState, Task

REQUEST = "request.json"
FILES = "files"  # folder of uploaded files in the folder of an import
MAX_REQUEST_BYTES = 2**20
MAX_UNPACKED_BYTES = 4 * 2**30  # unpacked bytes of an archive of images
LIFETIME = 24 * 3600  # seconds after which an unused folder is removed
# Largest number of rows that are imported within a request of the app: a few seconds on two cores.
FEW_ROWS = 20_000

Name = Annotated[str, Field(max_length=4096)]


class ImportRequest(BaseModel):
    """Files, columns and options of an import.

    Attributes:
        file: File of embeddings.
        labels: File of labels and metadata with one row per vector; None if there is none.
        images: Folder or .zip file of the images; None if there are none.
        vectors: Name of the array or column with the embeddings; None chooses the only candidate.
        label: Column with the labels; None if there is none. Likewise `id`, `image` and `split`.
        name: Name of the embedding set; "" for that of the file.
        normalize: Divide each vector by its Euclidean norm.
        copy_images: Copy the images of a folder into the set; those of a .zip file are always copied.
        image_roots: Folders below which absolute paths in the image column are accepted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Name
    labels: Name | None = None
    images: Name | None = None
    vectors: Name | None = None
    label: Name | None = None
    id: Name | None = None
    image: Name | None = None
    split: Name | None = None
    name: Name = ""
    normalize: bool = True
    copy_images: bool = False
    image_roots: tuple[Name, ...] = ()

    @property
    def roles(self) -> Roles:
        """Columns by role."""
        return Roles(self.label, self.id, self.image, self.split)


_REQUEST: TypeAdapter[ImportRequest | EmbedRequest] = TypeAdapter(ImportRequest | EmbedRequest)


class ImportState(ProgressState):
    """State of an import.

    Attributes:
        run: Id of the embedding set once it is stored.
        note: Message that names photographs that were left out; "" if there are none.
    """

    run: Annotated[str, Field(max_length=200)] = ""
    note: Annotated[str, Field(max_length=4000)] = ""


class Import(Task[ImportState]):
    """An import in its folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ImportState)

    @property
    def files(self) -> Path:
        """Folder of uploaded files."""
        return self.path / FILES

    def request(self) -> ImportRequest | EmbedRequest:
        """Return the stored request; raise DataError if it is missing or damaged."""
        try:
            return _REQUEST.validate_json(atomic_files.read_bytes(self.path / REQUEST, MAX_REQUEST_BYTES))
        except (OSError, ValidationError) as error:
            raise DataError(f"{self.path} holds no request for an import; start the import again") from error

    def begin(self, request: ImportRequest | EmbedRequest, store: RunStore) -> None:
        """Start the import in the background; raises JobError if it is running."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.exclusive_start():
            atomic_files.replace_json(self.path / REQUEST, request.model_dump())
        self.start(["-m", "dmlcore", "work-import", str(self.path), "--runs", str(store.root)], ImportState())

    def work(self, store: RunStore) -> ImportState:
        """Do the import in this process, record its progress, and remove the uploaded files if it succeeds."""

        def job(progress: Progress[ImportState]) -> ImportState:
            request = self.request()
            if isinstance(request, EmbedRequest):
                run = embed(store, request, report=progress.report)
            else:
                run = create(store, request, report=progress.report)
            return progress.finished(run.state().message, run=run.id)

        state = self.execute(job, ImportState())
        shutil.rmtree(self.files, ignore_errors=True)
        return state

    def remove(self) -> None:
        """Remove the folder with all uploaded files."""
        shutil.rmtree(self.path, ignore_errors=True)


def new_import() -> Import:
    """Return an import with a new, empty folder in the cache; remove folders that are no longer used."""
    folder = _scratch()
    _sweep(folder)
    made = Import(folder / secrets.token_hex(8))
    made.path.mkdir(mode=0o700)
    return made


def create(
    store: RunStore,
    request: ImportRequest,
    table: VectorTable | None = None,
    report: embedding_sets.Report = lambda words: None,
) -> Run:
    """Import an embedding set in this process.

    Args:
        store: Run store that receives the set.
        request: Files, columns and options.
        table: Contents of the files in the request, if they have been opened.
        report: Function that receives progress messages.

    Raises:
        DataError: If a file, row or image is unusable; nothing is stored.
        OSError: The disk is full; nothing is left behind.
    """
    if table is None:
        report("reading the files")
        table = files.read_labelled(request.file, request.labels, vectors=request.vectors)
    with tempfile.TemporaryDirectory(prefix="unpacked-", dir=_scratch()) as scratch:
        images, copied = None if request.images is None else Path(request.images), request.copy_images
        if images is not None and not images.is_dir():
            report("unpacking the images")
            images, copied = unpack_images(images, Path(scratch) / "images"), True
        return embedding_sets.create(
            store,
            table,
            request.roles,
            name=request.name,
            images=images,
            copy_images=copied,
            image_roots=[Path(root) for root in request.image_roots],
            normalize=request.normalize,
            report=report,
        )


def embed(store: RunStore, request: EmbedRequest, report: ProgressReport) -> Run:
    """Embed photographs with a pretrained network in this process.

    Args:
        store: Run store that receives the embedding set.
        request: Photographs, network, labels and name.
        report: Callback that receives the progress.

    Raises:
        DataError: If the photographs, the labels or the weights are unusable; nothing is stored.
        OSError: The disk is full; nothing is left behind.
    """
    with tempfile.TemporaryDirectory(prefix="unpacked-", dir=_scratch()) as scratch:
        folder, copied = Path(request.photographs), request.copy_images
        if folder.is_file():
            report("unpacking the photographs")
            folder, copied = unpack_images(folder, Path(scratch) / "images"), True
        return photographs.embed(store, request, folder, Path(scratch), copy_images=copied, report=report)


def unpack_images(archive: Path, into: Path) -> Path:
    """Unpack a .zip file of images into a new folder and return it; raise DataError if it is damaged or hostile."""
    source = source_file(archive)
    if archive.suffix.lower() != ".zip":
        raise DataError(f"{source.name} is neither a folder nor a .zip file; give one of them for the images")
    with reading(source, "zip"):
        return archives.unpack_unknown(archive, into, MAX_UNPACKED_BYTES)


def _scratch() -> Path:
    """Return the folder of the imports, which is created if necessary."""
    folder = locate.cache_folder() / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _sweep(folder: Path) -> None:
    """Remove the folders of imports that were not changed for LIFETIME seconds and are not running."""
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - LIFETIME and not Import(path).is_busy():
                shutil.rmtree(path, ignore_errors=True)
