import numpy as np
import pytest
import torch

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, final_analyses
from dmlcore.training.state import TrainingState
from tests.training.resumed import trained

CPU = torch.device("cpu")
BAGS = ["data.name=tokens", "model.name=tokens", "model.embedding_dim=2", "loss.name=contrastive", "batch.classes=16"]
DIGITS = ["data.name=digits_pictures", "data.split=samples", "data.validation=samples", "model.name=resnet20"]
GSP = ["pooling.name=gsp", "pooling.prototypes=8", "pooling.memory=0"]


def bench(*overrides: str) -> TrainingState:
    spec = RunSpec().with_overrides(overrides)
    return build.build(spec, build.load_data(spec), CPU)


def test_average_pooling_uses_tokens_as_often_as_they_occur() -> None:
    found = bench(*BAGS)
    measured = final_analyses.token_overlap(found.model, found.data, "validation", CPU)
    bags = found.data.inputs[found.data.splits["validation"]]
    assert measured["shared_weight"] == pytest.approx((bags >= 64).mean(), abs=1e-6)
    assert measured["active_jaccard"] == pytest.approx(4 / 12)  # 4 own and 4 shared tokens each
    assert found.model.training


def test_what_a_pooling_leaves_out_the_classes_no_longer_share() -> None:
    found = bench(*BAGS, *GSP, "pooling.mu=0.3", "pooling.epsilon=200")
    with torch.no_grad():  # shared tokens far from every prototype, own ones on them
        found.model.tokens[:64] = 0.1
        found.model.tokens[64:] = -0.3
        found.model.pool.prototypes.fill_(0.1)
    measured = final_analyses.token_overlap(found.model, found.data, "test", CPU)
    assert measured["shared_weight"] < 0.05
    assert measured["histogram_intersection"] < 0.05


def test_a_run_of_bags_ends_with_its_overlap(tmp_path) -> None:
    spec = RunSpec().with_overrides([*BAGS, "schedule.steps=2", "schedule.validate_every=1"])
    rows = trained(RunStore(tmp_path), spec).metrics()[0]
    assert [row["step"] for row in rows if row["kind"] == "validation_overlap"] == [0, 1, 2]
    (row,) = (row for row in rows if row["kind"] == "overlap")
    assert 0 < row["hull_iou"] <= 1


def test_images_with_prototypes_are_read_and_predicted_from_classes_never_fitted() -> None:
    found = bench(*DIGITS, *GSP, "model.embedding_dim=2")
    small = {split: indices[:120] for split, indices in found.data.splits.items()}
    object.__setattr__(found.data, "splits", small)
    overlap, zero_shot = final_analyses.rows(found.model, found.data, "test", CPU, step=7)
    assert (overlap["kind"], overlap["step"], overlap["bound_holds"]) == ("overlap", 7, 1.0)
    assert 0 <= overlap["histogram_intersection"] <= 1
    assert (zero_shot["splits"], zero_shot["chance"]) == (252, 0.2)
    assert abs(zero_shot["l2"] - zero_shot["l2_of_1000_draws"]) < 0.05


@pytest.mark.parametrize(("mu", "measured"), [("1", True), (None, False)])
def test_more_than_32_classes_are_measured_only_with_prototypes(mu: str | None, measured: bool) -> None:
    own = [*GSP, f"pooling.mu={mu}"] if mu else []
    found = bench("data.name=glyphs", "data.validation=classes", "model.name=conv4_32", *own)
    classes = np.unique(found.data.labels[found.data.splits["test"]])[:40]
    test = found.data.splits["test"]
    kept = np.concatenate([test[found.data.labels[test] == label][:3] for label in classes])
    object.__setattr__(found.data, "splits", found.data.splits | {"test": kept})
    rows = final_analyses.rows(found.model, found.data, "test", CPU, step=1)
    assert [row["kind"] for row in rows] == (["overlap", "zero_shot"] if measured else [])
    if measured:
        assert (rows[1]["splits"], rows[1]["chance"]) == (1000, 1 / 20)
        assert rows[1]["l2"] == rows[1]["l2_of_1000_draws"]


def test_poolings_that_are_no_mean_of_local_features_have_no_rows() -> None:
    found = bench(*DIGITS, "pooling.name=gmp")
    small = {split: np.array(indices[:40]) for split, indices in found.data.splits.items()}
    object.__setattr__(found.data, "splits", small)
    assert final_analyses.rows(found.model, found.data, "test", CPU, step=1) == []


def test_a_network_for_vectors_is_scored_on_its_training_split_too() -> None:
    found = bench("data.name=toy", "data.split=classes", "data.validation=classes")
    (row,) = final_analyses.rows(found.model, found.data, "test", CPU, step=3)
    assert (row["kind"], row["step"]) == ("train", 3)
    assert 0 < row["map_at_r"] < row["r_precision"] < row["recall_at_1"] < row["recall_at_8"] < 1
