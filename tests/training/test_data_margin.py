"""Margins chosen from the distances of the first batch, as state of a run."""

from pathlib import Path

import pytest
import torch

from dmlcore import geometry, losses
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore, with_chosen_margin
from dmlcore.training import build
from dmlcore.training.errors import TrainingError
from tests.training.resumed import same_to_the_bit, trained

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 2])
SPEC = RunSpec().with_overrides(
    [
        *("loss.name=distance_sensitive", "loss.m1=data", "schedule.steps=6", "schedule.validate_every=6"),
        *("schedule.checkpoint_every=2", "schedule.measure_every=2"),
    ]
)


def _points(scale: float = 0.3) -> torch.Tensor:
    return scale * torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def _mean_within(x: torch.Tensor) -> float:
    """Return the mean distance within classes, by a plain loop."""
    gaps = [(x[a] - x[p]).norm().item() for a in range(7) for p in range(7) if a != p and LABELS[a] == LABELS[p]]
    return sum(gaps) / len(gaps)


@pytest.mark.parametrize(
    ("name", "margin", "given", "exponents"),
    [
        ("distance_sensitive", "m1", {}, (1, 2, 1)),
        ("distance_sensitive", "m1", {"s": 0, "r": 0, "rho": 0.5}, (0, 0, 0.5)),
        ("modified_entangle", "m", {"rho": 2}, (0, 0, 2)),
        ("entangle", "m", {}, (1, -1, 1)),
    ],
)
def test_the_first_batch_sets_the_margin_and_later_ones_do_not(
    name: str, margin: str, given: dict[str, float], exponents: tuple[float, float, float]
) -> None:
    x = _points()
    loss = losses.create(name, **given, **{margin: "data"})
    value = loss(x, LABELS)
    expected = geometry.margin_from_data(_mean_within(x), *exponents)
    assert loss.chosen_margin() == {
        "margin": pytest.approx(expected, rel=1e-12),
        "pair_distance": pytest.approx(_mean_within(x), rel=1e-12),
    }
    assert value.item() == pytest.approx(
        losses.create(name, **given, **{margin: expected})(x, LABELS).item(), rel=1e-12
    )
    loss(2 * x, LABELS)
    assert loss.margin == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("r", [-1.0, 0.0, 1.0, 2.0])
def test_a_chosen_margin_is_active_wherever_the_ranking_loss_is(r: float) -> None:
    a, p = torch.zeros(2, dtype=torch.float64), torch.tensor([0.7, 0.0], dtype=torch.float64)
    n = 2 * torch.randn(2000, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    loss = losses.create("distance_sensitive", r=r, m1=geometry.margin_from_data(0.7, 1.0, r, 1.0))
    ranking = losses.create("ranking", m=0.1)
    inside = (ranking.raw(a, p, n) > 0) | (ranking.raw(p, a, n) > 0)
    assert 0 < inside.sum() < len(n)
    assert (loss.raw(a, p, n)[inside] > 0).all()


def test_the_example_of_appendix_b() -> None:
    """s = 0, r = 0, d = 1, rho = 12/7 and a ranking margin of 0.1 give m1 = 4.6381 (Karaman 2021)."""
    assert geometry.margin_from_data(1.0, 0.0, 0.0, 12 / 7) == pytest.approx(4.6381, abs=1e-4)


@pytest.mark.parametrize("indices", ["triplets", "pairs", "reference"])
def test_mined_tuples_and_references_set_the_margin_too(indices: str) -> None:
    x, loss = _points(), losses.create("distance_sensitive", m1="data")
    if indices == "triplets":
        loss(x, LABELS, tuple(torch.tensor(column) for column in ([0, 0, 3], [1, 1, 4], [3, 4, 5])))
        expected = ((x[0] - x[1]).norm() + (x[3] - x[4]).norm()) / 2
    elif indices == "pairs":
        loss(x, LABELS, tuple(torch.tensor(column) for column in ([0], [1], [0], [3])))
        expected = (x[0] - x[1]).norm()
    else:
        loss(x[:1], LABELS[:1], None, x[1:], LABELS[1:])
        expected = ((x[0] - x[1]).norm() + (x[0] - x[2]).norm()) / 2
    assert loss.chosen_margin()["pair_distance"] == pytest.approx(expected.item(), rel=1e-12)


def test_a_batch_without_triplets_leaves_the_choice_to_the_next() -> None:
    loss = losses.create("distance_sensitive", m1="data")
    assert loss(_points(), torch.arange(7)).item() == 0
    loss(_points(), LABELS)
    assert loss.chosen_margin()["pair_distance"] == pytest.approx(_mean_within(_points()))


def test_positives_that_coincide_and_losses_without_a_derivation_are_refused() -> None:
    with pytest.raises(ValueError, match="the positives of the first batch coincide"):
        losses.create("distance_sensitive", m1="data")(torch.zeros(7, 4), LABELS)
    with pytest.raises(TypeError, match=r"ranking: m must be a number, got 'data'"):
        losses.create("ranking", m="data")
    with pytest.raises(TypeError, match=r"m1 must be a number or data, got 'median'"):
        losses.create("distance_sensitive", m1="median")
    spec = RunSpec().with_overrides(["loss.name=ranking", "loss.m=data"])
    with pytest.raises(TrainingError, match="m must be a number"):
        build.build(spec, build.load_data(spec), torch.device("cpu"))


@pytest.mark.parametrize("stops", [(1,), (3,)])
def test_a_run_keeps_its_margin_through_a_stop(stops: tuple[int, ...], tmp_path: Path) -> None:
    whole, stopped = (RunStore(tmp_path / name) for name in ("whole", "stopped"))
    run = trained(whole, SPEC)
    one, _ = same_to_the_bit(run, trained(stopped, SPEC, stops=stops))
    rows = [row for row in run.metrics()[0] if row["kind"] == "measure"]
    assert len({row["margin"] for row in rows}) == 1
    assert one.tensors["loss.metric.pair_distance"].item() == rows[0]["pair_distance"]
    loss = losses.create("distance_sensitive", **run.spec_as_trained().loss.parameters)
    assert loss.margin == rows[0]["margin"] == geometry.margin_from_data(rows[0]["pair_distance"], 1, 2, 1)
    assert run.spec.loss.parameters == {"m1": "data"}
    assert with_chosen_margin(run.spec, []).loss.parameters == {}
