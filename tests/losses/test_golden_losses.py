"""Cases of golden/losses.json whose loss is in pairs, hinges, structured, proxies or classification.

Value, gradient norm and probe product are compared in float64, with the tolerances of the file. The other cases,
`ELSEWHERE`, are those of tuplets, ensembles and facility location.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore import losses

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
BATCHES: dict[str, Any] = GOLDEN["batches"]
ELSEWHERE = {
    *("centralized_ratio", "centralized_cross_entropy", "tuplet_n_plus_p_plus_1"),
    *("local_neighbourhood_ratio", "local_neighbourhood_cross_entropy", "facility_location"),
}


@dataclass(frozen=True)
class Twin:
    """Catalogue loss of a golden case: its name, further settings, and other names of parameters."""

    name: str
    given: dict[str, float | str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    unit: bool = False  # the case normalises embeddings, as a network with model.normalize does


LAM_M = {"lam": "m"}
DELTA = {"beta1": "alpha", "beta2": "m", "C": "cost"}
OURS = {
    "contrastive_l2_avg": Twin("contrastive", unit=True),
    "contrastive_l2_avg_lipschitz": Twin("contrastive", {"distance": "ball"}),
    # 1 - cos has its hinge at m_neg = 1 - lambda
    "contrastive_cos_sum": Twin("contrastive", {"distance": "cosine", "divisor": "one", "m_neg": 0.5}),
    "contrastive_cos_avg": Twin("contrastive", {"distance": "cosine", "m_neg": 0.5}),
    "c1_cos": Twin("contrastive", {"distance": "cosine", "divisor": "anchors", "m_neg": 0.5, "m_pos": 1e-5}),
    "triplet_cos_mean": Twin("triplet", {"divisor": "pairs"}, LAM_M),
    "triplet_cos_avg": Twin("triplet", {}, LAM_M),
    "triplet_cos_semihard": Twin("triplet", {"negatives": "semi_hard", "divisor": "pairs"}, LAM_M),
    "triplet_l2_avg": Twin("triplet", {"distance": "euclidean"}, {"margin": "m"}, unit=True),
    "triplet_sq_semihard": Twin(
        "triplet",
        {"distance": "squared", "negatives": "semi_hard_or_farthest", "divisor": "pairs"},
        {"alpha": "m"},
    ),
    "triplet_hinge_mined": Twin(
        "triplet", {"distance": "euclidean", "negatives": "window"}, {"margin": "m"}, unit=True
    ),
    "lifted_cos": Twin("lifted_structure", {"divisor": "one"}, LAM_M),
    "lifted_pairs_l2": Twin("lifted_structure", {"form": "pairs"}, {"alpha": "m"}, unit=True),
    "lifted_mined": Twin("lifted_structure", {"form": "mined"}, {"gap": "epsilon"}),
    "npair_printed": Twin("n_pair"),
    "npair_one_pair_per_class": Twin("n_pair", {"form": "one"}),
    "ntxent": Twin("nt_xent", {}, {"tau": "temperature"}),
    "margin_l2_pair": Twin("margin", {}, {"lam": "alpha"}, unit=True),
    "margin_l2_triplet": Twin("margin", {"counting": "triplets"}, {"lam": "alpha"}, unit=True),
    # S = 1 - d turns the boundary beta on S into 1 - beta = 0.5 on d
    "margin_cos_pair": Twin("margin", {"distance": "cosine"}, {"lam": "alpha"}),
    "margin_cos_triplet": Twin("margin", {"distance": "cosine", "counting": "triplets"}, {"lam": "alpha"}),
    "multi_similarity": Twin("multi_similarity", {"epsilon": math.inf}, LAM_M),
    "multi_similarity_mined": Twin("multi_similarity", {}, LAM_M),
    "binomial_deviance": Twin("binomial_deviance", {}, DELTA),
    "softmax": Twin("cross_entropy"),
    "normalized_softmax": Twin("proxy_nca", {}, {"tau": "temperature"}),
    "proxy_nca": Twin("proxy_nca", {"denominator": "others"}, {"scale": "temperature"}),  # scale 1
    "proxy_nca_smoothed": Twin("proxy_nca_smoothed", {}, {"scale_p": "scale"}),
    "arcface": Twin("arcface", {}, {"margin_degrees": "margin"}),
    "soft_triple": Twin("soft_triple", {}, {"centres_per_class": "centres"}),
    "proxy_anchor": Twin("proxy_anchor"),
    "proxy_push_61": Twin("proxy_push", {"through": "proxies"}),
    "proxy_push_62": Twin("proxy_push", {"through": "batch"}),
    "c2_proxy": Twin("contrastive_proxy", {"per_class": 1}),
    "triplet_proxy": Twin("triplet_proxy", {"per_class": 1}, {"margin": "m"}),
    "multi_similarity_proxy": Twin("multi_similarity_proxy", {"per_class": 1}, LAM_M),
    "label_smoothing_all": Twin("cross_entropy", {}, {"gamma": "smoothing"}),
    "label_smoothing_others": Twin("cross_entropy", {"over": "others"}, {"gamma": "smoothing"}),
}
FACTORS = ("embedding_factor", "proxy_factor", "scale_x", "W_rule")  # factors of the inputs, or 1, or given below
CASES = [case for case in GOLDEN["losses"] if case["name"] not in ELSEWHERE]


def embeddings(batch: str) -> Tensor:
    b = BATCHES[batch]
    i, d = (torch.arange(n, dtype=torch.float64) for n in (len(b["labels"]), b["dim"]))
    y = torch.tensor(b["labels"], dtype=torch.float64)[:, None]
    i, p = i[:, None], b["p"]
    return 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)


def proxies(batch: str, name: str) -> Tensor:
    b = BATCHES[batch]
    c, d = (torch.arange(n, dtype=torch.float64) for n in (b["num_classes"], b["dim"]))
    if name == "soft_triple":  # two centres of each class, class after class
        r = torch.arange(2 * b["num_classes"], dtype=torch.float64)[:, None]
        return torch.cos(0.4 + 1.3 * r - 0.7 * d + 0.09 * r * d)
    c, p = c[:, None], b["p"]
    return 1.3 * torch.cos(1.7 * c + 0.9 * d * (c + 1) + 0.3 + p) + 0.4 * torch.sin(0.5 + 1.1 * c - 0.9 * d + p)


def check(found: Tensor, expected: dict[str, float]) -> None:
    i, d = (torch.arange(n, dtype=torch.float64) for n in found.shape)
    probe = torch.cos(0.3 * i[:, None] - 0.8 * d + 0.2)
    for key, value in (("norm", found.norm()), ("dot", (found * probe).sum())):
        tolerance = GOLDEN["tolerance"][f"grad_{key}"] * max(1.0, abs(expected[key]))
        assert value.item() == pytest.approx(expected[key], abs=tolerance, rel=0), key


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}-{case['batch']}")
def test_golden(case: dict[str, Any]) -> None:
    twin, batch = OURS[case["name"]], BATCHES[case["batch"]]
    given = {twin.renamed.get(k, k): v for k, v in case["params"].items() if k not in FACTORS}
    if "cos" in case["name"]:
        assert given.pop("lam", 0.5) == given.pop("margin", 0.5) == 0.5  # given by m_neg above
    loss = losses.for_training(
        twin.name, classes=batch["num_classes"], embedding_dim=batch["dim"], **given, **twin.given
    ).double()
    if hasattr(loss, "beta") and isinstance(loss.beta, torch.nn.Parameter):
        loss.beta.data.fill_(given["beta"])  # 1.2 in float64
    E = embeddings(case["batch"]).requires_grad_()
    W = proxies(case["batch"], case["name"]).requires_grad_()
    x = E * case["params"].get("embedding_factor", 1.0)
    if hasattr(loss, "proxies"):
        del loss.proxies
        loss.proxies = W * case["params"].get("proxy_factor", 1.0)
    value = loss(F.normalize(x, dim=1) if twin.unit else x, torch.tensor(batch["labels"]))
    value.backward()
    if case["name"] == "contrastive_cos_sum":  # [1 - S] instead of -S adds one for each positive pair
        y = torch.tensor(batch["labels"])
        value = value - (y[:, None] == y).sum() + len(y)
    assert value.item() == pytest.approx(
        case["value"], abs=GOLDEN["tolerance"]["value"] * max(1.0, abs(case["value"])), rel=0
    )
    check(E.grad, case["grad"]["embeddings"])
    assert ("W" in case["grad"]) == hasattr(loss, "proxies")
    if "W" in case["grad"]:
        check(W.grad, case["grad"]["W"])


# Location of the test of each entry of the file; "about" and "conventions" are its header.
ENTRIES = {
    **dict.fromkeys(("tolerance", "batches", "losses", "arcface_beyond_pi"), "losses/test_golden_losses.py"),
    "centre_forms": "losses/test_tuplets.py",
    **dict.fromkeys(("ema_rescaling", "wel_objective", "ensemble", "wedl_full"), "losses/test_ensembles.py"),
    **dict.fromkeys(("k_center", "covering_radius"), "geometry/test_covering.py"),
    "histogram_pcc": "geometry/test_histograms.py",
    "hull_overlap": "geometry/test_hulls.py",
    "zero_shot": "pooling/test_zero_shot.py",
    "local_neighbourhood_sampling": "training/test_samplers.py",
    "retrieval": "metrics/test_retrieval.py",
    "zero_shot_evaluation": "pooling/analysis/test_zero_shot_evaluation.py",
    "memory": "losses/test_memory.py",
    "metrics": "metrics/test_clustering.py",
}


def test_every_golden_loss_is_ours_or_known_to_be_elsewhere() -> None:
    names = {case["name"] for case in GOLDEN["losses"]}
    assert names == OURS.keys() | ELSEWHERE
    assert len(GOLDEN["losses"]) == 87


def test_arcface_beyond_pi() -> None:
    case = GOLDEN["arcface_beyond_pi"]
    E, W = (torch.tensor(case[k], dtype=torch.float64, requires_grad=True) for k in ("E", "W"))
    loss = losses.for_training("arcface", classes=2, embedding_dim=3, margin=28.6, scale=case["scale"]).double()
    del loss.proxies
    loss.proxies = W
    value = loss(E, torch.tensor(case["labels"]))
    value.backward()
    assert value.item() == pytest.approx(case["value"], rel=1e-9)
    check(E.grad, case["grad"]["embeddings"])
    check(W.grad, case["grad"]["W"])
