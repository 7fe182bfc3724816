"""Simulated GPU: its tensors compute on the CPU, report `cuda` as their device, and reject what CUDA rejects.

`pretended()` enables it for this thread and all threads started meanwhile, and records operations that made the host
wait for the device. A tensor is on the device if its storage is: `.to`, `.cuda` and `device=` put it there, and so does
any computation on such tensors. The following are rejected, as by CUDA (torch 2.13, aten/src/ATen/native):
- an operation on tensors of both devices, except copies, CPU indices into a device tensor (`x[i]`, `x[i] = y`), and
  0-dim CPU tensors in elementwise operations;
- `.numpy()`, `np.asarray`, DLPack, and drawing on the device with a CPU generator.

Values equal the CPU's bit for bit, because its kernels compute them. Not simulated: rounding, streams, memory, the list
of operations that CUDA's autocast casts, and kernels that CUDA lacks.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# if set, the same tests run on a real GPU, to check that these rules are CUDA's
REAL = os.environ.get("DML_DEVICE_TESTS") == "real"
CUDA = torch.device("cuda", 0)
NAME = torch.cuda.get_device_name() if REAL else "Pretended GPU"
COPIES = {"copy_", "_to_copy", "_copy_from", "lift_fresh", "set_"}  # copies between any two devices
INDEXED = {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}
WITH_A_NUMBER = {
    "masked_fill",
    "masked_fill_",
    "fill_",
    "where",
    "index_fill",
    "index_fill_",
} | INDEXED  # 0-dim: a value
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2", "unique_dim", "allclose"}


@dataclass
class Record:
    """Events on the device since the last `clear`."""

    waits: Counter[str] = field(default_factory=Counter)  # operations that made the host wait for the device
    operations: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Remove all recorded events."""
        self.waits.clear()
        self.operations.clear()


@contextlib.contextmanager
def pretended() -> Iterator[Record]:
    """Simulate a CUDA device in this thread and those started meanwhile; with a real device nothing is recorded."""
    if REAL:
        yield Record()
        return
    device = _Device()
    run = threading.Thread.run

    def run_there(thread: threading.Thread) -> None:
        with device.modes():
            run(thread)

    autocast, run_backward = torch.autocast, torch.autograd._engine_run_backward

    def backward(*options: Any, **more: Any) -> Any:
        # a function mode is inactive within a call; the autograd graph asks for the device of tensors from Python
        with _Functions(device):
            return run_backward(*options, **more)

    def cast(kind: str, *options: Any, **more: Any) -> Any:
        return autocast("cpu" if kind == "cuda" else kind, *options, **more)

    group = torch.utils._foreach_utils._group_tensors_by_device_and_dtype

    def grouped(*options: Any, **more: Any) -> Any:  # compiled code, which sees CPU tensors
        found = group(*options, **more)
        return {(device.place(lists[0][0]), dtype): (lists, places) for (_, dtype), (lists, places) in found.items()}

    cuda: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: NAME,
        "synchronize": lambda *_: device.record.waits.update(["synchronize"]),
        "max_memory_allocated": lambda *_: 0,
        "Event": _Nothing,
        "Stream": _Nothing,
        "stream": lambda _: contextlib.nullcontext(),
        "current_stream": _Nothing,
    }
    with contextlib.ExitStack() as stack:
        for module in ("torch.optim.optimizer", "torch.nn.utils.clip_grad"):
            stack.enter_context(mock.patch.object(importlib.import_module(module), group.__name__, grouped))
        for name, stand_in in cuda.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, stand_in))
        stack.enter_context(mock.patch.object(torch, "autocast", cast))
        stack.enter_context(mock.patch.object(Tensor, "record_stream", return_value=None))
        stack.enter_context(mock.patch.object(threading.Thread, "run", run_there))
        stack.enter_context(mock.patch.object(torch.autograd, "_engine_run_backward", backward))
        stack.enter_context(device.modes())
        yield device.record


class _Nothing:
    """Event or stream without effect, because everything is executed immediately."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> None: ...

    def wait_event(self, _: Any) -> None: ...

    def synchronize(self) -> None: ...


class _Device:
    """Storages on the device, and the current operation of each thread."""

    def __init__(self) -> None:
        self.record = Record()
        self.here: dict[int, StorageWeakRef] = {}
        self.pinned: dict[int, StorageWeakRef] = {}
        self.lock, self.purge_at = threading.Lock(), 1024
        # `inside`: within a call on tensors of the device; `target`: the requested device
        self.thread = threading.local()

    @contextlib.contextmanager
    def modes(self) -> Iterator[None]:
        with _Functions(self), _Kernels(self):
            yield

    def holds(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self.here

    def put(self, tensor: Tensor, *, pinned: bool = False) -> Tensor:
        storage = tensor.untyped_storage()
        with self.lock:
            (self.pinned if pinned else self.here)[storage._cdata] = StorageWeakRef(storage)
            if len(self.here) > self.purge_at:
                self.here = {key: ref for key, ref in self.here.items() if not ref.expired()}
                self.pinned = {key: ref for key, ref in self.pinned.items() if not ref.expired()}
                self.purge_at = 2 * len(self.here) + 1024
        return tensor

    @contextlib.contextmanager
    def calling(self, inside: bool, target: bool | None) -> Iterator[None]:
        before = getattr(self.thread, "inside", False), getattr(self.thread, "target", None)
        self.thread.inside, self.thread.target = inside, target
        try:
            yield
        finally:
            self.thread.inside, self.thread.target = before

    def place(self, tensor: Tensor) -> torch.device:
        return CUDA if self.holds(tensor) else tensor.device


class _Functions(TorchFunctionMode):
    """Function mode for Python calls to torch: device of a tensor, device to create it on, memory access."""

    def __init__(self, device: _Device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, device = dict(kwargs or {}), self.device
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if first is not None and (answer := _ABOUT.get(func)):
            return answer(device, func, *args, **kwargs)
        here = any(device.holds(tensor) for tensor in _tensors(args, kwargs))
        if here and func in _READS:
            raise TypeError(
                f"can't convert {CUDA} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory"
            )
        if here and func is Tensor.tolist:
            device.record.waits["tolist"] += 1
        if kwargs.get("device") is None:
            with device.calling(here, None):
                found = func(*args, **kwargs)
            return device.put(found) if here and func is Tensor.__deepcopy__ else found
        there = torch.device(kwargs["device"]).type == "cuda"
        generator = kwargs.get("generator")
        if there and generator is not None:
            raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
        with device.calling(here, there):
            found = func(*args, **kwargs | {"device": "cpu"})
            for tensor in _tensors(found) if there else ():
                if not device.holds(tensor):  # memory of NumPy, or a tensor made from numbers
                    tensor.data = device.put(tensor.clone())
        return found


class _Kernels(TorchDispatchMode):
    """Dispatch mode for computations in forward, backward and optimisers: rejects tensors of both devices."""

    def __init__(self, device: _Device) -> None:
        super().__init__()
        self.device = device

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and this check takes as long as the check for the device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():  # in a backward pass `_Functions` is called for each storage, too
            return self._computed(func, args, kwargs or {})

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        device = self.device
        name = func._schema.name.removeprefix("aten::")
        inputs = _tensors(args, kwargs)
        here = any(map(device.holds, inputs))
        if here:
            self._refuse_mixtures(func, name, args, kwargs, inputs)
            device.record.operations[name] += 1
            if name in WAITS or (name in INDEXED and any(t.dtype == torch.bool for t in _tensors(args[1]))):
                device.record.waits[name] += 1
        found = func(*args, **kwargs)
        target = getattr(device.thread, "target", None)
        if (here or getattr(device.thread, "inside", False)) if target is None else target:
            old = {tensor.untyped_storage()._cdata for tensor in inputs}
            for tensor in _tensors(found):
                if tensor.untyped_storage()._cdata not in old:
                    device.put(tensor)
        return found

    def _refuse_mixtures(self, func: Any, name: str, args: Any, kwargs: Any, inputs: list[Tensor]) -> None:
        if kwargs.get("generator") is not None:
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        if name in COPIES:
            return
        if name in INDEXED and self.device.holds(args[0]):
            inputs = [args[0], *_tensors(args[2:3])]
        with_a_number = torch.Tag.pointwise in func.tags or name in WITH_A_NUMBER or name.startswith("_foreach_")
        for tensor in inputs:
            if not self.device.holds(tensor) and not (tensor.ndim == 0 and with_a_number):
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {CUDA} and cpu! "
                    f"(when checking {name}, a tensor of shape {tuple(tensor.shape)})"
                )


def _tensors(*values: Any) -> list[Tensor]:
    """Yield all tensors in nested arguments."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _tensors(*value)
        elif isinstance(value, dict):
            found += _tensors(*value.values())
    return found


def _to(device: _Device, func: Any, tensor: Tensor, /, *options: Any, **more: Any) -> Tensor:
    """Implement `Tensor.to`, `cpu` and `cuda`: a copy if the device changes, else torch's behaviour."""
    is_on = device.holds(tensor)
    if func is Tensor.cpu:
        there, dtype, waits = False, tensor.dtype, True
    elif func is Tensor.cuda:
        there, dtype, waits = True, tensor.dtype, not more.get("non_blocking", False)
    elif options and isinstance(options[0], Tensor):
        there, dtype, waits = device.holds(options[0]), options[0].dtype, True
    else:
        keep = {key: value for key, value in more.items() if key != "copy"}
        asked, dtype, no_wait, _ = torch._C._nn._parse_to(*options, **keep)
        there = is_on if asked is None else asked.type == "cuda"
        dtype, waits = dtype or tensor.dtype, not no_wait
    layout = {"memory_format": more["memory_format"]} if more.get("memory_format") else {}
    if there == is_on:
        with device.calling(is_on, None):
            return tensor.to(dtype, copy=bool(more.get("copy")), **layout)
    pinned = tensor.untyped_storage()._cdata in device.pinned
    if not there and waits:
        device.record.waits["copy to the CPU"] += 1
    if there and not (pinned and not waits):
        device.record.waits["copy from ordinary memory" if not pinned else "copy that waits"] += 1
    with device.calling(is_on, there):
        return tensor.to(dtype, copy=True, **layout)


def _pin(device: _Device, func: Any, tensor: Tensor, /, *_: Any, **__: Any) -> Tensor:
    if device.holds(tensor):
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")
    return device.put(tensor.detach().clone(), pinned=True)


# Attributes that need no computation. Keys are the functions that a function mode receives.
_ABOUT: dict[Any, Callable[..., Any]] = {
    Tensor.device.__get__: lambda device, _, tensor, *__: device.place(tensor),  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__: lambda device, _, tensor, *__: device.holds(tensor),  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: lambda device, _, tensor, *__: not device.holds(tensor),  # type: ignore[attr-defined]
    Tensor.get_device: lambda device, _, tensor: 0 if device.holds(tensor) else -1,
    Tensor.is_pinned: lambda device, _, tensor, *__: tensor.untyped_storage()._cdata in device.pinned,
    Tensor.pin_memory: _pin,
    Tensor.to: _to,
    Tensor.cpu: _to,
    Tensor.cuda: _to,
}
_READS = {Tensor.numpy, Tensor.__array__, Tensor.__dlpack__}
