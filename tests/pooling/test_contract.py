"""Contract of every pooling of the catalogue; no pooling is named here."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import pytest
import torch
from torch import nn

from dmlcore import pooling
from dmlcore.catalogue import Choice, Slider
from tests.members import note_member

every = pytest.mark.parametrize("name", pooling.names())
SIZES = [(1, 1), (1, 2), (3, 1), (5, 7), (2, 2), (9, 4)]
CHANNELS = 6
DTYPES = (torch.float32, torch.float64)
# Small layers, because the cost of finite differences grows with the square of their size.
SMALL = {"prototypes": 4, "memory": 0, "hidden": 5, "width": 3, "grid": 2, "clusters": 3, "dimension": 2}


def make_pooling(name: str, channels: int = CHANNELS, seed: int = 0, **parameters) -> pooling.Pooling:
    """Return a pooling in float64 with initialised prototypes and no weight at zero, which would hide parts of the
    layer.
    """
    parameters = {**{k: v for k, v in SMALL.items() if k in pooling.describe(name).parameters}, **parameters}
    torch.default_generator.manual_seed(seed)
    layer = pooling.create(name, channels, **parameters).double()
    for parameter in layer.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.3)
    return layer


def maps(height: int, width: int, channels: int = CHANNELS, seed: int = 1, batch: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, channels, height, width, generator=generator, dtype=torch.float64)


@every
def test_any_size_gives_one_vector_and_proper_weights(name):
    for size, dtype in itertools.product(SIZES, DTYPES):
        with note_member(f"{size}, {dtype}"):
            layer, features = make_pooling(name).to(dtype), maps(*size).to(dtype)
            pooled = layer(features)
            assert pooled.shape == (3, layer.out_features)
            assert pooled.dtype == dtype
            assert pooled.isfinite().all()
            if layer.weights is not None:
                assert layer.weights.shape == (3, size[0] * size[1])
                assert not layer.weights.requires_grad
                assert (layer.weights >= 0).all()
                torch.testing.assert_close(layer.weights.sum(1), torch.ones(3, dtype=dtype))


@every
def test_the_weights_average_where_they_say_so(name):
    layer, features = make_pooling(name), maps(4, 5)
    pooled = layer(features)
    if layer.averages:
        torch.testing.assert_close(pooled, torch.einsum("bj,bcj->bc", layer.weights, features.flatten(2)))


@every
def test_values_and_gradients_stay_finite(name):
    for filled, dtype in itertools.product(("zeros", "ones", "minus", "large", "small"), DTYPES):
        with note_member(f"{filled}, {dtype}"):
            layer = make_pooling(name).to(dtype)
            features = {
                "zeros": torch.zeros(3, CHANNELS, 4, 4),
                "ones": torch.ones(3, CHANNELS, 4, 4),
                "minus": -torch.ones(3, CHANNELS, 4, 4),
                "large": 1e4 * maps(4, 4),
                "small": 1e-8 * maps(4, 4),
            }[filled].to(dtype)
            features.requires_grad_()
            pooled = layer(features)
            assert pooled.isfinite().all()
            pooled.square().sum().backward()
            assert features.grad.isfinite().all()
            assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
            if layer.weights is not None:
                totals = layer.weights.sum(1)
                assert ((totals - 1).abs() < 1e-5).logical_or(totals == 0).all()


@every
def test_autograd_equals_central_differences(name):
    layer, features = make_pooling(name), maps(2, 3, seed=4, batch=1)
    if layer.stops_gradient:
        pytest.skip("its weights are treated as constants, so its gradient differs from that of the function")
    layer.eval()  # running statistics would change with each evaluation
    values = {k: v.detach().clone().requires_grad_() for k, v in layer.named_parameters()}

    def pooled(x, *given):
        return torch.func.functional_call(layer, dict(zip(values, given, strict=True)), (x,))

    # Fast mode along directions that change all entries.
    assert torch.autograd.gradcheck(
        pooled, (features.requires_grad_(), *values.values()), atol=1e-6, rtol=1e-5, fast_mode=True
    )


@every
def test_the_order_of_positions_is_irrelevant_unless_neighbours_matter(name):
    layer, features = make_pooling(name), maps(3, 5)
    order = torch.randperm(15, generator=torch.Generator().manual_seed(0))
    moved = features.flatten(2)[..., order].unflatten(2, (5, 3))
    first, second = layer(features), copy.deepcopy(layer)(moved)
    if layer.positional:
        assert not torch.allclose(first, second, rtol=1e-6)
    else:
        torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-11)


@every
def test_samples_are_independent_in_evaluation(name):
    layer, features = make_pooling(name).eval(), maps(4, 3)
    together = layer(features)
    torch.testing.assert_close(together, torch.cat([layer(x[None]) for x in features]), rtol=1e-9, atol=1e-11)


@every
def test_training_and_evaluation_agree_unless_batch_statistics_are_used(name):
    layer, features = make_pooling(name), maps(4, 3)
    trained, evaluated = layer.train()(features), layer.eval()(features)
    assert torch.allclose(trained, evaluated) is not layer.batch_statistics
    assert torch.equal(layer(features), evaluated)  # deterministic


@every
def test_state_copies_and_pickles_give_the_same_layer(name):
    layer, features = make_pooling(name), maps(4, 3)
    layer(features)
    layer.eval()
    expected = layer(features)
    fresh = make_pooling(name, seed=5).eval()
    fresh.load_state_dict(layer.state_dict())
    for other in (fresh, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(features), expected)


@every
def test_no_graph_is_held_for_display(name):
    layer = make_pooling(name)
    layer(maps(2, 2).requires_grad_())
    held = {k for k, v in vars(layer).items() if isinstance(v, torch.Tensor) and v.requires_grad}
    assert held <= {"shares"}  # the zero-shot loss differentiates them


@every
def test_bad_input_is_named(name):
    layer = make_pooling(name)
    for shape in ((3, CHANNELS + 1, 2, 2), (3, CHANNELS, 4), (CHANNELS, 2, 2), (3, CHANNELS, 0, 2)):
        with pytest.raises(ValueError, match=rf"features must have shape \(B, {CHANNELS}, H, W\)"):
            layer(torch.zeros(shape, dtype=torch.float64))
    with pytest.raises(ValueError, match="channels must be an integer of at least 1"):
        pooling.create(name, 0)
    with pytest.raises(TypeError, match=f"{name} has no hyper-parameter no_such"):
        pooling.create(name, CHANNELS, no_such=1)


@every
def test_parameters_are_described_checked_and_used(name):
    info = pooling.describe(name)
    assert info.title
    assert info.latex
    assert any(ch.isdigit() for ch in info.source), "a source must contain a year"
    assert info.source in info.layer.__doc__
    assert set(info.parameters) == set(info.defaults)
    for key, parameter in info.parameters.items():
        assert parameter.help
        parameter.check(key, info.defaults[key])
        with pytest.raises(ValueError, match=f"{name}: {key}"):
            pooling.create(name, CHANNELS, **{key: "none" if isinstance(parameter, Choice) else math.nan})
        if isinstance(info.defaults[key], int):
            with pytest.raises(ValueError, match=f"{name}: {key} must be a whole number"):
                pooling.create(name, CHANNELS, **{key: info.defaults[key] + 0.5})
        if isinstance(parameter, Slider):
            kept = {"memory": 0} if key == "prototypes" else {"prototypes": 4} if key == "memory" else {}
            # range of a slider
            ends = [make_pooling(name, **{key: float(end), **kept}) for end in (parameter.low, parameter.high)]
            low, high = (layer(maps(3, 3)) for layer in ends)
            assert low.isfinite().all()
            assert high.isfinite().all()
            # the initial delay of the memory is bounded at the start only
            held = [layer.state_dict() for layer in ends]
            pairs = zip(*(h.values() for h in held), strict=True)
            same = all(torch.equal(x, y) for x, y in pairs if x.shape == y.shape)
            assert not (torch.equal(low, high) and same), f"{key} has no effect"


@every
def test_a_head_gives_embeddings_and_their_local_features(name):
    torch.default_generator.manual_seed(0)
    plain = {"memory": 0} if "memory" in pooling.describe(name).parameters else {}
    head, features = pooling.EmbeddingHead(name, CHANNELS, 5, **plain).double(), maps(3, 4)
    embeddings = head(features)
    assert embeddings.shape == (3, 5)
    assert (head.projection is None) is not head.pooling.projects_first
    assert (head.linear is None) is head.pooling.projects_first
    assert head.projection is None or head.projection.bias is None
    assert head.linear is None or not head.linear.bias.any()
    local = head.local(features)
    assert (local is None) is not (head.pooling.averages or head.pooling.projects_first)
    if local is not None:
        assert local.shape == (3, 12, 5)
    if head.pooling.averages:
        torch.testing.assert_close(torch.einsum("bj,bjd->bd", head.pooling.weights, local), embeddings)
    embeddings.sum().backward()
    (layer,) = (x for x in (head.projection, head.linear) if x is not None)
    assert layer.weight.grad.any()


def test_an_unknown_pooling_lists_the_known_ones():
    for make in (lambda: pooling.create("no_such", 3), lambda: pooling.EmbeddingHead("no_such", 3, 4)):
        with pytest.raises(KeyError, match="unknown pooling 'no_such'; known: gap, gmp"):
            make()
    with pytest.raises(ValueError, match="embedding_dim must be an integer"):
        pooling.EmbeddingHead("gap", 3, 0)
