"""Use of tokens by classes compared with pairwise measures of hulls."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.geometry import hulls
from dmlcore.geometry.token_use import TokenUse, mean_over_pairs


@pytest.fixture(params=[0, 1, 2])
def use(request):
    random = np.random.default_rng(request.param)
    tokens = random.uniform(-0.3, 0.3, (20, 2))
    weights = random.dirichlet(np.full(20, 0.15), size=6)
    return tokens, weights, TokenUse.of(tokens, weights, tau=0.01)


def test_measures_are_those_of_hulls_pair_by_pair(use):
    tokens, weights, found = use
    labels = np.arange(len(weights))
    expected = hulls.overlaps(tokens, weights, labels, tau=0.01)
    off = ~np.eye(len(weights), dtype=bool)
    assert (found.active == expected.active).all()
    assert found.ious()[off] == pytest.approx(expected.pairs["hull_iou"][off], abs=1e-12)
    assert found.intersections()[off] == pytest.approx(expected.pairs["histogram_intersection"][off], abs=1e-12)
    assert mean_over_pairs(found.ious()) == pytest.approx(expected.mean("hull_iou"), abs=1e-12)
    assert np.ptp(found.ious()[off]) > 0
    assert (found.ious() == found.ious().T).all()


def test_hulls_hold_the_active_tokens_and_weights_add_up(use):
    tokens, weights, found = use
    for flags, corners in zip(found.active, found.hulls, strict=True):
        assert hulls.members(tokens[flags], corners).all()
        assert {tuple(c) for c in corners} <= {tuple(t) for t in tokens[flags]}
    assert found.weight_on([3, 5]) == pytest.approx(weights[:, 3] + weights[:, 5])
    assert found.weight_on(range(20)) == pytest.approx(1.0)


def test_disjoint_classes_share_nothing_and_equal_ones_everything():
    tokens = np.array([[0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]], dtype=float)
    first, second = [1 / 3] * 3 + [0] * 3, [0] * 3 + [1 / 3] * 3
    apart, same = TokenUse.of(tokens, [first, second]), TokenUse.of(tokens, [first, first])
    assert mean_over_pairs(apart.ious()) == mean_over_pairs(apart.intersections()) == 0
    assert mean_over_pairs(same.ious()) == mean_over_pairs(same.intersections()) == pytest.approx(1)


def test_a_class_on_one_line_has_a_hull_without_area():
    use = TokenUse.of([[0, 0], [1, 1], [2, 2]], [[0.5, 0.25, 0.25], [1, 0, 0]])
    assert [len(h) for h in use.hulls] == [2, 1]
    assert use.ious()[0, 1] == 0
    assert mean_over_pairs([[1.0]]) == 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="tokens"):
        TokenUse.of(np.zeros((3, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="weights"):
        TokenUse.of(np.zeros((3, 2)), np.ones((1, 4)))
