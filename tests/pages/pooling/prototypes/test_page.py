"""The prototypes page: answers equal the library's, links restore views, and invalid links do no harm."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.geometry.hulls import overlaps
from dmlcore.inspection.local.local_features import digit_patches
from dmlcore.pooling.analysis.prototype_shares import read
from pages.pooling.prototypes import export as prototypes_export
from pages.pooling.prototypes import service as prototypes_service
from pages.pooling.prototypes.state import PrototypesView, sources
from pages.shared.server.wire import unpack
from tests.members import in_one_case

VIEW = PrototypesView(prototypes=12, per_class=10, shown=(3, 5), picture=(5, 7), tau=0.5)


def get_answer(view: PrototypesView = VIEW, **request) -> dict:
    answer = unpack(prototypes_service.answer({"view": view.to_json(), **request}))
    return answer | answer["arrays"]


@pytest.fixture(scope="module")
def library():
    local = digit_patches(3)
    rows = local.ranks < 10
    reading = read(local.features[rows], 12)
    return local, reading, local.labels[rows]


def test_the_image_is_the_librarys(library):
    local, reading, _ = library
    found = get_answer()
    row = 5 * 10 + 7
    assert found["image"]["index"] == local.indices[(local.labels == 5) & (local.ranks == 7)][0]
    for name in ("error", "mean_distance", "radius"):
        assert found["image"][name] == pytest.approx(getattr(reading, name)[row], abs=1e-12)
    np.testing.assert_allclose(found["histogram"], reading.histograms[row], atol=1e-7)
    np.testing.assert_array_equal(found["assigned"], reading.assignment[row])
    assert (found["holds"], found["total"]) == (100, 100)
    assert found["mean"]["error"] == pytest.approx(reading.error.mean())


def test_plane_hulls_and_overlaps_are_the_librarys(library):
    local, reading, labels = library
    found = get_answer()
    expected = overlaps(reading.prototypes, reading.histograms, labels, reading.pooled, 0.5 / 12)
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"]) == (3, 5)
    for name in prototypes_service.MEASURES:
        assert found["overlaps"][name] == pytest.approx(expected.mean(name))
        assert pair[name] == pytest.approx(expected.pairs[name][3, 5])
    np.testing.assert_array_equal(found["active"], expected.active[[3, 5]])
    np.testing.assert_allclose(found["prototypes"], reading.prototypes, atol=1e-7)
    assert len(found["hull"]) == sum(found["hulls"])
    assert len(found["cell"]) == sum(found["cells"])
    for patch, (image, position) in zip(found["patches"], reading.patches, strict=True):
        index = np.flatnonzero(local.ranks < 10)[image]
        np.testing.assert_array_equal(patch, local.patch(int(index), int(position)))


def test_another_image_of_the_same_plane_brings_the_image_alone():
    first = get_answer()
    again = get_answer(PrototypesView.of(VIEW.to_json() | {"picture": [3, 0]}), have=first["key"])
    assert "cells" not in again
    assert again["image"]["name"] == "3"
    other = get_answer(PrototypesView.of(VIEW.to_json() | {"prototypes": 13}), have=first["key"])
    assert len(other["prototypes"]) == 13


HOSTILE = [
    {},
    {"source": "../../etc/passwd", "shown": "x", "picture": {"a": 1}},
    {"source": "run:" + "a" * 500, "prototypes": math.nan, "per_class": -5, "tau": math.inf},
    {"shown": [99, "nan", None, 3, 3], "picture": [1e300, -7], "weights": ["pooling"]},
    {"prototypes": 10**400, "tau": "1e-400", "shown": [], "picture": [[1], 2]},
]


@in_one_case(given=HOSTILE)
def test_hostile_views_become_valid_ones(given):
    view = PrototypesView.of(given)
    found = get_answer(view)
    assert "error" not in found
    assert json.dumps(found["image"], allow_nan=False)
    assert found["total"] == 10 * found["view"]["per_class"]


def test_a_run_that_is_gone_is_said():
    found = get_answer(PrototypesView(source="run:nobody"))
    assert "No run 'nobody'" in found["error"]
    assert "nobody (not available)" in sources("run:nobody")["run:nobody"]


def test_sheet_and_export(library):
    local, reading, _ = library
    client = TestClient(Starlette(routes=prototypes_export.ROUTES))
    from PIL import Image

    sheet = client.get("/api/prototypes/pictures.png", params={"source": "digits3"})
    assert sheet.headers["cache-control"] == "no-cache"
    invented = client.get("/api/prototypes/pictures.png", params={"source": "digits3", "v": "invented"})
    assert invented.status_code == 404, "browsers would cache it for a year"
    pixels = np.asarray(Image.open(io.BytesIO(sheet.content)))
    assert pixels.shape == (10 * 8 * 8, 8 * 8, 3)  # ten classes of eight rows, 64 images each
    row, column = divmod(19, prototypes_service.COLUMNS)
    place = np.flatnonzero((local.labels == 4) & (local.ranks == 19))[0]
    top = (4 * 8 + row) * 8
    np.testing.assert_array_equal(pixels[top : top + 8, column * 8 : column * 8 + 8], local.images[place])
    export = client.get(f"/api/prototypes/export.npz?{VIEW.link()}")
    with np.load(io.BytesIO(export.content)) as arrays:
        np.testing.assert_allclose(arrays["error"], reading.error)
        np.testing.assert_allclose(arrays["prototypes"], reading.prototypes)
    assert client.get("/api/prototypes/export.npz?source=run:nobody").status_code == 404
