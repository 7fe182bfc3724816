import pytest
import torch
from torch import nn

from dmlcore import losses, mining, pooling
from dmlcore.losses.threshold_consistency import ThresholdConsistentMargin
from dmlcore.spec import RunSpec, SpecError
from dmlcore.training import build, objective
from dmlcore.training.build import TrainingError
from dmlcore.training.objective import Objective
from tests.members import in_one_case

EMBEDDINGS = torch.nn.functional.normalize(torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
LABELS = torch.arange(16) // 4
CPU = torch.device("cpu")


def created(*overrides: str) -> Objective:
    return objective.create(RunSpec().with_overrides(overrides), 4, nn.Module())


def test_the_loss_sees_what_the_miner_leaves() -> None:
    mined, everything = created("miner.name=semi_hard"), created()
    chosen = mining.create("semi_hard")(EMBEDDINGS, LABELS)
    assert 0 < len(chosen[0]) < 16 * 3 * 12
    assert mined(EMBEDDINGS, LABELS) == everything.metric(EMBEDDINGS, LABELS, chosen)
    assert mined(EMBEDDINGS, LABELS) != everything(EMBEDDINGS, LABELS)


def test_tuples_of_the_sampler_come_before_those_of_the_miner() -> None:
    made = created("miner.name=semi_hard")
    tuples = tuple(torch.tensor([i]) for i in (0, 1, 5))
    assert made(EMBEDDINGS, LABELS, tuples=tuples) == made.metric(EMBEDDINGS, LABELS, tuples)
    assert made.metric.counts.valid == 1


def test_a_memory_joins_the_loss_of_pairs() -> None:
    made = created("loss.name=contrastive", "loss.memory=2", "loss.memory_start=0", "batch.classes=4",
                   "batch.samples=4", "model.embedding_dim=4")  # fmt: skip
    bare = created("loss.name=contrastive")(EMBEDDINGS, LABELS)
    values = [made(EMBEDDINGS, LABELS).item() for _ in range(4)]
    assert values[:2] == [bare.item()] * 2
    assert all(value > bare.item() for value in values[2:])
    assert {"metric.embeddings", "metric.labels", "metric.steps"} <= made.state_dict().keys()


@in_one_case(name=[name for name in losses.LOSSES if not objective.joins_learners(name)])
def test_the_threshold_consistent_margin_is_added_to_any_loss(name: str) -> None:
    sizes = (f"loss.name={name}", "model.embedding_dim=4")
    bare = created(*sizes)
    both = created(*sizes, "loss.tcm=0.3", "loss.tcm_m_pos=0.8", "loss.tcm_m_neg=0.1")
    both.load_state_dict(bare.state_dict())  # the term learns nothing
    x, expected = EMBEDDINGS.clone().requires_grad_(), EMBEDDINGS.clone().requires_grad_()
    value = both(x, LABELS)
    term = ThresholdConsistentMargin(0.8, 0.1)(expected, LABELS)
    total = bare(expected, LABELS) + 0.3 * term
    assert term > 0
    assert torch.equal(value, total)
    torch.testing.assert_close(torch.autograd.grad(value, x), torch.autograd.grad(total, expected))
    assert both.measured()["tcm"] == term
    assert bare.measured() == {key: number for key, number in both.measured().items() if key != "tcm"}


def test_the_threshold_consistent_margin_sees_all_pairs_whatever_is_mined() -> None:
    plain, mined = (created("loss.tcm=1", f"miner.name={miner}") for miner in ("all", "semi_hard"))
    assert plain(EMBEDDINGS, LABELS) != mined(EMBEDDINGS, LABELS)
    assert plain.measured()["tcm"] == mined.measured()["tcm"]


def test_the_threshold_consistent_margin_is_added_after_zero_shot_prediction() -> None:
    shares = torch.randn(16, 4, generator=torch.Generator().manual_seed(1)).softmax(1).requires_grad_()
    predict, term = pooling.ZeroShotPrediction(4, 4), ThresholdConsistentMargin()
    bare = Objective(losses.create("ranking"), predict, 0.2)
    both = Objective(losses.create("ranking"), predict, 0.2, tcm=term, tcm_weight=0.5)
    expected = bare(EMBEDDINGS, LABELS, shares) + 0.5 * term(EMBEDDINGS, LABELS)
    assert torch.equal(both(EMBEDDINGS, LABELS, shares), expected)
    assert both.measured().keys() == {*bare.measured(), "tcm"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["loss.name=wedl", "loss.tcm=0.1"], "loss.tcm: wedl combines the embeddings of several learners"),
        (["loss.tcm=-1"], "loss.tcm: must be at least 0.0, got -1"),
        (["loss.tcm_m_pos=1.2"], "loss.tcm_m_pos: must be at most 1.0, got 1.2"),
        (["miner.name=semi_hard", "loss.name=proxy_nca"], "miner: semi_hard chooses tuples of samples"),
        (["loss.name=proxy_nca", "loss.memory=2"], "loss.memory: a memory needs a loss of pairs"),
        (["model.name=resnet19"], r"model.name: unknown network 'resnet19'"),
        (["pooling.name=gsop", "pooling.width=1000000"], "pooling: gsop: width must be 4,096 at most, got 1e\\+06"),
        (["pooling.name=netvlad", "pooling.clusters=9999"], "clusters must be 4,096 at most, got 9999"),
        (["loss.name=soft_triple", "loss.centres=1e6"], "centres must be 65,536 at most, got 1e\\+06"),
    ],
)
def test_what_cannot_be_made_is_refused_before_a_run_exists(overrides: list[str], message: str) -> None:
    with pytest.raises((TrainingError, SpecError), match=message):
        build.refuse_unusable(RunSpec().with_overrides(overrides))


def test_whether_it_can_be_made_is_asked_without_making_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(self: nn.Module, *_: object) -> None:
        raise AssertionError(f"{type(self).__name__} was built")

    monkeypatch.setattr(nn.Module, "__init__", made)
    for name in losses.LOSSES:
        build.refuse_unusable(RunSpec().with_overrides([f"loss.name={name}"]))
    for name in pooling.names():
        build.refuse_unusable(RunSpec().with_overrides([f"pooling.name={name}"]))
    build.refuse_unusable(RunSpec().with_overrides(["loss.name=contrastive", "loss.memory=9", "miner.name=hard"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["loss.name=nonsense"], "loss: unknown loss 'nonsense'"),
        (["loss.nonsense=1"], "loss: ranking has no hyper-parameter nonsense; it has: m, m2"),
        (["loss.m=abc"], "loss: ranking: m must be a number, got 'abc'"),
        (["loss.m2=0"], "loss: ranking: m2 must be greater than 0, got 0"),
        (["miner.name=nonsense"], "miner: unknown miner 'nonsense'"),
        (["miner.name=semi_hard", "miner.nonsense=1"], "miner: semi_hard has no hyper-parameter nonsense"),
        (["pooling.name=gem", "pooling.p=abc"], "pooling: gem: p must be a number, got 'abc'"),
        (["loss.m=abc", "pooling.name=nonsense"], "loss: ranking: m must be a number, got 'abc'\npooling: unknown"),
    ],
)
def test_what_no_catalogue_has_is_refused_before_anything_is_built(changes, message):
    with pytest.raises(SpecError) as refusal:
        objective.refuse_unknown(RunSpec().with_overrides(changes))
    assert str(refusal.value).startswith(message)
