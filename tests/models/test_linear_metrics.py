"""Linear methods as a layer: each is compared with its definition on features with a known answer."""

import numpy as np
import pytest
import torch

from dmlcore.data import Dataset
from dmlcore.metrics import retrieval
from dmlcore.models import linear_metrics, whitening
from dmlcore.spec import RunSpec
from dmlcore.training import build, loop, methods
from dmlcore.training.batches import embed
from dmlcore.training.build import TrainingError, load_data
from dmlcore.training.methods.start_distance import StartDistance
from tests.members import in_one_case

CPU = torch.device("cpu")


def confused(seed: int = 0, count: int = 240, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return six classes that differ along the first axis only, with four axes of a hundred times its variance."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 6
    features = random.normal(size=(count, 5)) * 10
    features[:, 0] = labels + noise * random.normal(size=count)
    return features.astype(np.float32), labels


def layer(method: str, features: np.ndarray, labels: np.ndarray, dimension: int) -> np.ndarray:
    weight, bias = linear_metrics.fit(method, features, labels, dimension)
    assert weight.shape == (dimension, features.shape[1])
    embedded = features @ weight.T + bias
    np.testing.assert_allclose(embedded.mean(0), 0, atol=1e-4)
    return embedded


def test_all_principal_components_keep_every_distance() -> None:
    features, labels = confused()
    embedded = layer("pca", features, labels, 5)
    before, after = (np.linalg.norm(x[:, None] - x[None], axis=2) for x in (features, embedded))
    np.testing.assert_allclose(after, before, atol=1e-3)
    variances = layer("pca", features, labels, 2).var(0)
    assert variances == pytest.approx(np.sort(np.linalg.eigvalsh(np.cov(features.T, ddof=0)))[::-1][:2], rel=1e-4)


@pytest.mark.parametrize(("method", "least"), [("lda", 0.95), ("nca", 0.8)])
def test_supervised_methods_find_the_axis_that_tells_classes_apart(method: str, least: float) -> None:
    features, labels = confused()
    weight, bias = linear_metrics.fit(method, features, labels, 2)
    other, of_other = confused(seed=1)  # different samples from those it was fitted to
    raw, fitted = (retrieval(x.astype(np.float32), of_other).recall_at[1] for x in (other, other @ weight.T + bias))
    assert raw < 0.4
    assert fitted > least


def test_whitening_start_keeps_the_cosines_of_the_whitened_features_as_far_as_its_dimensions_do() -> None:
    features, labels = confused()
    differences = features - whitening.class_means(features.astype(np.float64), labels)
    whitened = (features - features.mean(0)) @ whitening.inverse_root(differences)
    embedded = layer("whitening", features, labels, 5)
    np.testing.assert_allclose(embedded @ embedded.T, whitened @ whitened.T, atol=1e-3)
    largest = np.sort(np.linalg.eigvalsh(np.cov(whitened.T, ddof=0)))[::-1][:2]
    assert layer("whitening", features, labels, 2).var(0) == pytest.approx(largest, rel=1e-4)


def test_whitening_keeps_directions_that_few_samples_do_not_span() -> None:
    features, labels = confused(count=12)
    wide = np.concatenate([features, np.zeros((12, 20), np.float32)], axis=1)
    weight, _ = linear_metrics.fit("whitening", wide, labels, 25)
    assert np.linalg.matrix_rank(weight) == 25


def test_neighbourhood_components_raise_their_objective() -> None:
    """The objective is the expected number of samples that choose a neighbour of their class (Eq. 3)."""
    features, labels = confused(count=60, noise=0.4)

    def objective(embedded: np.ndarray) -> float:
        squares = np.square(embedded[:, None] - embedded[None]).sum(2)
        np.fill_diagonal(squares, np.inf)
        chosen = np.exp(-(squares - squares.min(1, keepdims=True)))
        chosen /= chosen.sum(1, keepdims=True)
        return float((chosen * (labels[:, None] == labels[None])).sum())

    fitted, discriminants, principal = (
        objective(layer(method, features, labels, 2)) for method in ("nca", "lda", "pca")
    )
    assert fitted > discriminants + 1
    assert discriminants > principal + 10


def test_what_a_method_lacks_is_left_zero_and_what_it_cannot_do_is_said() -> None:
    features, labels = confused()
    weight = linear_metrics.fit("lda", features, labels, 8)[0]
    assert np.linalg.matrix_rank(weight) == 5
    assert not weight[5:].any()
    with pytest.raises(ValueError, match="unknown linear method 'itml'"):
        linear_metrics.fit("itml", features, labels, 2)
    with pytest.raises(ValueError, match="two classes"):
        linear_metrics.fit("lda", features, np.zeros_like(labels), 2)


@in_one_case(method=linear_metrics.METHODS)
def test_a_run_starts_from_a_method_fitted_to_its_training_split(method: str) -> None:
    spec = RunSpec().with_overrides(
        [
            *(f"model.embedding_start={method}", "model.hidden=[]", "model.normalize=false", "model.embedding_dim=6"),
            *("loss.name=tuplet", "optimiser.learning_rate=0.1"),  # always a gradient
        ]
    )
    data: Dataset = load_data(spec)
    rows = data.splits["train"][::8]
    data = Dataset(**{**vars(data), "splits": {**data.splits, "train": rows}})
    state = build.build(spec, data, CPU)
    features = state.model.normalise(torch.from_numpy(data.inputs[rows])).numpy()
    weight, bias = linear_metrics.fit(
        method, features, data.labels[rows], 6, seed=build.seed_of(0, "embedding start") % 2**32
    )
    expected = features @ weight.T + bias
    np.testing.assert_allclose(embed(state.model, data, rows, CPU), expected, rtol=1e-3, atol=1e-3)
    resumed = build.build(spec, data, CPU, start=False)
    assert not torch.equal(resumed.model.linear.weight, state.model.linear.weight)
    loop.step(state, 1)
    assert not np.allclose(embed(state.model, data, rows, CPU), expected, rtol=1e-3, atol=1e-3)


def test_the_start_that_embeddings_are_held_to_is_the_fitted_one() -> None:
    spec = RunSpec().with_overrides(["model.embedding_start=pca", "model.embedding_dim=6"])
    held = spec.model_copy(update={"loss": spec.loss.model_copy(update={"start_weight": 0.3})})
    state = build.build(held, load_data(spec), CPU)
    assert torch.equal(methods.get(state, StartDistance).reference.linear.weight, state.model.linear.weight)
    with pytest.raises(LookupError, match="StartDistance is not active"):
        methods.get(build.build(spec, state.data, CPU), StartDistance)


def test_a_network_without_such_a_layer_is_refused() -> None:
    spec = RunSpec().with_overrides(
        ["data.name=digits_pictures", "model.name=conv4_32", "pooling.name=gsp", "model.embedding_start=pca"]
    )
    with pytest.raises(TrainingError, match="no linear layer after its pooling"):
        build.build(spec, load_data(spec), CPU)


def test_discriminants_are_not_led_astray_by_as_many_directions_as_samples() -> None:
    """Deep features of a few images: most directions contain almost no variance, and shrinkage must suppress them."""
    random = np.random.default_rng(0)
    # many nuisance directions, and little variance between classes
    scales = np.array([5.0] * 5 + [0.5] * 10 + [0.01] * 65)
    means = random.normal(size=(20, 80)) * (np.arange(80) // 5 % 16 < 3) * (np.arange(80) > 4)
    turn = np.linalg.qr(random.normal(size=(80, 80)))[0]
    features = [(means[k] + random.normal(size=(6, 80)) * scales) @ turn for k in range(20)]
    train = np.concatenate(features[:14]).astype(np.float32)
    test, of_test = np.concatenate(features[14:]).astype(np.float32), np.repeat(np.arange(6), 6)
    weight, bias = linear_metrics.fit("lda", train, np.repeat(np.arange(14), 6), 10)
    raw, fitted = (retrieval(x.astype(np.float32), of_test).map_at_r for x in (test, test @ weight.T + bias))
    assert fitted > 2 * raw
