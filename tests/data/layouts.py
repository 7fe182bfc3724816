"""Generators of small trees in the official layouts; each function writes one and returns its folder."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from dmlcore.data.synthetic.cifar_collage import BACKGROUNDS

CARS = {  # some of the 196
    1: "AM General Hummer SUV 2000",
    2: "Acura RL Sedan 2012",
    3: "BMW M3 Coupe 2012",
    98: "Eagle Talon Hatchback 1998",
    99: "FIAT 500 Abarth 2012",
    150: "Jeep Compass SUV 2012",
    173: "Ram C/V Cargo Van Minivan 2012",
    196: "smart fortwo Convertible 2012",
}


def write_image(path: Path, grey: int = 100) -> str:
    """Write a small JPEG, and next to it the `._*` file that macOS adds to archives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 18), (grey % 256, 90, 160)).save(path, "JPEG")
    (path.parent / f"._{path.name}").write_bytes(b"\0\5\x16\7")
    return path.name


def text(path: Path, rows, newline: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{row}{newline}" for row in rows).encode())
    return path


def structs(**columns) -> np.ndarray:
    """Return a MATLAB struct array (1, N) with one field per column, as in the devkit."""
    rows = len(next(iter(columns.values())))
    found = np.zeros((1, rows), dtype=[(name, object) for name in columns])
    for name, values in columns.items():
        found[name][0] = np.array([_cell(value) for value in values], dtype=object)
    return found


def cells(words) -> np.ndarray:
    found = np.empty((1, len(words)), dtype=object)
    found[0] = words
    return found


def _cell(value):
    return value if isinstance(value, str) else np.uint8(value)  # as small as MATLAB stores them


def car_names() -> list[str]:
    return [CARS.get(number, f"Make Model {number} 2010") for number in range(1, 197)]


def cars_rows(each: int = 8) -> list[tuple[int, int, int]]:
    """Return rows (class, 1 = test, number in its split), with alternating splits and unordered classes."""
    rows, counts = [], [0, 0]
    for sample in range(each):
        for number in reversed(CARS):
            is_test = sample % 2
            counts[is_test] += 1
            rows.append((number, is_test, counts[is_test]))
    return rows


def cars_devkit(folder: Path, *, labelled: str = "", images: bool = True, nested: bool = False) -> Path:
    (folder / "devkit").mkdir(parents=True)
    savemat(folder / "devkit" / "cars_meta.mat", {"class_names": cells(car_names())})
    for split, flag in (("train", 0), ("test", 1)):
        rows = [row for row in cars_rows() if row[1] == flag]
        names = [f"{number:05d}.jpg" for _, _, number in rows]
        boxes = {f"bbox_{side}": [1] * len(rows) for side in ("x1", "y1", "x2", "y2")}
        classes = {"class": [number for number, _, _ in rows]}
        savemat(
            folder / "devkit" / f"cars_{split}_annos.mat",
            {"annotations": structs(**boxes, **(classes if split == "train" else {}), fname=names)},
        )
        if split == "test":
            savemat(
                folder / labelled / "cars_test_annos_withlabels.mat",
                {"annotations": structs(**boxes, **classes, fname=names)},
            )
        trunk = folder / f"cars_{split}" / (f"cars_{split}" if nested else "")
        for name in names if images else []:
            write_image(trunk / name)
    return folder


def cars_single(folder: Path, *, compressed: bool = False, images: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = cars_rows()
    names = [f"car_ims/{row:06d}.jpg" for row in range(1, len(rows) + 1)]
    annotations = structs(
        relative_im_path=names,
        **{f"bbox_{side}": [0] * len(rows) for side in ("x1", "y1", "x2", "y2")},
        **{"class": [number for number, _, _ in rows]},
        test=[is_test for _, is_test, _ in rows],
    )
    savemat(
        folder / "cars_annos.mat",
        {"annotations": annotations, "class_names": cells(car_names())},
        do_compression=compressed,
    )
    for name in names if images else []:
        write_image(folder / name)
    return folder


def cars_by_class(folder: Path, newline: str = "\n", trunk: str = "car_data/car_data") -> Path:
    names = car_names()
    text(folder / "names.csv", names, newline)
    for split, flag in (("train", 0), ("test", 1)):
        rows = [(number, f"{count:05d}.jpg") for number, is_test, count in cars_rows() if is_test == flag]
        text(folder / f"anno_{split}.csv", [f"{name},1,2,3,4,{number}" for number, name in rows], newline)
        for number, name in rows:
            write_image(folder / trunk / split / names[number - 1].replace("/", "-") / name)
    return folder


def cars_flat(folder: Path) -> Path:
    for name in CARS.values():
        for number in range(8):
            write_image(folder / "images" / name.replace("/", "-") / f"{number:05d}.jpg")
    return folder


def sop(folder: Path, newline: str = "\n", *, second: bool = False, images: bool = True) -> Path:
    """Write four training products (1 to 4) and four test products (11319 to 11322), eight images each."""
    image_id = 0
    for split, products in (("train", range(1, 5)), ("test", range(11_319, 11_323))):
        rows = ["image_id class_id super_class_id path"]
        for product in products:
            for number in range(8):
                image_id += 1
                kind = product % 2
                path = f"{('bicycle', 'coffee_maker')[kind]}_final/{product}0815_{number}.JPG"
                rows.append(f"{image_id} {product} {(1, 4)[kind]} {path}")
                if images:
                    write_image(folder / ("images" if second else "") / path)
        text(folder / ("Info_Files" if second else "") / f"Ebay_{split}.txt", rows, newline)
    return folder


def inshop(folder: Path, newline: str = "\n", *, where: str = "Eval", base: str = "Img", tree: str = "img") -> Path:
    """Write four training items (ids 1, 3, 5, 7) and three test items (2, 4, 6); three of eight images are queries."""
    rows = []
    for item in range(1, 8):
        for number in range(8):
            name = f"WOMEN/Dresses/id_{item:08d}/{number:02d}_1_front.jpg"
            status = "train" if item % 2 else ("query" if number < 3 else "gallery")
            rows.append(f"img/{name}".ljust(71) + f"id_{item:08d} {status.ljust(11)}")
            if tree:
                write_image(folder / base / tree / name, item * 30)
    text(
        folder / where / "list_eval_partition.txt", [len(rows), "image_name item_id evaluation_status", *rows], newline
    )
    return folder


VARIANTS = [f"{'A/BCD'[number % 5]} {number:03d}/x y" for number in range(100)]


def aircraft(folder: Path, newline: str = "\n", *, trainval: bool = True) -> Path:
    """Write eight images of each of the variants 1 to 4 and 51 to 54: two train, two val, four test."""
    data = folder / "data"
    rows: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for rank in (*range(4), *range(50, 54)):
        for number in range(8):
            image = f"{rank * 100 + number:07d}"
            rows[("train", "val", "test", "test")[number % 4]].append(f"{image} {VARIANTS[rank]}")
            write_image(data / "images" / f"{image}.jpg")
    text(data / "variants.txt", VARIANTS, newline)
    splits = rows | ({"trainval": rows["train"] + rows["val"]} if trainval else {})
    for split, listed in splits.items():
        text(data / f"images_variant_{split}.txt", listed, newline)
    return folder


def flowers(folder: Path) -> Path:
    """Write eight images of each of the labels 1 to 4 and 52 to 55: two train, two valid, four test."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.array([label for label in (*range(52, 56), *range(1, 5)) for _ in range(8)])
    numbers = np.arange(1, len(labels) + 1)
    savemat(folder / "imagelabels.mat", {"labels": labels[None].astype(np.uint8)})
    sets = {"trnid": numbers[0::4], "valid": numbers[1::4], "tstid": numbers[(numbers - 1) % 4 > 1]}
    savemat(folder / "setid.mat", {name: found[None].astype(np.uint16) for name, found in sets.items()})
    for number in numbers:
        write_image(folder / "jpg" / f"image_{number:05d}.jpg")
    return folder


def class_folders(folder: Path, names=("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"), each: int = 8) -> Path:
    for name in names:
        for number in range(each):
            write_image(folder / name / f"{number}.jpg", number * 20)
    return folder


SUPER_CLASSES = tuple(sorted([*BACKGROUNDS, *(f"super {number:02d}" for number in range(16))]))


def cifar100(folder: Path, train: int = 4, test: int = 2, encode: Callable[[str], str | bytes] = str.encode) -> Path:
    """Write some images per class in each file; fine label f belongs to super-class f % 20.

    The first two channels of an image encode its number.
    """
    folder.mkdir(parents=True)
    first = 0
    for split, count in (("train", train), ("test", test)):
        fine = np.tile(np.arange(100), count)
        numbers = np.arange(first, first := first + len(fine))
        pixels = np.zeros((len(fine), 3, 1024), np.uint8)
        pixels[:, 0], pixels[:, 1] = numbers[:, None] // 256, numbers[:, None] % 256
        labels = {"fine_labels": fine.tolist(), "coarse_labels": (fine % 20).tolist()}
        content = {encode(name): values for name, values in labels.items()}
        rewrite_pickle(folder / split, content | {encode("data"): pixels.reshape(-1, 3072)})
    names = {"fine_label_names": [f"kind {number:02d}" for number in range(100)], "coarse_label_names": SUPER_CLASSES}
    rewrite_pickle(folder / "meta", {encode(key): [*map(encode, of)] for key, of in names.items()})
    return folder


def rewrite_pickle(path: Path, changes: dict) -> None:
    """Write a pickle with changed entries; entries whose new value is None are removed."""
    content = pickle.loads(path.read_bytes()) if path.exists() else {}
    content = {key: value for key, value in (content | changes).items() if value is not None}
    path.write_bytes(pickle.dumps(content, protocol=2))


def omniglot_set(folder: Path, alphabets: dict[str, int], drawers: int = 3) -> None:
    """Write one set of Omniglot with a given number of characters per alphabet, which differ in the width of a bar of
    ink.
    """
    for alphabet, characters in alphabets.items():
        for number in range(1, characters + 1):
            place = folder / alphabet / f"character{number:02}"
            place.mkdir(parents=True)
            for drawer in range(1, drawers + 1):
                paper = np.ones((105, 105), bool)
                paper[:, : 10 * number] = False
                Image.fromarray(paper).save(place / f"{100 * number:04}_{drawer:02}.png")


def omniglot(folder: Path) -> Path:
    """Write the minimal sets, with Latin in both."""
    omniglot_set(folder / "images_background_small1", {"Balinese": 4, "Latin": 4}, drawers=8)
    omniglot_set(folder / "images_background_small2", {"Latin": 4, "Tagalog": 8}, drawers=8)
    return folder


def omniglot_for_collages(folder: Path, characters: int = 3) -> Path:
    """Write the minimal sets with the alphabets that collages need and a given number of training characters."""
    omniglot_set(folder / "images_background_small1", {"Balinese": characters, "Greek": 2, "Latin": 2}, drawers=10)
    omniglot_set(folder / "images_background_small2", {"Latin": 2, "Tagalog": 4}, drawers=10)
    return folder


def embeddings(folder: Path, classes: int = 8, each: int = 8) -> Path:
    """Write an embedding set of 16 dimensions, in which each class is a cluster."""
    from dmlcore.data.embedding_sets import files
    from dmlcore.data.embedding_sets.folder import write
    from dmlcore.data.embedding_sets.roles import Roles

    random, labels = np.random.default_rng(0), np.repeat(np.arange(classes), each)
    vectors = random.normal(size=(classes, 16))[labels] + 0.1 * random.normal(size=(len(labels), 16))
    columns = {"label": [f"class {label}" for label in labels], "weight": random.random(len(labels))}
    folder.mkdir(parents=True)
    write(folder, files.from_arrays(vectors.astype(np.float16), columns), Roles(label="label"))
    return folder


WRITERS = {
    "omniglot": omniglot,
    "omniglot_collage": omniglot_for_collages,
    "cars": cars_single,
    "sop": sop,
    "inshop": inshop,
    "aircraft": aircraft,
    "flowers": flowers,
    "folder": class_folders,
    "embeddings": embeddings,
}
