"""Similarities on which weights of pair losses depend, against closed forms and the printed table of Psomas 2020."""

import pytest
import torch

from dmlcore import losses
from dmlcore.loss_analysis import similarity_types
from dmlcore.loss_analysis.similarity_types import dependence, pair_losses
from dmlcore.published import pair_weight_table
from tests.members import in_one_case


@in_one_case(
    case=[
        ("contrastive", "smooth none none"),  # [m - d]+ with d = sqrt(2 - 2 S)
        ("binomial_deviance", "smooth none none"),
        ("triplet", "none none threshold"),  # 1 if S_an > S_ap - m, else 0
        ("lifted_structure", "none smooth none"),  # softmax over the negatives
        ("n_pair", "none smooth smooth"),
        ("multi_similarity", "smooth smooth threshold"),  # positives only mine
        ("threshold_consistent_margin", "threshold none none"),  # 1 over the number of hard pairs if S_an >= m, else 0
    ]
)
def test_weights_depend_on_what_their_closed_forms_contain(case):
    name, expected = case
    assert " ".join(dependence(name).values()) == expected


def test_the_printed_table_differs_for_n_pair_only():
    assert pair_weight_table.lines()[-1].startswith("Different from the printed table: N-pair of a batch (")


def test_a_common_divisor_is_no_dependence(monkeypatch):
    """Without the common factor, the mean over active terms would make each weight depend on all other pairs."""
    similarity_types.dependence.cache_clear()
    monkeypatch.setattr(similarity_types, "_common_factor", lambda before, after: 1.0)
    assert dependence("margin")["negative"] == "threshold"
    similarity_types.dependence.cache_clear()
    monkeypatch.undo()
    assert dependence("margin")["negative"] == "none"


def test_weights_are_those_of_embeddings_with_these_similarities():
    """Weights from the free table, turned into a gradient of the embeddings, equal the gradient of the loss itself."""
    torch.manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(9, 9, dtype=torch.float64), dim=1).requires_grad_()
    labels = torch.arange(3).repeat_interleave(3)
    loss = losses.for_training("binomial_deviance", classes=3, embedding_dim=9)
    (gradient,) = torch.autograd.grad(loss(x, labels), x)
    table = (x @ x.T).detach()
    weights = similarity_types._weights(loss, table)
    same = similarity_types._same_class()
    off = ~torch.eye(9, dtype=torch.bool)
    (whole,) = torch.autograd.grad(_of_table(loss, table_ := table.clone().requires_grad_(), same & off, ~same), table_)
    torch.testing.assert_close(weights, whole.masked_fill(same, 0.0))
    along = (whole + whole.T) @ x.detach()
    radial = (along * x.detach()).sum(1, keepdim=True) * x.detach()
    torch.testing.assert_close(gradient, along - radial)


def _of_table(loss, table, positive, negative):
    labels = torch.arange(3).repeat_interleave(3)
    eye = torch.eye(len(table), dtype=table.dtype)
    pairs = similarity_types._FreePairs(table, eye, labels, labels, positive, negative, None, table)
    return loss.compute(pairs)


def test_other_losses_are_refused():
    with pytest.raises(ValueError, match="proxy_nca: must be a pair loss, one of contrastive"):
        dependence("proxy_nca")
    assert "proxy_nca" not in pair_losses()
