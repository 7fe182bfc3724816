"""Thumbnails show the pixels of the samples, and the route serves nothing else."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.inspection.images import fit_into
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from pages.shared.server import thumbnails
from tests.members import in_one_case


@pytest.fixture
def client():
    with TestClient(Starlette(routes=thumbnails.ROUTES)) as client:
        yield client


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def test_a_digit_is_shown_pixel_by_pixel(client, run):
    digits = data.load("digits")
    for index in (0, 1796):
        response = client.get(f"{thumbnails.address(run)}{index}")
        assert response.headers["content-type"] == "image/png"
        shown = pixels(response.content)
        assert shown.shape == (128, 128, 3)
        assert (shown[8::16, 8::16] == digits.image(index)).all()
        assert len(np.unique(shown[:, :, 0])) <= 17  # scaling up adds no grey values


def test_browsers_may_keep_it_and_ask_again_cheaply(client, run):
    first = client.get(f"{thumbnails.address(run)}7")
    assert first.headers["cache-control"] == "public, max-age=86400"
    again = client.get(f"{thumbnails.address(run)}7", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"{thumbnails.address(run)}8").headers["etag"] != first.headers["etag"]


@in_one_case(index=["-1", "1797", "1e2", "0x1", "9" * 5000, "%D9%A3", "nan", "5%2f6", ""])
def test_only_samples_have_images(client, run, index):
    assert client.get(f"{thumbnails.address(run)}{index}").status_code == 404


@in_one_case(name=["nope", "..", "%2e%2e", "..%2f..%2fetc", "A" * 5000, "%00"])
def test_only_runs_have_images(client, runs, name):
    assert client.get(f"/api/thumb/{name}/5").status_code == 404


def test_a_data_set_that_is_gone_is_not_found(client, runs, tmp_path):
    run = RunStore(runs).create(RunSpec().with_overrides(["data.name=cub", f'data.root="{tmp_path}"']))
    assert client.get(f"{thumbnails.address(run)}5").status_code == 404
    with pytest.raises(DataError, match=str(tmp_path)):
        thumbnails.thumbnail(run.spec, 5)


def test_vectors_without_images_are_bars_of_their_values():
    spec = RunSpec().with_overrides(["data.name=toy"])
    inputs = data.load("toy").inputs[:]
    for index in (0, 6399):
        content, media = thumbnails.thumbnail(spec, index)
        assert media == "image/png"
        dark = pixels(content)[..., 0] < 100
        heights = dark[:, [21, 64, 107]].sum(axis=0)  # the middle of each bar
        shares = (inputs[index] - inputs.min()) / (inputs.max() - inputs.min())
        assert np.abs(heights - (4 + 120 * shares)).max() <= 1


@in_one_case(size=[(8, 8), (32, 32), (60, 100), (128, 128)])
def test_enlarging_keeps_every_pixel_and_its_shape(size):
    image = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    large = np.asarray(fit_into(image, 128))
    factor = large.shape[0] // size[0]
    assert 64 < max(large.shape) <= 128
    assert (large[::factor, ::factor] == image).all()


def test_photographs_become_small_jpegs():
    found = data.available("cub")
    lists_alone = found and (
        found.name == "cub-annotations.tar.gz" or (found.is_dir() and not (found / "images").is_dir())
    )
    if found is None or lists_alone:
        pytest.skip("the images of CUB-200-2011 are not on this machine")
    content, media = thumbnails.thumbnail(RunSpec().with_overrides(["data.name=cub"]), 0)
    assert media == "image/jpeg"
    assert max(pixels(content).shape) == 128
    assert len(content) < 20_000


def test_runs_on_the_same_data_share_it():
    one = RunSpec().with_overrides(["loss.name=facenet", "schedule.steps=5"])
    assert thumbnails.dataset(one) is thumbnails.dataset(RunSpec())
    assert thumbnails.dataset(one.with_overrides(["seed=9"])) is not thumbnails.dataset(one)


@pytest.mark.parametrize("index", [-1, 1797])
def test_an_index_counts_from_the_start_only(index):
    with pytest.raises(IndexError):
        thumbnails.thumbnail(RunSpec(), index)
