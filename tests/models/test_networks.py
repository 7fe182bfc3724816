import copy

import pytest
import torch

from dmlcore.models import networks
from dmlcore.models.networks import ImageNetwork, ModelError, TokenNetwork
from dmlcore.spec import ModelSpec, PoolingSpec

RESNET, MLP = ModelSpec(name="resnet20", embedding_dim=10, normalize=False), ModelSpec(hidden=(32, 16), embedding_dim=5)


@pytest.mark.parametrize("side", [32, 33, 64])
def test_resnet20_takes_images_from_32_up(side: int) -> None:
    model = networks.build(RESNET, (3, side, side), seed=0)
    assert model(torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)).shape == (2, 10)


@pytest.mark.parametrize(("spec", "shape"), [(RESNET, (3, 32, 32)), (MLP, (64,))])
def test_initialisation_is_a_function_of_the_seed(spec: ModelSpec, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    first = networks.build(spec, shape, seed=5).state_dict()
    state = torch.random.get_rng_state()
    torch.manual_seed(2)
    second = networks.build(spec, shape, seed=5).state_dict()
    other = networks.build(spec, shape, seed=6).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
    torch.manual_seed(1)
    assert torch.equal(torch.random.get_rng_state(), state)  # the global generator is unchanged


def test_embedding_layer_has_he_initialisation() -> None:
    model = networks.build(ModelSpec(hidden=(400,), embedding_dim=300), (64,), seed=0)
    weight = model.state_dict()["linear.weight"]
    assert weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert not model.state_dict()["linear.bias"].any()


def test_normalised_embeddings_lie_on_the_sphere() -> None:
    x = torch.randn(7, 64)
    assert torch.allclose(networks.build(MLP, (64,), seed=0)(x).norm(dim=1), torch.ones(7))
    free = networks.build(ModelSpec(normalize=False), (64,), seed=0)(x)
    assert free.norm(dim=1).std() > 0.01


def test_raw_inputs_are_normalised_inside() -> None:
    grey = torch.full((1, 3, 32, 32), 128, dtype=torch.uint8)
    model = networks.build(RESNET, (3, 32, 32), seed=0)
    assert isinstance(model, ImageNetwork)
    expected = (128 / 255 - torch.tensor(networks.IMAGE_MEAN)) / torch.tensor(networks.IMAGE_STD)
    assert torch.allclose(model.normalise(grey)[0, :, 4, 7], expected)
    x = torch.randn(4, 64) * 3 + 2
    shifted = networks.build(MLP, (64,), seed=0, mean=2.0, std=3.0)(x)
    assert torch.allclose(shifted, networks.build(MLP, (64,), seed=0)((x - 2) / 3), atol=1e-6)


def test_an_mlp_without_hidden_layers_is_linear() -> None:
    model = networks.build(ModelSpec(hidden=(), embedding_dim=3, normalize=False), (4,), seed=0)
    x, y = torch.randn(2, 4), torch.randn(2, 4)
    assert torch.allclose(model(x) + model(y), model(x + y), atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "shape", "message"),
    [(MLP, (3, 32, 32), "resnet20"), (RESNET, (64,), "model.name=mlp"), (RESNET, (3, 8, 8), "at least 16 x 16")],
)
def test_a_network_that_does_not_fit_is_refused(spec: ModelSpec, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        networks.build(spec, shape, seed=0)


@pytest.mark.parametrize("name", ["gap", "gsp", "netvlad"])
def test_pooling_comes_by_name(name: str) -> None:
    model = networks.build(RESNET, (3, 32, 32), seed=0, pool=PoolingSpec(name=name))
    assert model(torch.randint(0, 256, (2, 3, 40, 32), dtype=torch.uint8)).shape == (2, 10)


def test_gap_commutes_with_its_projection() -> None:
    model = networks.build(RESNET, (3, 32, 32), seed=0).eval()
    images = torch.randint(0, 256, (3, 3, 32, 48), dtype=torch.uint8)
    local = model.head.local(model.features(images))
    assert torch.allclose(local.mean(1), model(images), atol=1e-5)


def test_bags_are_averages_of_token_vectors_that_stay_in_bounds() -> None:
    spec = ModelSpec(name="tokens", embedding_dim=2, normalize=False)
    model = networks.build(spec, (3,), seed=0, vocabulary=5)
    assert isinstance(model, TokenNetwork)
    ids = torch.tensor([[0, 1, 1], [4, 4, 4]])
    assert torch.allclose(model(ids)[0], (model.tokens[0] + 2 * model.tokens[1]) / 3)
    assert torch.allclose(model(ids)[1], model.tokens[4])
    with torch.no_grad():
        model.tokens.add_(1.0)
    model.after_step()
    assert model.tokens.max().item() == pytest.approx(networks.TOKEN_BOUND)


@pytest.mark.parametrize(
    ("spec", "shape", "pool", "message"),
    [
        (RESNET, (3, 32, 32), PoolingSpec(name="no_such"), "pooling: unknown pooling 'no_such'"),
        (RESNET, (3, 32, 32), PoolingSpec(name="gsp", parameters={"nu": 1.0}), "pooling: .*nu"),
        (ModelSpec(name="tokens"), (50,), PoolingSpec(), "tokens needs bags of tokens"),
    ],
)
def test_a_bad_pooling_is_refused_by_name(
    spec: ModelSpec, shape: tuple[int, ...], pool: PoolingSpec, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        networks.build(spec, shape, seed=0, pool=pool)


def test_floating_images_are_in_0_to_255_too() -> None:
    model = networks.build(RESNET, (3, 32, 32), seed=0).eval()
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    assert torch.equal(model(images), model(images.float()))


def test_each_backbone_gets_the_channels_and_the_range_of_its_weights() -> None:
    red = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    red[:, 0] = 255
    inputs = networks.build(ModelSpec(name="bn_inception"), (3, 32, 32), seed=0).normalise(red)[0, :, 0, 0]
    assert inputs.tolist() == [-104.0, -117.0, 127.0]  # blue, green, red: red is the last
    inputs = networks.build(ModelSpec(name="googlenet"), (3, 32, 32), seed=0).normalise(red)[0, :, 0, 0]
    assert inputs.tolist() == [1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("spec", "shape", "vocabulary", "heads"),
    [
        (RESNET, (3, 32, 32), 0, {"head.linear.weight", "head.linear.bias"}),
        (MLP, (64,), 0, {"linear.weight", "linear.bias"}),
        (ModelSpec(name="tokens", embedding_dim=2), (3,), 5, set()),
    ],
)
def test_head_parameters_are_those_of_the_last_layers_once(spec, shape, vocabulary, heads) -> None:
    model = networks.build(spec, shape, seed=0, vocabulary=vocabulary)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    head = [names[id(p)] for p in model.head_parameters()]
    assert sorted(head) == sorted(heads)


def test_prototypes_and_projection_of_a_pooling_are_new() -> None:
    model = networks.build(RESNET, (3, 32, 32), seed=0, pool=PoolingSpec(name="gsp"))
    head = {id(p) for p in model.head_parameters()}
    assert {name for name, p in model.named_parameters() if id(p) in head} == {
        "head.projection.weight",
        "head.pooling.prototypes",
    }


def test_frozen_batch_norm_survives_training_mode_and_a_step() -> None:
    spec = RESNET.model_copy(update={"freeze_batch_norm": True})
    model = networks.build(spec, (3, 32, 32), seed=0, pool=PoolingSpec(name="solar")).train()
    norms = {name for name in model.state_dict() if "bn" in name}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    model(torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)).pow(3).sum().backward()
    optimiser.step()
    after = model.state_dict()
    assert norms
    assert all(torch.equal(before[name], after[name]) for name in norms)
    assert not torch.equal(before["backbone.conv1.weight"], after["backbone.conv1.weight"])
    # Batch norm in the head is new: it is trained.
    trained = {name for name in after if name.startswith("head.") and "running_mean" in name}
    assert trained
    assert not any(torch.equal(before[name], after[name]) for name in trained)


def test_batch_norm_can_be_frozen_later() -> None:
    model = networks.build(RESNET, (3, 32, 32), seed=0)
    assert any(layer.training for layer in model.batch_norms())
    model.freeze_batch_norm()
    assert not any(layer.training for layer in model.train().batch_norms())
    assert model.head.training


def test_a_kept_classifier_stands_between_pooling_and_embedding() -> None:
    spec = RESNET.model_copy(update={"keep_classifier": True})
    model = networks.build(spec, (3, 32, 32), seed=0).eval()
    images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    state = model.state_dict()
    assert state["backbone.linear.weight"].shape == (10, 64)  # ten classes of CIFAR-10
    assert state["head.linear.weight"].shape == (10, 10)
    logits = model.features(images).mean((2, 3)) @ state["backbone.linear.weight"].T + state["backbone.linear.bias"]
    expected = logits @ state["head.linear.weight"].T + state["head.linear.bias"]
    torch.testing.assert_close(model(images), expected)
    torch.testing.assert_close(model.head.local(model.features(images)).mean(1), expected)
    assert {id(p) for p in model.head_parameters()} == {id(p) for p in model.head.linear.parameters()}
    twin = copy.deepcopy(model)
    torch.nn.init.zeros_(twin.backbone.linear.weight)
    assert not torch.equal(twin(images), model(images))  # the copy's head uses the copy's classifier


def test_imagenet_has_a_thousand_classes() -> None:
    spec = ModelSpec(name="resnet18", embedding_dim=128, keep_classifier=True)
    state = networks.build(spec, (3, 32, 32), seed=0).state_dict()
    assert state["backbone.fc.weight"].shape == (1000, 512)
    assert state["head.linear.weight"].shape == (128, 1000)
    assert state["head.linear.weight"].std().item() == pytest.approx((2 / 1000) ** 0.5, rel=0.02)  # He


def test_a_pooling_that_ends_elsewhere_cannot_keep_the_classifier() -> None:
    spec = RESNET.model_copy(update={"keep_classifier": True})
    with pytest.raises(ModelError, match=r"gsp does not return the 64 values .* model.keep_classifier=false"):
        networks.build(spec, (3, 32, 32), seed=0, pool=PoolingSpec(name="gsp"))


def test_an_unknown_backbone_is_refused() -> None:
    with pytest.raises(ModelError, match=r"model\.name: unknown backbone 'vgg'; known: resnet20, conv4, .*timm:NAME"):
        networks.build(ModelSpec(name="vgg"), (3, 32, 32), seed=0)


@pytest.mark.parametrize("name", ["conv4", "resnet20"])
def test_grey_images_are_colours_of_equal_parts(name: str) -> None:
    spec = ModelSpec(name=name, embedding_dim=8)
    grey = torch.randint(0, 256, (2, 1, 28, 28), dtype=torch.uint8)
    one, three = networks.build(spec, (1, 28, 28), seed=0).eval(), networks.build(spec, (3, 28, 28), seed=0).eval()
    with torch.no_grad():
        torch.testing.assert_close(one(grey), three(grey.expand(-1, 3, -1, -1)))
