"""GPU kernels of the triplet losses, run by Triton's interpreter on the CPU, compared with float64."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.engine import fused, gpu
from dmlcore.losses.engine.distances import euclidean
from dmlcore.losses.engine.table import Counts
from tests.members import in_one_case, note_member

if torch.cuda.is_available():
    pytest.skip("kernels are compiled on this machine; dml bench gpu checks them", allow_module_level=True)
with pytest.MonkeyPatch.context() as _here:
    _here.setenv("TRITON_INTERPRET", "1")  # is read when Triton is imported
    pytest.importorskip("triton", reason="Triton is not installed")
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    import dmlcore.kernels as kernels

if not isinstance(kernels.distance_kernel, interpreter.InterpretedFunction):
    pytest.skip("Triton was imported before, without its interpreter", allow_module_level=True)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Triton interpret kernels, also with NumPy 2.4, which refuses to convert arrays of one element to integers."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


def results(loss: losses.TripletLoss, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Counts]:
    """Return value, gradient and counts of a batch."""
    x = points.clone().requires_grad_()
    value = loss(x, labels)
    return value.detach(), torch.autograd.grad(value, x)[0], loss.counts


def compare(loss: losses.TripletLoss, points: Tensor, labels: Tensor) -> None:
    """Compare the kernels in float32 with the tables in float64."""
    value, gradient, counts = results(loss, points, labels)
    right, slope, expected = results(loss, points.double(), labels)
    assert counts == expected
    torch.testing.assert_close(value.double(), right, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-5, atol=1e-5 * max(1.0, float(slope.abs().max())))


@in_one_case(name=losses.names())
def test_every_loss_runs_in_kernels_and_gives_the_sums_in_float64(name: str) -> None:
    draw = random.Random(name)
    for case in range(3):
        reduction = draw.choice(losses.REDUCTIONS[:3])
        loss = losses.create(name, reduction=reduction)
        generator = torch.Generator().manual_seed(draw.randrange(10**6))
        size, dim = draw.randint(2, 12), draw.randint(1, 4)
        points = torch.randn(size, dim, generator=generator)
        labels = torch.randint(0, draw.randint(1, 5), (size,), generator=generator) * 7 - 3
        with note_member((case, size, dim, reduction)):
            compare(loss, points, labels)


DEGENERATE = {
    "one sample": ([[0.5, 1.0]], [3]),
    "one class": ([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]], [1, 1, 1]),
    "no positives": ([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]], [2, 1, 0]),
    "coincident points": ([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1, 1]),
    "ties": ([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [-2.0, 0.0]], [0, 0, 1, 1]),
    "far from the origin": ([[1000.0, 0.0], [1001.0, 0.0], [1000.0, 1.5], [1001.0, 1.0]], [0, 0, 1, 1]),
}


@pytest.mark.parametrize(("points", "labels"), DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_batches(points: list[list[float]], labels: list[int]) -> None:
    for name in ("ranking", "moving", "npairs", "distance_sensitive", "lifted"):
        with note_member(name):
            compare(losses.create(name), torch.tensor(points), torch.tensor(labels))


def test_classes_larger_than_a_tile_and_strips_of_whole_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0] * 19 + [1] * 2 + [2] + [3] * 3)[torch.randperm(25, generator=generator)]
    points = torch.nn.functional.normalize(torch.randn(25, 3, generator=generator))
    for name in ("location_aware", "moving"):
        compare(losses.create(name), points, labels)
        with monkeypatch.context() as here:
            here.setattr(fused, "STRIP", 25 * 4)
            strips = list(fused._strips(torch.tensor([19] * 19 + [21] * 2 + [22] + [25] * 3), 25))
            assert strips == [(0, 19), (19, 22), (22, 25)]
            compare(losses.create(name), points, labels)


def test_more_negatives_than_a_tile() -> None:
    points = torch.randn(130, 2, generator=torch.Generator().manual_seed(0))
    compare(losses.create("entangle"), points, torch.tensor([0, 0, *range(1, 129)]))


def test_nan_reaches_the_loss_and_infinity_leaves_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlcore.geometry.batches.check_embeddings", lambda *_, **__: None)  # as on a GPU
    points = torch.tensor([[0.0, 1.0], [math.nan, 0.0], [1.0, 2.0], [2.0, 2.0]])
    assert results(losses.create("ranking"), points, torch.tensor([0, 0, 1, 1]))[0].isnan()


def test_second_derivatives_and_evaluation_without_gradient() -> None:
    points, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 0, 1, 1, 2, 2])
    loss = losses.create("facenet")

    def penalty(x: Tensor) -> Tensor:
        gradient = torch.autograd.grad(loss(x, labels), x, create_graph=True)[0]
        return torch.autograd.grad(gradient.square().sum(), x)[0]

    found, right = (penalty(points.to(dtype).requires_grad_()) for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        assert loss(points, labels) == pytest.approx(float(loss(points.double(), labels)), rel=1e-6)


def test_distances_of_two_sets_and_of_a_pair_loss() -> None:
    rows, columns = torch.randn(40, 3), torch.randn(70, 3)
    torch.testing.assert_close(euclidean(rows, columns), torch.cdist(rows.double(), columns.double()).float())
    assert not euclidean(rows, rows).diagonal().any()
    loss, labels = losses.for_training("contrastive", classes=2, embedding_dim=3), torch.arange(40) % 2
    assert float(loss(rows, labels)) == pytest.approx(float(loss(rows.double(), labels)), rel=1e-6)


def test_formulas_that_cannot_be_translated_use_the_tables() -> None:
    assert fused.translate(lambda t: torch.erf(t.d_ap), {}, 0.0, False) is None
    assert fused.translate(lambda t: t.d_ap - t.d_pn, {}, 0.0, False) is None  # reads d_pn but is not symmetric
    assert fused.translate(lambda t: t.d_ap - t.d_an, {}, 0.0, False) is not None


def test_kernels_that_do_not_compile_are_replaced_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(fused, "evaluate", fail)
    monkeypatch.setattr(gpu, "_works", {})
    monkeypatch.setattr(gpu, "is_interpreted", lambda: False)
    monkeypatch.setattr(gpu, "is_supported", lambda _: True)
    monkeypatch.setattr(gpu, "distances", fail)
    loss, points, labels = losses.create("ranking"), torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 2, 2])
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        value = loss(points, labels)
    assert value == loss(points, labels)


def test_samples_are_sorted_by_label_and_their_order_is_kept_within_classes() -> None:
    labels = torch.randint(-3, 20, (150,), generator=torch.Generator().manual_seed(0))
    order, inverse, first, last = gpu.sort_by_label(labels)
    assert torch.equal(order, torch.sort(labels, stable=True).indices)
    assert torch.equal(order[inverse], torch.arange(150))
    for k, label in enumerate(labels[order]):
        assert (int(first[k]), int(last[k])) == (int((labels < label).sum()), int((labels <= label).sum()))
