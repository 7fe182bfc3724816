"""The phase portrait counts every triplet, and clamp lines are where the loss reaches its clamps."""

from __future__ import annotations

import numpy as np
import torch

from dmlcore import losses
from dmlcore.geometry import Triplet
from dmlcore.simulation import clamp_lines, depends_on, phase_portrait
from tests.members import in_one_case


def test_the_portrait_is_the_histogram_of_all_listed_triplets():
    random = np.random.default_rng(0)
    x, labels = random.normal(size=(14, 2)), np.array([0] * 5 + [1] * 6 + [2] * 3)
    d = np.linalg.norm(x[:, None] - x, axis=-1)
    listed = [
        (d[a, p], d[a, n])
        for a in range(14)
        for p in range(14)
        for n in range(14)
        if a != p and labels[a] == labels[p] != labels[n]
    ]
    portrait = phase_portrait(x, labels)
    edges = np.linspace(0, portrait.reach, 49)
    pairs = np.array(listed)
    expected, *_ = np.histogram2d(pairs[:, 1], pairs[:, 0], bins=(edges, edges))
    assert np.array_equal(portrait.counts, expected)
    assert portrait.counts.sum() == len(listed) == 5 * 4 * 9 + 6 * 5 * 8 + 3 * 2 * 11
    assert portrait.violated == np.mean(pairs[:, 1] < pairs[:, 0])


@in_one_case(name=losses.names())
def test_clamp_lines_lie_on_their_level(name):
    loss = losses.create(name, **({"m2": 1.5} if "m2" in losses.formula(name).parameters else {}))
    outer, inner = clamp_lines(loss, 3.0, nodes=301)
    for level, lines in ((0.0, outer), (loss.m2, inner)):
        for line in lines:
            d_ap, d_an = torch.from_numpy(line).T
            near = (d_ap > 0.3) & (d_an > 0.3)
            t = Triplet({"ap": d_ap, "an": d_an, "pn": d_an}.__getitem__, lambda _: torch.ones(()), loss.floor)
            raw = loss.raw_of(t).expand(len(line))[near]
            assert raw.numel() == 0 or (raw - level).abs().max() < 0.02


def test_ranking_draws_the_line_of_its_margin():
    (line,), inner = clamp_lines(losses.create("ranking", m=0.5), 2.0)
    assert inner == []
    assert np.allclose(line[:, 1], line[:, 0] + 0.5)


def test_what_a_loss_depends_on():
    assert depends_on(losses.create("ranking")) == {"ap", "an"}
    assert depends_on(losses.create("distance_sensitive")) == {"ap", "an", "pn"}
    assert depends_on(losses.create("npairs")) >= {"p", "n"}
