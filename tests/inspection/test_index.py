"""The index finds the neighbours by definition and embeds images from any source as the evaluation did."""

import io
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from dmlcore import data
from dmlcore.cli.main import app
from dmlcore.data import DataError
from dmlcore.inspection.index import Index
from dmlcore.inspection.own_images import InputFormat, as_inputs
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunError, RunStore
from tests.pages.conftest import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a run on photographs of different shapes, one of them rotated by its EXIF tag."""
    root = tmp_path_factory.mktemp("index")
    random = np.random.default_rng(0)
    for c in "abcd":
        (root / "data" / c).mkdir(parents=True)
        for i in range(6):
            size = tuple(random.integers(40, 120, 2).tolist())
            small = random.integers(0, 255, (6, 6, 3), np.uint8)
            exif = Image.Exif()
            if i == 5:
                exif[0x0112] = 6  # rotated by 90 degrees
            Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(
                root / "data" / c / f"{i}.jpg", exif=exif
            )
    of = [f"data.root={root / 'data'}", "data.name=folder", "data.image_size=32", "model.name=resnet20"]
    more = ["data.validation=none", "batch.classes=2", "batch.samples=3", "schedule.steps=2", "model.embedding_dim=8"]
    return make_run(root / "runs", *of, *more)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def index(folder):
    return Index.of_run(folder)


def test_every_form_of_a_test_image_finds_itself(index):
    _, samples = index.network()
    files = [samples.files[i] for i in index.indices]
    assert any(Image.open(file).getexif().get(0x0112) == 6 for file in files)
    own = np.arange(len(files))
    opened = [io.BytesIO(file.read_bytes()) for file in files]
    for queries in (files, [str(file) for file in files], opened, samples.inputs[index.indices]):
        distances, rows = index.search(queries, 3)
        np.testing.assert_allclose(index.embed(samples.inputs[index.indices]), index.embeddings, atol=1e-5)
        assert np.array_equal(rows[:, 0], own)
        assert distances[:, 0].max() < 1e-5
    (distance,), (row,) = index.search(Image.open(files[-1]), 1)  # decoded in full size, not in half size
    assert row == own[-1]
    assert distance < 0.2


def test_embeddings_are_searched_exactly(index):
    queries = np.random.default_rng(1).normal(size=(5, 8)).astype(np.float32)
    distances, rows = index.search(queries, 4)
    full = np.linalg.norm(queries[:, None].astype(float) - index.embeddings, axis=2)
    assert np.array_equal(rows, np.argsort(full, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :4], atol=1e-12)


def test_only_the_gallery_is_searched_where_there_is_one(index):
    part = Index(index.run, index.embeddings, index.labels, index.indices, np.arange(3, 9))
    _, rows = part.search(index.embeddings, 6)
    assert set(rows.ravel()) == set(range(3, 9))
    with pytest.raises(ValueError, match=r"1\.\.6"):
        part.search(index.embeddings, 7)


def test_what_is_no_query_is_named(index, tmp_path):
    for wrong, error, words in (
        (np.zeros((2, 5)), ValueError, r"embeddings \(q, 8\)"),
        (np.zeros((2, 3, 32, 32)), TypeError, "uint8"),
        (np.zeros((2, 3, 16, 16), np.uint8), ValueError, r"\(n, 3, 32, 32\)"),
        ([], ValueError, "empty"),
        ([[0.0] * 8], TypeError, "one array"),
        (tmp_path / "none.jpg", DataError, "none.jpg is missing"),
    ):
        with pytest.raises(error, match=words):
            index.search(wrong, 1)
    with pytest.raises(ValueError, match="k must be"):
        index.search(index.embeddings, 0)


def tiff():
    """A valid image in an unsupported format."""
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "TIFF")
    return file.getvalue()


@pytest.mark.parametrize(
    "content", [b"", tiff(), b"GIF89a" + b"\0" * 90, b"\xff\xd8\xff\xe0 cut", b"<svg onload='x'/>"]
)
def test_an_upload_that_is_no_image_is_refused_by_its_name(index, content):
    upload = io.BytesIO(content)
    upload.name = "<b>mine</b>.jpg"
    with pytest.raises(DataError, match="mine"):
        index.search(upload, 1)


def test_a_decompression_bomb_is_refused_before_it_is_decoded(index):
    bomb = io.BytesIO()
    Image.new("1", (8_000, 8_000)).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(DataError, match="8000 x 8000 pixels"):
        index.search(bomb, 1)


def test_what_somebody_else_gives_may_have_fewer_pixels_than_a_file_of_ones_own(index, tmp_path):
    Image.new("1", (5_000, 5_000)).save(tmp_path / "large.png")
    index.search(tmp_path / "large.png", 1)
    with (
        open(tmp_path / "large.png", "rb") as upload,
        pytest.raises(DataError, match=r"pixels, above the limit of 24,000,000"),
    ):
        index.search(upload, 1)
    with pytest.raises(DataError, match=r"5000 x 5000 pixels exceeds the limit of 24,000,000; make it smaller"):
        index.search(Image.new("1", (5_000, 5_000)), 1)


def test_a_drawn_digit_is_a_query_of_a_run_on_digits(digits):
    index = Index.of_run(digits)
    _, samples = index.network()
    images = [Image.fromarray(samples.image(int(i))) for i in index.indices[:20]]
    distances, rows = index.search(images, 1)
    assert np.array_equal(rows[:, 0], np.arange(20))
    assert distances.max() < 1e-6
    on_paper = [Image.fromarray(255 - np.asarray(image)) for image in images]
    assert np.array_equal(index.search(on_paper, 1, invert=True)[1], rows)
    large = [image.resize((240, 240), Image.Resampling.NEAREST) for image in images]
    assert (index.labels[index.search(large, 1)[1][:, 0]] == index.labels[:20]).all()


def test_an_image_becomes_one_channel_where_the_data_set_has_one():
    ink = SimpleNamespace(name="ink", inputs=np.zeros((1, 1, 28, 28), np.uint8))
    paper = Image.new("RGB", (56, 56), "white")
    assert InputFormat.of(ink).is_ink
    assert as_inputs([paper], ink, invert=True).shape == (1, 1, 28, 28)
    assert not as_inputs([paper], ink, invert=True).any()


def test_vectors_are_no_images():
    with pytest.raises(DataError, match="toy has no images"):
        as_inputs([Image.new("RGB", (9, 9))], data.load("toy"))


def test_a_run_without_embeddings_or_with_other_weights_says_what_to_do(digits, tmp_path):
    shutil.copytree(digits.path, tmp_path / digits.id)
    run = RunStore(tmp_path).open(digits.id)
    index = Index.of_run(run)
    source = run.embeddings()
    source.rename(source.with_stem("0" * 64))
    with pytest.raises(RunError, match="do not match its checkpoint"):
        Index.of_run(run).network()
    assert len(index.search(index.embeddings[:1], 2)[1][0]) == 2
    fresh = RunStore(tmp_path).create(RunSpec())
    with pytest.raises(RunError, match="dmlcore evaluate"):
        Index.of_run(fresh)


def test_the_command_prints_what_is_found(folder, index):
    _, samples = index.network()
    file = samples.files[int(index.indices[2])]
    done = CliRunner().invoke(app, ["neighbours", folder.id, str(file), "-k", "2", "--runs", str(folder.path.parent)])
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[1].split()
    assert first[0] == "1"
    assert float(first[1]) < 1e-4
    assert first[2] == str(index.indices[2])
    assert first[4] == str(file)
