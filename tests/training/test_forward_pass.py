"""Ways to launch the network; tests/devices/test_forward_pass.py captures real graphs on a GPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dmlcore.models import networks
from dmlcore.spec import ModelSpec, RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from dmlcore.training import forward_pass, loop
from dmlcore.training.forward_pass import Graphs

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
IMAGES = torch.zeros(4, 3, 28, 28)


def network() -> networks.ImageNetwork:
    return networks.build(ModelSpec(name="conv4_32", embedding_dim=8), (3, 28, 28), seed=0)  # type: ignore[return-value]


def chosen(device: torch.device, *overrides: str) -> str:
    return forward_pass.choose(RunSpec().with_overrides(["model.name=conv4_32", *overrides]), network(), device)


def test_graphs_are_for_plain_networks_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert chosen(CPU) == chosen(CPU, "compute.graphs=true") == "eager"
    graphs = ("compute.graphs=true", "compute.precision=bfloat16")
    assert chosen(CUDA, *graphs) == "graphs"
    assert chosen(CUDA) == chosen(CUDA, graphs[0]) == chosen(CUDA, *graphs, "pooling.name=gsp") == "eager"
    assert chosen(CPU, "compute.compile=true") == "compiled"


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """Replace the capture by a function that trains batch norm, as a capture does; return the shapes captured."""
    shapes: list[torch.Size] = []

    def capture(module: nn.Module, inputs: Tensor) -> Callable[[Tensor], Tensor]:
        shapes.append(inputs.shape)
        if len(inputs) == 3:
            raise RuntimeError("operation not permitted when stream is capturing")
        module(inputs)
        return module

    monkeypatch.setattr(forward_pass, "_Captured", capture)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: None)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    return shapes


def test_graphs_are_captured_once_per_shape_and_set_of_trained_parameters(captures: list[torch.Size]) -> None:
    model, plain = network().train(), network().train()
    graphs = Graphs(model)
    for inputs in (IMAGES, IMAGES + 1):
        assert torch.equal(graphs(inputs), plain(inputs))
    assert len(captures) == 1
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), plain.buffers(), strict=True))
    next(model.parameters()).requires_grad_(False)
    graphs(IMAGES)
    graphs(IMAGES[:2])
    assert captures == [torch.Size((count, 3, 28, 28)) for count in (4, 4, 2)]
    with torch.no_grad():
        graphs(IMAGES)
    model.eval()
    graphs(IMAGES)
    assert len(captures) == 3


def test_a_refused_capture_launches_kernels_one_by_one(
    captures: list[torch.Size], caplog: pytest.LogCaptureFixture
) -> None:
    model, plain = network().train(), network().train()
    graphs = Graphs(model)
    for _ in range(2):
        assert torch.equal(graphs(IMAGES[:3]), plain(IMAGES[:3]))
    assert len(captures) == 1
    assert "not permitted when stream is capturing" in caplog.text


def test_a_resumed_run_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    monkeypatch.setattr(forward_pass, "create", lambda spec, model, mode: modes.append(mode) or model)
    run = RunStore(tmp_path).create(RunSpec().with_overrides(["schedule.steps=2", "model.hidden=[8]"]))
    for choice in ("graphs", "eager"):
        monkeypatch.setattr(forward_pass, "choose", lambda *_, choice=choice: choice)
        with run.lock():
            run.update(state="queued")
            loop.train(run, stop=lambda choice=choice: choice == "graphs")
    assert modes == ["graphs", "graphs"]
    saved = checkpoint.load(run.path)
    assert (saved.facts["step"], saved.facts["mode"]) == (2, "graphs")
