"""Maps of the red and blue toy data: the published one equals the golden one, and all are mixtures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.pooling import clip_to_unit_ball, pooling_weights, prototype_costs, selection, transport
from dmlcore.pooling.analysis.red_blue import MAPS, SIDE, STEPS, figure, informative, mixture
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "gsp.json").read_text())["toy_red_blue"]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: f"mu={c['mu']}-eps={c['eps']}")
def test_the_map_of_the_figure_has_the_golden_weights(case):
    features = torch.from_numpy(mixture(figure())).reshape(-1, 3)
    cost = prototype_costs(features, torch.tensor(GOLDEN["prototypes"], dtype=torch.float64))
    if case["eps"] == "lp":
        weights = selection(cost, case["mu"])
    else:
        weights = pooling_weights(transport(cost, case["mu"], case["eps"])[0], case["mu"])
    np.testing.assert_allclose(weights.reshape(SIDE, SIDE), case["weights"], rtol=1e-9, atol=1e-12)
    found = informative(features.numpy())
    assert found.sum() == 50
    assert weights.numpy()[found].sum() == pytest.approx(case["mass_on_blocks"], abs=1e-9)


@in_one_case(name=MAPS)
def test_every_map_is_of_mixtures_within_the_unit_ball(name):
    steps = MAPS[name]()
    features = mixture(steps)
    assert features.shape == (SIDE, SIDE, 3)
    np.testing.assert_allclose(features.sum(-1), 1, atol=1e-15)
    np.testing.assert_array_equal(clip_to_unit_ball(torch.from_numpy(features)), features)
    assert (steps == MAPS[name]()).all()


def test_what_is_no_mixture_is_refused():
    for bad in ([-1, 0], [STEPS, 1]):
        with pytest.raises(ValueError, match="steps of red and blue"):
            mixture(np.array(bad))
