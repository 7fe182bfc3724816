"""The simulated device rejects what CUDA rejects, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.devices.pretended import CUDA, REAL, pretended
from tests.members import note_member

HERE = torch.arange(12.0).view(3, 4)  # on the CPU
ROWS = torch.tensor([2, 0])
MIXTURE, NUMPY, DRAW = (
    ("", "", "")
    if REAL
    else ("at least two devices", "can't convert cuda:0", "Expected a 'cuda' device type for generator")
)


def of_both(there: Tensor) -> dict[str, tuple[Callable[[], object], str]]:
    """Return operations that CUDA rejects; `there` is a tensor (3, 4) on the device."""
    draw = torch.Generator()
    return {
        "a sum": (lambda: there + HERE, MIXTURE),
        "a number of the device with a CPU tensor": (lambda: HERE + there.sum(), MIXTURE),
        "a product": (lambda: there @ HERE.T, MIXTURE),
        "a product with a number": (lambda: torch.dot(there.flatten(), HERE.sum().expand(12)), MIXTURE),
        "a sum in place": (lambda: HERE.clone().add_(there), MIXTURE),
        "cat": (lambda: torch.cat([there, HERE]), MIXTURE),
        "stack of numbers": (lambda: torch.stack([there.sum(), HERE.sum()]), MIXTURE),
        "where": (lambda: torch.where(there > 1, HERE, there), MIXTURE),
        "gather": (lambda: there.gather(0, torch.zeros(1, 4, dtype=torch.int64)), MIXTURE),
        "index_select": (lambda: there.index_select(0, ROWS), MIXTURE),
        "scatter_add": (lambda: HERE.clone().scatter_add_(0, torch.zeros(3, 4).long().to(CUDA), HERE), MIXTURE),
        "searchsorted": (lambda: torch.searchsorted(there, HERE), MIXTURE),
        "a CPU tensor at indices of the device": (lambda: HERE[ROWS.to(CUDA)], MIXTURE),
        "values from the CPU at indices": (lambda: there.clone().index_put_((ROWS,), HERE[ROWS]), MIXTURE),
        "a layer on the CPU": (lambda: nn.Linear(4, 2)(there), MIXTURE),
        "an embedding of CPU ids": (lambda: nn.Embedding(3, 2).to(CUDA)(ROWS), MIXTURE),
        "cross entropy with CPU labels": (lambda: nn.functional.cross_entropy(there, torch.tensor([0, 1, 2])), MIXTURE),
        "a gradient that meets the other side": (lambda: _meets(there).sum().backward(), MIXTURE),
        "an optimiser with moments on the CPU": (lambda: _misplaced_moments().step(), MIXTURE),
        "numpy": (there.numpy, NUMPY),
        "asarray": (lambda: np.asarray(there), NUMPY),
        "numpy of a view": (lambda: there[0, 1:].detach().numpy(), NUMPY),
        "a list for NumPy": (lambda: np.stack([there[0]]), NUMPY),
        "a draw by a generator of the CPU": (lambda: torch.rand(3, device=CUDA, generator=draw), DRAW),
        "a draw in place": (lambda: there.clone().uniform_(generator=draw), DRAW),
        "pinning": (there.pin_memory, "cannot pin"),
    }


class _Mixed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.ones(grad.shape)  # forgets `device=`, a common mistake


def _meets(there: Tensor) -> Tensor:
    return _Mixed.apply(there.clone().requires_grad_())


def _misplaced_moments() -> torch.optim.Optimizer:
    weight = nn.Parameter(torch.ones(3, device=CUDA))
    weight.grad = torch.ones_like(weight)
    optimiser = torch.optim.Adam([weight])
    optimiser.step()
    optimiser.state[weight]["exp_avg"] = torch.zeros(3)
    return optimiser


def test_what_cuda_refuses_is_refused() -> None:
    with pretended():
        for name, (call, message) in of_both(HERE.to("cuda")).items():
            with note_member(name), pytest.raises((RuntimeError, TypeError), match=message):
                call()


def test_what_cuda_allows_gives_what_the_cpu_gives() -> None:
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "a number of the CPU": lambda x: x * torch.tensor(2.0) + 1,
        "where of numbers": lambda x: torch.where(x > 3, torch.tensor(1.0), x),
        "filled by a number": lambda x: x.masked_fill(x > 3, torch.tensor(0.5)),
        "CPU indices": lambda x: x[ROWS],
        "CPU mask": lambda x: x[torch.tensor([True, False, True])],
        "set at CPU indices": lambda x: x.clone().index_put_((ROWS,), torch.tensor(7.0)),
        "set from the CPU": lambda x: _set(x.clone()),
        "copied from the CPU": lambda x: x.clone().copy_(HERE),
        "like it": lambda x: torch.zeros_like(x) + x.new_ones(4) + torch.eye(3, 4, device=x.device),
        "numbers": lambda x: torch.tensor([1.0, 2.0, 3.0, float(x[0, 1])], device=x.device) * x,
        "of NumPy": lambda x: torch.as_tensor(np.ones(4), device=x.device) * x,
        "one-hot and diagonals": lambda x: nn.functional.one_hot(x[0].long(), 4).float() + torch.diag_embed(x[0]),
        "cdist": lambda x: torch.cdist(x, x),
        "norms": lambda x: nn.functional.normalize(x).std(0),
    }
    with pretended() as record:
        there = HERE.to("cuda")
        for name, call in calls.items():
            with note_member(name):
                found = call(there)
                assert found.device == CUDA
                assert torch.allclose(found.cpu(), call(HERE))
        assert [x.device.type for x in (there, there.T[1:], there.cpu(), HERE)] == ["cuda", "cuda", "cpu", "cpu"]
        assert (there.is_cuda, there.is_cpu, there.to(HERE).is_cuda, HERE.to(there).is_cuda) == (
            True,
            False,
            False,
            True,
        )
        if REAL:
            return
        record.clear()
        there.sum().item(), there.tolist(), there.nonzero(), there[there > 3], bool(there.any())
        assert record.waits == {"_local_scalar_dense": 2, "tolist": 1, "nonzero": 1, "index": 1}
        record.clear()
        HERE.pin_memory().to(CUDA, non_blocking=True)
        assert not record.waits
        HERE.to(CUDA, non_blocking=True), there.cpu()
        assert record.waits == {"copy from ordinary memory": 1, "copy to the CPU": 1}


def _set(x: Tensor) -> Tensor:
    x[1] = HERE[0]
    return x


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("fused", [True, False])
def test_networks_train_there_as_on_the_cpu(kind: type[torch.optim.Optimizer], fused: bool) -> None:
    def trained(device: str) -> Tensor:
        torch.manual_seed(0)
        # A bias before a batch norm has only a rounding error as gradient, which Adam turns into whole steps.
        layers = nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)
        network = nn.Sequential(*layers).to(device)
        optimiser = kind(network.parameters(), lr=0.1, fused=fused)
        for _ in range(3):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(HERE.sin().to(device)), torch.tensor([0, 1, 1]).to(device)).backward()
            optimiser.step()
        assert all(p.device.type == device for p in network.parameters())
        return torch.cat([p.detach().flatten() for p in network.parameters()]).cpu()

    with pretended():
        torch.testing.assert_close(trained("cuda"), trained("cpu"), rtol=1e-4 if REAL else 0, atol=1e-5 if REAL else 0)


def test_threads_that_start_meanwhile_have_it_and_nothing_is_left_behind() -> None:
    with pretended():
        there = HERE.to("cuda")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: there.device).result() == CUDA
            with pytest.raises(TypeError, match=NUMPY):
                pool.submit(there.numpy).result()
    if REAL:
        return
    assert there.device == HERE.device
    assert there.numpy().shape == (3, 4)
    assert not torch.cuda.is_available() or torch.cuda.device_count()
