from pathlib import Path

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.files import images, locate
from dmlcore.data.readers import omniglot
from tests.data import layouts


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    layouts.omniglot_set(tmp_path / "omniglot-py/images_background_small1", {"Balinese": 3, "Latin": 4})
    layouts.omniglot_set(tmp_path / "omniglot-py/images_background_small2", {"Latin": 4, "Tagalog": 2})
    return tmp_path


def test_alphabets_of_both_sets_only_train(minimal: Path) -> None:
    dataset = dmlcore.data.load("omniglot", root=minimal, validation="none")
    assert dataset.class_names[:4] == ("Balinese 01", "Balinese 02", "Balinese 03", "Latin 01")
    assert dataset.class_names[-1] == "Tagalog 02"
    assert (len(dataset.splits["train"]), len(dataset.splits["test"])) == (21, 6)
    trained, tested = ({dataset.facts["alphabet"][i] for i in dataset.splits[split]} for split in ("train", "test"))
    assert trained.isdisjoint(tested)
    assert dataset.facts["drawer"][:4].tolist() == [1, 2, 3, 1]
    assert any("not the published data set" in note for note in dataset.notes)


def test_complete_sets_come_before_minimal_ones(minimal: Path) -> None:
    layouts.omniglot_set(minimal / "omniglot-py/images_background", {"Greek": 2})
    layouts.omniglot_set(minimal / "omniglot-py/images_evaluation", {"Gurmukhi": 2})
    assert dmlcore.data.load("omniglot", root=minimal, validation="none").class_names[-1] == "Gurmukhi 02"


@pytest.mark.parametrize("size", [None, 64, 105])
def test_ink_is_white_to_the_network_and_dark_to_people(minimal: Path, size: int | None) -> None:
    dataset = dmlcore.data.load("omniglot", root=minimal, image_size=size)
    side = size or 28
    assert dataset.inputs.shape == (27, 1, side, side)
    first = dataset.inputs[0][0].astype(int)  # a bar of 10 of 105 pixels
    assert first[:, 0].min() == 255
    assert first[:, side // 2 :].max() == 0
    assert first.mean() == pytest.approx(255 * 10 / 105, abs=1)
    shown = dataset.image(0)
    assert shown.shape == (side, side, 3)
    assert np.array_equal(shown[..., 0], 255 - first)


def test_ink_is_decoded_once_and_again_when_an_image_changes(minimal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, decoded = minimal / "omniglot-py", []
    monkeypatch.setattr(omniglot, "FEW", 2)
    monkeypatch.setattr(omniglot, "decode", lambda path: decoded.append(path) or images.decode(path))
    first = omniglot.read(folder, None, 0)
    few = first.inputs[[0, -1]]
    assert len(decoded) == 2  # a page that shows two decodes two
    decoded.clear()
    assert np.array_equal(omniglot.read(folder, None, 0).inputs[:], first.inputs[:])
    assert len(decoded) == len(first.labels)
    assert np.array_equal(first.inputs[:][[0, -1]], few)
    changed, other = decoded[0], decoded[-1]
    changed.write_bytes(other.read_bytes())
    again = omniglot.read(folder, None, 0)
    assert again.inputs[:].shape == first.inputs.shape
    assert len(decoded) == 2 * len(first.labels)
    rows = [list(first.files).index(path) for path in (changed, other)]
    assert np.array_equal(again.inputs[rows[0]], first.inputs[rows[1]])
    for kept in (locate.cache_folder() / "ink").glob("*/ink.npy"):
        kept.write_bytes(b"damaged")
    with pytest.raises(DataError, match="are damaged; remove this folder"):
        omniglot.read(folder, None, 0).inputs[:]


def test_what_is_missing_or_damaged_is_named(minimal: Path) -> None:
    folder = minimal / "omniglot-py"
    wrong = folder / "images_background_small1/Latin/character01/0100_01.png"
    wrong.rename(wrong.with_name("letter.png"))
    with pytest.raises(DataError, match=r"letter\.png is not named CHARACTER_DRAWER"):
        omniglot.read(folder, None, 0)
    wrong.with_name("letter.png").unlink()
    wrong.write_bytes(b"no image")
    with pytest.raises(DataError, match=r"0100_01\.png is not in a supported format \(JPEG, PNG"):
        omniglot.read(folder, None, 0).inputs[:]
    for path in wrong.parent.iterdir():
        path.unlink()
    with pytest.raises(DataError, match="character01 contains no images"):
        omniglot.read(folder, None, 0)
    (folder / "images_background_small2").rename(folder / "elsewhere")
    with pytest.raises(DataError, match="images_background_small2 is missing"):
        omniglot.read(folder, None, 0)


def test_the_second_set_must_have_alphabets_of_its_own(tmp_path: Path) -> None:
    for name in ("images_background_small1", "images_background_small2"):
        layouts.omniglot_set(tmp_path / name, {"Latin": 2})
    with pytest.raises(DataError, match="needs different alphabets in images_background_small1 and"):
        omniglot.read(tmp_path, None, 0)


def test_the_minimal_sets(pack) -> None:
    samples = omniglot.read(dmlcore.data.locate("omniglot", pack("images_background_small1.zip").parent), None, 0)
    assert samples.inputs.shape == (4_840, 1, 28, 28)
    assert published_counts.sizes(samples.labels, samples.train_classes) == {
        "train": (2_720, 136),
        "test": (2_120, 106),
    }
    assert len(np.unique(samples.facts["alphabet"])) == 8
    assert np.unique(samples.facts["drawer"]).tolist() == list(range(1, 21))
