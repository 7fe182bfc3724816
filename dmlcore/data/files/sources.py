"""Sources of the data sets: files with known digests to download, or instructions for manual downloads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dmlcore.data import describe
from dmlcore.data.dataset import DataError
from dmlcore.data.files import archives, locate
from dmlcore.storage import download as web
from dmlcore.storage.task import Progress, ProgressState, Task


@dataclass(frozen=True)
class DataSource:
    """Source of one data set: download addresses or manual instructions, accepted folder layouts, and terms of use.

    `archives.KNOWN` holds the size and digest of each file. All values are from ../shared/data/README.md, sections 2 to
    4.
    """

    terms: str
    layouts: tuple[str, ...]
    urls: tuple[str, ...] = ()
    by_hand: str = ""

    @property
    def files(self) -> tuple[archives.Archive, ...]:
        """Known archives, with size and digest, for the files at `urls`."""
        return tuple(official_file(url) for url in self.urls)

    @property
    def size(self) -> int | None:
        """Total size of the files at `urls` in bytes; None if the size of any file is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


_FLOWERS = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
_OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
_CIFAR_TERMS = (
    "No explicit licence; cite Krizhevsky 2009. The images are from 80 Million Tiny Images, which was withdrawn."
)

SOURCES: Mapping[str, DataSource] = {
    "cifar10": DataSource(
        terms=_CIFAR_TERMS,
        urls=("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
        layouts=("cifar-10-batches-py/\n  data_batch_1 … data_batch_5\n  test_batch\n  batches.meta",),
    ),
    "cifar100": DataSource(
        terms=_CIFAR_TERMS,
        urls=("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",),
        layouts=("cifar-100-python/\n  train\n  test\n  meta",),
    ),
    "cub": DataSource(
        terms="Non-commercial research and education; the rights to the images stay with the photographers.",
        urls=("https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",),
        layouts=(
            "CUB_200_2011/\n  images.txt\n  image_class_labels.txt\n  classes.txt\n  train_test_split.txt\n"
            "  images/001.Black_footed_Albatross/*.jpg\n  …",
            "cub200/                 without lists: the folder number is the class\n"
            "  images/001.Black_footed_Albatross/*.jpg\n  …",
        ),
    ),
    "cars": DataSource(
        terms="Non-commercial research; the page with this licence is offline.",
        by_hand="The official addresses (ai.stanford.edu/~jkrause) are offline. Copies named in public code, not "
        "checked here: Kaggle jessicali9530/stanford-cars-dataset and "
        "jutrera/stanford-car-dataset-by-classes-folder. Instructions for assembling the first layout: "
        "https://github.com/pytorch/vision/issues/7545. Many copies lack cars_test_annos_withlabels.mat, without which "
        "the test images have no labels.",
        layouts=(
            "stanford_cars/\n  cars_train/00001.jpg … 08144.jpg\n  cars_test/00001.jpg … 08041.jpg\n"
            "  devkit/cars_meta.mat\n  devkit/cars_train_annos.mat\n  cars_test_annos_withlabels.mat",
            "cars196/\n  car_ims/000001.jpg … 016185.jpg\n  cars_annos.mat",
            "by_classes_folder/\n  car_data/car_data/train/<class name>/*.jpg\n"
            "  car_data/car_data/test/<class name>/*.jpg\n  anno_train.csv\n  anno_test.csv\n  names.csv",
            "cars196/                without annotations: the folder name is the class\n  images/<class name>/*.jpg",
            "cars_train.tgz, cars_test.tgz, car_devkit.tgz and cars_test_annos_withlabels.mat, packed, side by side",
        ),
    ),
    "sop": DataSource(
        terms="The archive has a LICENSE file, cited as MIT; the images are from eBay listings.",
        by_hand="The official address is ftp://cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip (3,083,860,082 "
        "bytes), and a copy is on Google Drive under the id 1TclrpQOF_ullUP99wk_gjGN8pKvtErG8. Neither FTP nor Drive, "
        "which asks a person before it sends a file of this size, is supported by the app: download the zip with a "
        "browser or curl.",
        layouts=(
            "Stanford_Online_Products.zip, packed: its SHA-256 is verified",
            "Stanford_Online_Products/\n  Ebay_train.txt\n  Ebay_test.txt\n  bicycle_final/*.JPG\n"
            "  …\n  toaster_final/*.JPG",
            "online_products/\n  Info_Files/Ebay_train.txt\n  Info_Files/Ebay_test.txt\n  images/bicycle_final/*.JPG\n"
            "  …",
        ),
    ),
    "inshop": DataSource(
        terms="Non-commercial research under an agreement with MMLAB, CUHK; the images must not be passed on.",
        by_hand="It is available on request, in the Google Drive folder 0B7EVK8r0v71pVDZFQXRsMDZCX1E linked from "
        "https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html has no published digest.",
        layouts=(
            "In-shop Clothes Retrieval Benchmark/     or In-shop, InShop, inshop, DeepFashion\n"
            "  Eval/list_eval_partition.txt           or next to Eval/, or in Anno/\n"
            "  Img/img/WOMEN/Dresses/id_00000002/*.jpg      from Img/img.zip, unpacked in Img/ or next to it\n  …",
        ),
    ),
    "omniglot": DataSource(
        terms="MIT.",
        urls=tuple(f"{_OMNIGLOT}{name}.zip" for name in ("images_background", "images_evaluation")),
        layouts=(
            "omniglot-py/\n  images_background/<alphabet>/character01/*.png\n"
            "  images_evaluation/<alphabet>/character01/*.png",
            "omniglot-py/             the minimal sets, tested on the alphabets that the first lacks\n"
            "  images_background_small1/<alphabet>/character01/*.png\n  images_background_small2/…",
            "both zip files of either, packed, side by side",
        ),
    ),
    "aircraft": DataSource(
        terms="Non-commercial research only; the photographers keep the rights.",
        urls=("https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",),
        layouts=(
            "fgvc-aircraft-2013b/\n  data/images/0034309.jpg …\n  data/variants.txt\n"
            "  data/images_variant_trainval.txt\n  data/images_variant_test.txt",
        ),
    ),
    "flowers": DataSource(
        terms="No explicit licence; cite Nilsback and Zisserman 2008.",
        urls=(_FLOWERS + "setid.mat", _FLOWERS + "imagelabels.mat", _FLOWERS + "102flowers.tgz"),
        layouts=("flowers-102/\n  jpg/image_00001.jpg … image_08189.jpg\n  imagelabels.mat\n  setid.mat",),
    ),
    "folder": DataSource(
        terms="Yours.",
        by_hand="Give the folder that holds your class folders.",
        layouts=(
            "<any folder>/           one folder per class; by name, the first half of the classes train\n"
            "  <class name>/*.jpg, *.png, *.webp, *.gif, *.bmp",
            "<any folder>/           split on disk\n  train/<class name>/*.jpg\n  test/<class name>/*.jpg",
            "<any folder>/           shards in WebDataset naming; a .cls or .json next to each image holds its class\n"
            "  *.tar",
        ),
    ),
    "embeddings": DataSource(
        terms="Yours.",
        by_hand="Import a file of embeddings, which writes such a folder.",
        layouts=(
            "<any folder>/           an imported set\n  set.json\n  vectors.npy\n  labels.npy\n  columns.parquet",
        ),
    ),
}
_SAME = {
    **dict.fromkeys(("collage", "collage_distilled", "collage_pretraining"), "cifar100"),
    "omniglot_collage": "omniglot",
}


def source_of(name: str) -> DataSource | None:
    """Return the source of the data set `name`; None if it is generated or comes with a library."""
    describe(name)
    return SOURCES.get(_SAME.get(name, name))


def official_file(url: str) -> archives.Archive:
    """Return the known archive whose file name is the last component of a download address."""
    file = url.rpartition("/")[2]
    return next(known for known in archives.KNOWN if known.name == file)


def default_folder() -> Path:
    """Return the folder for downloads and manually added files, which is the first of the search folders."""
    return locate.search_folders()[0]


def task_of(name: str) -> Task[ProgressState]:
    """Return the background task that downloads data set `name`."""
    return Task(locate.cache_folder() / "downloads" / _SAME.get(name, name), ProgressState)


def start(name: str, into: Path | str | None = None) -> None:
    """Download `name` in a background process, `python -m dmlcore data download NAME --into DIR`.

    Raises DataError if there is nothing to download or too little disk space, JobError if the download is running.
    """
    folder = _folder(into)
    _require(name, folder)
    task_of(name).start(["-m", "dmlcore", "data", "download", name, "--into", str(folder)], ProgressState())


def download(name: str, into: Path | str | None = None, *, loopback: bool = False, pause: float = 1.0) -> str:
    """Download the files of `name` into a folder and unpack them into the cache; return a message with the result.

    Existing files are kept, partial downloads (.part) are resumed, and the digest of each file is verified.
    `task_of(name)` records the progress.

    Args:
        name: The data set.
        into: Folder for the files; None for `default_folder()`.
        loopback: Passed to `dmlcore.storage.download.fetch`.
        pause: Passed to `dmlcore.storage.download.fetch`.

    Raises:
        DataError, DownloadError, Busy: If the download is impossible, fails, or is running in another process.
    """
    folder = _folder(into)
    source = _require(name, folder)

    def job(progress: Progress[ProgressState]) -> ProgressState:
        before = 0
        for url, file in zip(source.urls, source.files, strict=True):

            def tell(received: int, total: int | None, before: int = before, file: archives.Archive = file) -> None:
                everything = source.size or (None if total is None else before + total)
                progress.report(f"downloading {file.name}", before + received, everything)

            tell(0, file.size)
            path = web.fetch(
                url,
                folder / file.name,
                size=file.size,
                sha256=file.sha256 or None,
                md5=file.md5 or None,
                progress=tell,
                loopback=loopback,
                pause=pause,
            )
            before += path.stat().st_size
        progress.report(f"verifying and unpacking {path.name}", before, before)
        # unpacks the file downloaded last, which is the archive of the images
        with_files = locate.locate(describe(name), path)
        return progress.finished(f"{before:,} bytes downloaded to {folder}, verified and unpacked into {with_files}")

    return task_of(name).execute(job, ProgressState()).message


def _require(name: str, folder: Path) -> DataSource:
    """Return the source of a data set; raise DataError if it cannot be downloaded or exceeds the free disk space."""
    source = source_of(name)
    if source is None:
        raise DataError(f"{name} needs no download")
    if not source.urls:
        raise DataError(
            f"{describe(name).title} cannot be downloaded automatically. {source.by_hand} Put it into "
            f"{default_folder()} as one "
            f"of these:\n\n" + "\n\n".join(source.layouts)
        )
    missing = source.size or 0
    for file in source.files:
        for name_there in (file.name, f"{file.name}.part"):
            if (folder / name_there).is_file():
                missing -= (folder / name_there).stat().st_size
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < missing:
        raise DataError(
            f"{missing:,} bytes remain to be downloaded, but {folder} has {free:,} bytes free; choose another folder"
        )
    return source


def _folder(into: Path | str | None) -> Path:
    return default_folder() if into is None else Path(into).expanduser().absolute()
