import json
from pathlib import Path
from typing import Any

import pytest
import torch

from dmlcore import losses

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "losses.json").read_text())
BATCHES: dict[str, Any] = GOLDEN["batches"]
OURS = {"contrastive_l2_avg": "contrastive", "softmax": "cross_entropy", "normalized_softmax": "proxy_nca"}
CASES = [case for case in GOLDEN["losses"] if case["name"] in OURS]


def embeddings(batch: str) -> torch.Tensor:
    b = BATCHES[batch]
    i, d = (torch.arange(n, dtype=torch.float64) for n in (len(b["labels"]), b["dim"]))
    y = torch.tensor(b["labels"], dtype=torch.float64)[:, None]
    i, p = i[:, None], b["p"]
    return 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)


def proxies(batch: str) -> torch.Tensor:
    b = BATCHES[batch]
    c, d = (torch.arange(n, dtype=torch.float64) for n in (b["num_classes"], b["dim"]))
    c, p = c[:, None], b["p"]
    return 1.3 * torch.cos(1.7 * c + 0.9 * d * (c + 1) + 0.3 + p) + 0.4 * torch.sin(0.5 + 1.1 * c - 0.9 * d + p)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}-{case['batch']}")
def test_golden(case: dict[str, Any]) -> None:
    batch, name = BATCHES[case["batch"]], OURS[case["name"]]
    hyper = {{"tau": "temperature"}.get(k, k): v for k, v in case["params"].items()}
    loss = losses.for_training(name, classes=batch["num_classes"], embedding_dim=batch["dim"], **hyper).double()
    E = embeddings(case["batch"]).requires_grad_()
    if hasattr(loss, "proxies"):
        loss.proxies.data = proxies(case["batch"])
    unit = torch.nn.functional.normalize(E, dim=1) if name == "contrastive" else E
    value = loss(unit, torch.tensor(batch["labels"]))
    value.backward()
    assert value.item() == pytest.approx(case["value"], rel=1e-9)
    for of, parameter in {"embeddings": E, "W": getattr(loss, "proxies", None)}.items():
        if of in case["grad"]:
            assert parameter.grad.norm().item() == pytest.approx(case["grad"][of]["norm"], rel=1e-8)


def test_contrastive_by_hand() -> None:
    loss = losses.for_training("contrastive", classes=2, embedding_dim=1, m_pos=0.5, m_neg=2.0)
    points, labels = torch.tensor([[0.0], [1.0], [1.25], [2.75]]), torch.tensor([0, 0, 0, 1])
    # pairs of one class: 1, 1.25, 0.25 -> 0.5, 0.75, 0; pairs of two: 2.75, 1.75, 1.5 -> 0, 0.25, 0.5
    assert loss(points, labels).item() == pytest.approx((0.5 + 0.75) / 2 + (0.25 + 0.5) / 2)


def test_contrastive_without_costly_pairs_is_zero_with_zero_gradients() -> None:
    loss = losses.for_training("contrastive", classes=2, embedding_dim=2)
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0]], requires_grad=True)
    value = loss(points, torch.tensor([0, 0, 1]))
    value.backward()
    assert value.item() == 0
    assert not points.grad.any()


def test_refusals_name_the_culprit() -> None:
    sizes = {"classes": 3, "embedding_dim": 2}
    with pytest.raises(KeyError, match=r"unknown loss 'no_such'.*ranking.*contrastive"):
        losses.for_training("no_such", **sizes)
    with pytest.raises(
        TypeError, match="contrastive has no hyper-parameter margin; it has: m_pos, m_neg, distance, divisor"
    ):
        losses.for_training("contrastive", **sizes, margin=1)
    with pytest.raises(ValueError, match="proxy_nca: temperature must be greater than 0"):
        losses.for_training("proxy_nca", **sizes, temperature=0)
    with pytest.raises(ValueError, match="reduction: proxy_nca defines its own"):
        losses.for_training("proxy_nca", **sizes, reduction="mean_raw")
    loss = losses.for_training("cross_entropy", **sizes)
    with pytest.raises(ValueError, match=r"labels must be in 0..2, one proxy each, got \[0, 3\]"):
        loss(torch.zeros(2, 2), torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="embeddings must have 2 columns like the proxies, got 5"):
        loss(torch.zeros(2, 5), torch.tensor([0, 1]))


def test_triplet_losses_come_through_the_same_door() -> None:
    assert isinstance(losses.for_training("ranking", classes=2, embedding_dim=2, m=0.3), losses.TripletLoss)
