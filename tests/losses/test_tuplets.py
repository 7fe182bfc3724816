"""(N+P+1)-tuplet losses: golden values and relations between their three forms."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from dmlcore import losses
from dmlcore.losses.tuplets import FORMS, Tuplet, centre_losses
from dmlcore.training.methods.start_distance import distance
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
BATCHES = ("balanced", "uneven")


def golden_batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    b = GOLDEN["batches"][name]
    i, d = (torch.arange(n, dtype=torch.float64) for n in (len(b["labels"]), b["dim"]))
    y, i, p = torch.tensor(b["labels"], dtype=torch.float64)[:, None], i[:, None], b["p"]
    x = 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)
    return x.requires_grad_(), torch.tensor(b["labels"])


def case(name: str, batch: str) -> dict[str, Any]:
    return next(c for c in GOLDEN["losses"] if c["name"] == name and c["batch"] == batch)


def same(value: torch.Tensor, x: torch.Tensor, golden: dict[str, Any]) -> None:
    (gradient,) = torch.autograd.grad(value, x)
    i, d = torch.arange(float(x.shape[0]))[:, None], torch.arange(float(x.shape[1]))
    assert value.item() == pytest.approx(golden["value"], rel=1e-9)
    assert gradient.norm().item() == pytest.approx(golden["grad"]["embeddings"]["norm"], rel=1e-8)
    probe = torch.cos(0.3 * i.double() - 0.8 * d.double() + 0.2)
    assert (gradient * probe).sum().item() == pytest.approx(golden["grad"]["embeddings"]["dot"], rel=1e-8)


@pytest.mark.parametrize("entry", GOLDEN["centre_forms"], ids=lambda e: str(e["positives"]))
def test_golden_centre_forms(entry: dict[str, Any]) -> None:
    similarities = torch.tensor([entry["similarities"]], dtype=torch.float64)
    positive = torch.zeros_like(similarities, dtype=torch.bool)
    positive[0, entry["positives"]] = True
    for form, key in (("pairs", "sum_over_pairs"), ("ratio", "ratio"), ("cross_entropy", "cross_entropy")):
        assert centre_losses(similarities, positive, ~positive, form).item() == pytest.approx(entry[key], rel=1e-12)


@in_one_case(batch=BATCHES, form=["ratio", "cross_entropy"])
def test_golden_batches(form: str, batch: str) -> None:
    x, labels = golden_batch(batch)
    same(
        losses.for_training("tuplet", classes=9, embedding_dim=5, form=form)(x, labels),
        x,
        case(f"centralized_{form}", batch),
    )


@in_one_case(batch=BATCHES, form=["ratio", "cross_entropy"])
def test_golden_with_both_regularisers(form: str, batch: str) -> None:
    x, labels = golden_batch(batch)
    i, d = torch.arange(float(len(x)), dtype=torch.float64)[:, None], torch.arange(5, dtype=torch.float64)
    start = x.detach() + 0.2 * torch.cos(0.5 * i + 0.3 * d)
    loss = Tuplet(form, norm_weight=0.02)
    same(loss(x, labels) + 0.3 * distance(x, start), x, case(f"local_neighbourhood_{form}", batch))


@in_one_case(batch=BATCHES)
def test_golden_single_anchor(batch: str) -> None:
    x, labels = golden_batch(batch)
    positive = (labels == labels[0])[None]
    negative = ~positive
    positive[0, 0] = False
    similarities = (x @ x.mT)[:1]
    same(centre_losses(similarities, positive, negative, "pairs")[0], x, case("tuplet_n_plus_p_plus_1", batch))


@pytest.mark.parametrize(
    ("positives", "negatives", "expected"),
    [
        ([1], [0, 0.5], (0.6803, 0.6803, 0.6803)),
        ([1, 1], [0], (0.3133, 0.8620, 0.8620)),
        ([2, -2], [0], (1.5607, 0.8179, 2.1429)),
    ],
)
def test_the_three_forms_agree_for_one_positive_alone(positives, negatives, expected) -> None:
    """The counter-examples to the printed identity."""
    similarities = torch.tensor([[*positives, *negatives]], dtype=torch.float64)
    positive = torch.arange(similarities.shape[1])[None] < len(positives)
    found = [
        centre_losses(similarities, positive, ~positive, form).item() for form in ("pairs", "ratio", "cross_entropy")
    ]
    assert found == pytest.approx(expected, abs=5e-5)


@in_one_case(form=FORMS)
def test_a_sample_alone_in_its_class_counts_for_nothing(form: str) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = Tuplet(form)
    assert loss(x, torch.arange(5)).item() == 0
    with_positives = loss(x, torch.tensor([0, 0, 1, 1, 2]))
    with_positives.backward()
    assert loss.counts.valid == 4
    assert math.isfinite(with_positives.item())
    assert torch.isfinite(x.grad).all()


def test_cross_entropy_is_never_below_ratio() -> None:
    generator = torch.Generator().manual_seed(1)
    similarities = torch.randn(200, 9, generator=generator)
    positive = torch.rand(200, 9, generator=generator) < 0.4
    positive[:, 0], positive[:, 1] = True, False
    ce, ratio = (centre_losses(similarities, positive, ~positive, form) for form in ("cross_entropy", "ratio"))
    assert (ce >= ratio - 1e-5).all()
    assert (ce > ratio + 0.1).any()
