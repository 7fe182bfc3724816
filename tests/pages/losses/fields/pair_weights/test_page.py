"""Pair weights: the bytes are the library's weights, the link is the state, and an invalid link opens the default."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.loss_analysis.pair_weights import RIVALS, similarities
from pages.losses.fields.pair_weights import service as pair_weights_service
from pages.losses.fields.pair_weights.state import SLIDES, PairWeightsView
from pages.shared.server.websocket import MOST_BYTES
from pages.shared.server.wire import unpack
from pages.shared.state.panel import panel
from tests.loss_analysis.gram import gram_weights
from tests.members import in_one_case

N = 41


def get_answer(view: PairWeightsView, **request) -> dict:
    answer = unpack(pair_weights_service.answer({"view": view.to_json(), "n": N, **request}))
    answer |= answer["arrays"]
    return answer


def through_the_gradient(loss, view, ap, an):
    """Return the weights of one triplet from the gradient by the Gram matrix."""
    s = similarities(*torch.tensor([ap, an], dtype=torch.float64), rival=view.rival, pn=view.pn)
    one = tuple(torch.tensor([i]) for i in range(3))
    found = gram_weights(lambda x: loss(x, torch.tensor([0, 0, 1]), one), s)
    return found.by_distance(s) if view.by == "d" else found


@in_one_case(by=["S", "d"], weight=["an", "ap", "pn"], rival=RIVALS)
def test_every_cell_is_the_weight_of_its_triplet(by, weight, rival):
    panels = (panel("distance_sensitive", m2=None), panel("lifted"))
    view = PairWeightsView(panels, weight, by, "signed", rival, 0.3)
    maps = get_answer(view)
    centre = (np.arange(N) + 0.5) * 2 / N - 1
    seen = 0
    for row, col in ((3, 5), (20, 20), (30, 12), (12, 30), (25, 33)):
        s = similarities(torch.tensor(centre[col]), torch.tensor(centre[row]), rival, 0.3)
        assert maps["exists"][row, col] == (255 if s.determinant() >= 0 else 0)
        if not maps["exists"][row, col]:
            continue
        for k, p in enumerate(panels):
            found = getattr(through_the_gradient(p.module(), view, centre[col], centre[row]), weight).item()
            expected = 128 + 127 * min(max(found / maps["top"], -1), 1)
            assert maps[f"weight{k}"][row, col] == pytest.approx(expected, abs=0.51)
            seen += 1
    assert seen >= 4


def test_the_readout_is_the_triplet_at_the_cursor():
    view = PairWeightsView(by="d", at=(0.4, 0.7))
    for at, expected in ((None, (0.4, 0.7)), ([0.1, 0.3], (0.1, 0.3))):
        found = get_answer(view, at=at, maps=False)
        assert set(found) == {"id", "at", "triplet", "arrays"}
        triplet = found["triplet"]
        assert (triplet["S"]["ap"], triplet["S"]["an"]) == expected
        assert triplet["d"]["an"] == pytest.approx(math.sqrt(2 - 2 * expected[1]))
        for k, p in enumerate(view.panels):
            weights = through_the_gradient(p.module(), view, *expected)
            for pair in ("ap", "an", "pn"):
                assert triplet["losses"][k]["weights"][pair] == pytest.approx(getattr(weights, pair).item(), abs=1e-9)


def test_the_figure_of_the_sphere_keeps_angles_to_the_anchor():
    triplet = get_answer(PairWeightsView(rival="symmetric", at=(0.5, 0.2)), maps=False)["triplet"]
    (p,), (n,), arc = (triplet["sphere"][k] for k in ("positive", "negative", "arc"))
    assert math.hypot(*p) == pytest.approx(math.acos(0.5) / math.pi)
    assert math.hypot(*n) == pytest.approx(math.acos(0.2) / math.pi)
    assert (arc[0], arc[-1]) == (p, n)
    between = math.atan2(n[1], n[0]) - math.atan2(p[1], p[0])  # law of cosines on the sphere
    assert math.cos(between) == pytest.approx((0.2 - 0.5 * 0.2) / math.sqrt(0.75 * 0.96))


def test_where_no_triplet_exists_nothing_is_drawn_or_said():
    maps = get_answer(PairWeightsView(rival="symmetric", at=(-0.9, 0.9)))
    assert maps["triplet"] is None
    assert maps["exists"][-1, 0] == 0
    assert maps["exists"][N // 2, N // 2] == 255
    # S_an^2 <= (1 + S_ap) / 2 covers two thirds of the square.
    assert maps["exists"].mean() / 255 == pytest.approx(2 / 3, abs=0.01)
    ends = np.concatenate([maps[f"corners{k}"] for k in (0, 1)]) / 32767.5 - 1
    s = similarities(*torch.from_numpy(ends).unbind(-1), rival="symmetric")
    assert len(ends) > 10
    assert (s.determinant() > -1e-3).all()


def test_boundaries_lie_where_the_loss_meets_its_clamp():
    view = PairWeightsView((panel("facenet", m=0.3), panel("facenet_mined", m=0.3)))
    maps = get_answer(view)
    for k, counts in enumerate(maps["panels"]):
        corners = maps[f"corners{k}"] / 32767.5 - 1
        raw = 2 * (corners[:, 1] - corners[:, 0]) + 0.3
        outer = sum(counts["outer"])
        assert np.abs(raw[:outer]).max() < 0.02
        assert np.abs(raw[outer:] - 0.3).max(initial=0) < 0.02
        assert bool(counts["inner"]) == (k == 1)


def test_one_scale_that_holds_while_the_hand_moves():
    view = PairWeightsView()
    fitting = get_answer(view)["top"]
    assert get_answer(view, top=7 * fitting)["top"] == 7 * fitting
    assert get_answer(view, top=7 * fitting, settle=True)["top"] == fitting
    size = get_answer(PairWeightsView(scale="size"))
    assert not size["signed"]
    assert size["weight1"].max() == pytest.approx(255 * min(2 / size["top"], 1), abs=0.51)


def test_a_hand_at_rest_gets_the_link():
    view = SLIDES[0].state(PairWeightsView)
    assert get_answer(view, settle=True)["query"] == view.link() == SLIDES[0].query


def test_captions_of_the_slides_are_true():
    views = [slide.state(PairWeightsView) for slide in SLIDES]
    metu, npairs = get_answer(views[0], at=[0.2, 0.4], maps=False)["triplet"]["losses"]
    assert metu["weights"]["an"] == pytest.approx(1.2**-1.5)
    assert 0 < npairs["weights"]["an"] < 1
    near = get_answer(views[0], at=[0.2, 0.99], maps=False)["triplet"]["losses"]
    assert [x["active"] for x in near] == [False, True]
    ranking, facenet = (get_answer(views[1], at=[0.2, a], maps=False)["triplet"]["losses"] for a in (0.3, 0.9))
    assert [x["weights"]["an"] for x in (ranking[1], facenet[1])] == pytest.approx([2, 2])
    assert ranking[0]["weights"]["an"] == pytest.approx(1 / math.sqrt(1.4))
    assert facenet[0]["weights"]["an"] == pytest.approx(1 / math.sqrt(0.2))
    easy = get_answer(views[2], at=[0.9, -0.8], maps=False)["triplet"]["losses"]
    assert easy[0]["weights"]["ap"] == 0 > easy[1]["weights"]["ap"]
    hardest = get_answer(views[3], at=[0.2, 0.9], maps=False)["triplet"]["losses"]
    assert [x["active"] for x in hardest] == [True, False]
    both = get_answer(views[4], at=[0.2, 0.5], maps=False)["triplet"]["losses"]
    assert all(x["weights"]["pn"] > 0 for x in both)
    for view in views:
        assert get_answer(view)["triplet"] is not None


@in_one_case(value=[-1e9, 0.0, 1e9, None], name=losses.names())
def test_extreme_hyper_parameters_get_maps(name, value):
    one = {"loss": name, "hyper": dict.fromkeys(losses.formula(name).parameters, value)}
    for at, rival in zip(([0.995, 0.995], [-1, 1], [0, 0]), RIVALS, strict=True):
        view = {"panels": [one, one], "rival": rival, "pn": 0.995, "at": at}
        assert unpack(pair_weights_service.answer({"view": view, "n": 25}))["top"] > 0


def test_a_full_request_fits_the_socket_and_its_answer_is_small():
    view = PairWeightsView((panel("distance_sensitive"), panel("location_aware")), at=(0.123456, 0.654321)).to_json()
    request = {"id": 10**9, "view": view, "n": 161, "top": 1.23456789, "settle": True, "at": [0.1, 0.2]}
    assert len(json.dumps(request)) < MOST_BYTES
    assert len(pair_weights_service.answer({"view": view, "n": 61})) < 16_000
