"""The factor on the initial embedding layer; tests/models/test_linear_metrics.py has the fitted layers."""

import pytest
import torch

from dmlcore.spec import RunSpec, SpecError
from dmlcore.training import build, methods
from dmlcore.training.build import TrainingError, load_data
from dmlcore.training.methods.start_distance import StartDistance
from dmlcore.training.state import tensors

CPU = torch.device("cpu")
RAW = RunSpec().with_overrides(["model.normalize=false", "model.embedding_scale=0.01"])


@pytest.mark.parametrize("start", ["random", "pca"])
def test_the_factor_multiplies_the_first_embeddings_and_nothing_else(start: str) -> None:
    spec = RAW.with_overrides([f"model.embedding_start={start}", "model.embedding_dim=6"])
    data = load_data(spec)
    scaled = build.build(spec, data, CPU)
    plain = build.build(spec.with_overrides(["model.embedding_scale=1"]), data, CPU)
    inputs = torch.from_numpy(data.inputs[:9])
    torch.testing.assert_close(scaled.model(inputs), 0.01 * plain.model(inputs))
    one, other = tensors(scaled), tensors(plain)
    assert {name for name in one if not torch.equal(one[name], other[name])} <= {
        "model.linear.weight",
        "model.linear.bias",
    }


def test_the_reference_of_the_start_is_scaled_too() -> None:
    held = RAW.model_copy(update={"loss": RAW.loss.model_copy(update={"start_weight": 0.3})})
    state = build.build(held, load_data(held), CPU)
    assert torch.equal(methods.get(state, StartDistance).reference.linear.weight, state.model.linear.weight)


def test_an_old_spec_keeps_its_digest() -> None:
    assert RunSpec().with_overrides(["model.embedding_scale=1"]).digest() == RunSpec().digest() != RAW.digest()


def test_a_network_without_the_layer_and_a_factor_of_0_are_refused() -> None:
    spec = RunSpec().with_overrides(
        ["data.name=digits_pictures", "model.name=conv4_32", "pooling.name=gsp", "model.embedding_scale=0.1"]
    )
    with pytest.raises(TrainingError, match="embedding_scale: this network has no linear layer after its pooling"):
        build.build(spec, load_data(spec), CPU)
    with pytest.raises(SpecError, match=r"model.embedding_scale: must be more than 0"):
        RAW.with_overrides(["model.embedding_scale=0"])
    with pytest.raises(SpecError, match=r"model.embedding_scale: bags of tokens have no embedding layer"):
        RunSpec().with_overrides(["data.name=tokens", "model.name=tokens", "model.embedding_scale=0.1"])
