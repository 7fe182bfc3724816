"""Nearest-neighbour search on a device equals that on the CPU, including ties and copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dmlcore.metrics import device_search, retrieval
from dmlcore.metrics.device_search import DeviceSearch
from dmlcore.metrics.nearest_neighbours import NeighbourSearch
from tests.devices.pretended import CUDA, REAL, pretended
from tests.members import note_member


def sets() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    draw = np.random.default_rng(0)
    points = draw.normal(size=(90, 5))
    unit = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return {
        "unit float32": (unit, None),
        "copies": (np.repeat(unit[:30], 3, axis=0), None),
        "a grid, full of ties": (draw.integers(0, 3, (90, 3)).astype(np.float32), None),
        "far from the origin": (points + 1e7, None),
        "large": (points * 1e150, None),
        "tiny": (points * 1e-200, None),
        "a gallery of their own": (unit[:20], unit[20:]),
        "one close crowd": ((1 + 1e-6 * points).astype(np.float32), None),
    }


def ranked(search: NeighbourSearch, k: int) -> np.ndarray:
    return search.ranked(np.arange(len(search.queries)), k)


@pytest.mark.parametrize("numbers", [2**26, 2000])
def test_it_ranks_as_the_cpu_does(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_search, "NUMBERS", numbers)
    for name, (queries, gallery) in sets().items():
        alone = gallery is None
        with pretended() as record:
            there = device_search.search(queries, gallery, exclude_self=alone, device=CUDA)
            assert isinstance(there, DeviceSearch)
            for k in (1, 8, 60, there.available) if numbers > 2000 else (8, there.available):
                with note_member((name, k)):
                    expected = ranked(NeighbourSearch(queries, gallery, exclude_self=alone), k)
                    assert np.array_equal(ranked(there, k), expected)
            assert record.operations["topk"] or REAL


def test_scores_are_the_same_and_products_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = sets()["unit float32"][0]
    labels = np.arange(90) % 7
    seen: list[bool] = []
    addmm: Callable[..., torch.Tensor] = torch.addmm

    def looked(*what: torch.Tensor, **more: float) -> torch.Tensor:
        seen.append(torch.backends.cuda.matmul.allow_tf32)
        return addmm(*what, **more)

    monkeypatch.setattr(torch, "addmm", looked)
    settings = torch.backends.cuda.matmul
    before, settings.allow_tf32 = settings.allow_tf32, True
    try:
        with pretended():
            assert retrieval(embeddings, labels, device=CUDA) == retrieval(embeddings, labels)
        assert settings.allow_tf32
    finally:
        settings.allow_tf32 = before
    assert seen
    assert not any(seen)


def test_what_the_bound_leaves_open_is_compared_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = DeviceSearch._by_definition
    monkeypatch.setattr(DeviceSearch, "_by_definition", lambda self, at, k: asked.append(len(at)) or plain(self, at, k))
    with pretended():
        ranked(DeviceSearch(sets()["a grid, full of ties"][0], exclude_self=True, device=CUDA), 8)
    assert sum(asked) > 0


@pytest.mark.parametrize("numbers", [2**26, 2000])
def test_listing_in_double_precision_ranks_as_the_cpu_does(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_search, "NUMBERS", numbers)
    for name, (queries, gallery) in sets().items():
        alone = gallery is None
        cpu = NeighbourSearch(queries, gallery, exclude_self=alone)
        with pretended():
            there = DeviceSearch(queries, gallery, exclude_self=alone, device=CUDA)
            there._double_first = True
            for k in (1, 2, 7, 8, 9, there.available - 1):
                with note_member((name, k)):
                    assert np.array_equal(ranked(there, k), ranked(cpu, k))


def test_a_crowd_that_float32_cannot_separate_needs_no_table_of_all_exact_distances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Like the neighbours of rank 1,000 among 60,000 points: gaps are narrower than the error bound of float32."""
    points = (np.random.default_rng(0).normal(size=(90, 5)) * 1e-4 + 1).astype(np.float32)
    points = np.concatenate([points, points[:4] + 3])
    monkeypatch.setattr(device_search, "NUMBERS", 94 * 20)
    monkeypatch.setattr(DeviceSearch, "_by_definition", lambda *_: pytest.fail("all distances were computed"))
    with pretended():
        there = DeviceSearch(points, exclude_self=True, device=CUDA)
        found = there.ranked(np.arange(90), 40)
        assert there._double_first
    assert np.array_equal(found, NeighbourSearch(points, exclude_self=True).ranked(np.arange(90), 40))
