"""Batches: choosing samples, reading them, and augmenting images on the device."""

from __future__ import annotations

import importlib.util
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.processes import Share
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import DataSpec
from dmlcore.training import batch_workers, samplers
from dmlcore.training.batch_workers import BatchWorkers
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import Tuples, seed_of
from dmlcore.typing import Array, Bools, Ints, Pixels, Singles

# limits of random affine augmentation: angle in radians, relative change in scale, shift as a share of the side
TURN, SCALE, SHIFT = math.radians(12), 0.15, 0.1
TRIES = 10  # attempts to draw a crop before a centred one is used, as in torchvision's RandomResizedCrop
CHUNK = 256  # number of samples embedded in one forward pass

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Batch:
    """Batch of training samples.

    If several processes train the run, `inputs` holds the share of this process, and all other fields describe the
    whole batch.

    Attributes:
        indices: Indices into the data set, shape (B,).
        inputs: Inputs of the network, on the device.
        labels: Shape (B,), on the device.
        tuples: Tuples of samples that the sampler has mined, or None.
    """

    indices: Ints
    inputs: Tensor
    labels: Tensor
    tuples: Tuples | None


class Batches:
    """Source of the batches of a run.

    A batch is a function of (seed, step). Mined and neighbourhood batches also depend on `table`, the embeddings (N, D)
    of the training split. The table is None until the first such batch, which follows after `batch.balanced_steps`
    steps, and is recomputed every `batch.refresh` steps. Batches without a table are read by processes if that pays
    (`batch_workers.count`). On a GPU, a thread chooses and reads the next one of the others while the device computes,
    and batches are uploaded and augmented in a stream of their own.
    """

    def __init__(self, spec: RunSpec, dataset: Dataset, device: torch.device) -> None:
        self.spec, self.dataset, self.device = spec, dataset, device
        self.train = dataset.splits["train"]
        self.table: Singles | None = None
        if spec.data.fresh and not hasattr(dataset.inputs, "fresh"):
            raise TrainingError(f"data.fresh: only collages can be rearranged, and {dataset.name} has none")
        if spec.data.fresh and dataset.features is not None:
            raise TrainingError(
                "data.fresh: the cached features of a frozen backbone need fixed collages; set it to false"
            )
        b, mined = spec.batch, spec.batch.sampler == "mined"
        try:
            labels = dataset.labels[self.train]
            self.sampler = samplers.create(
                b.sampler,
                labels,
                b.classes,
                b.samples,
                seed=spec.seed,
                neighbours=b.neighbours,
                **({"miner": spec.miner.name} if mined else {}),
            )
            self.first = (
                samplers.BalancedSampler(labels, b.classes, b.samples, seed=spec.seed) if b.balanced_steps else None
            )
        except ValueError as error:
            raise TrainingError(f"batch: {error}") from None
        if b.classes * b.samples < processes.size():
            raise TrainingError(
                f"batch: {b.classes} x {b.samples} samples are too few for {processes.size()} processes; start fewer"
            )
        self._reader = ThreadPoolExecutor(1, "batches") if device.type == "cuda" else None
        self._ahead: tuple[int, Future[tuple[Ints, Gathered]]] | None = None
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._workers: BatchWorkers | None = None
        self._made = -1  # step of the last batch
        self._seconds = 0.0  # time to read it in this process
        # True while reading by processes is an option
        self._may_share = dataset.features is None and not any(s and s.uses_table for s in (self.sampler, self.first))

    def close(self) -> None:
        """End the processes that read batches."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()

    def make(self, step: int, embed: Callable[[Ints], Singles]) -> Batch:
        """Return the batch of step `step` >= 1; `embed` maps sample indices to embeddings (n, D) for the table."""
        if self._stale(step):
            self.table = embed(self.train)
        indices, gathered = self._next(step)
        current = torch.cuda.current_stream(self.device) if self._stream is not None else None
        with torch.cuda.stream(self._stream):
            batch = self._upload(step, indices, gathered)
        if current is None or self._stream is None:
            uploaded = None
        else:
            uploaded = torch.cuda.Event()
            uploaded.record(self._stream)
            current.wait_event(uploaded)
            for tensor in (batch.inputs, batch.labels, *(batch.tuples or ())):
                tensor.record_stream(current)
        if self._workers is not None and self._workers.step == step + 1:
            self._workers.uploaded(uploaded)
        self._read_ahead(step)
        return batch

    def _upload(self, step: int, indices: Ints, gathered: Gathered) -> Batch:
        """Upload and augment a batch in the current stream."""
        if self.dataset.features is not None:
            inputs = upload(gathered.inputs, self.device)
        else:
            side, data = self.dataset.inputs.shape[-1], self.spec.data
            share = processes.share(len(indices))
            inputs = augment(gathered, side, data, self._seed(step), self.device, share)
        tuples = self.sampler_of(step).tuples
        return Batch(
            indices,
            inputs,
            upload(self.dataset.labels[indices], self.device),
            None if tuples is None else tuple(upload(places, self.device) for places in tuples),
        )

    def _next(self, step: int) -> tuple[Ints, Gathered]:
        """Return the batch of a step from the processes or the thread that read ahead, or read it now."""
        if self._workers is not None and self._workers.step == step:
            (indices, sizes, crops), inputs = self._workers.get()
            return indices, Gathered(inputs, sizes, crops)
        ahead, self._ahead = self._ahead, None
        return ahead[1].result() if ahead and ahead[0] == step else self._read(step)

    def _read_ahead(self, step: int) -> None:
        """Read the batches after that of `step` in other processes or, on a GPU, the next one in a thread."""
        consecutive, self._made = step == self._made + 1, step
        # The first batch also opens the data set, and CUDA graphs are captured in its step, during which no other
        # thread may use the GPU.
        if self._workers is not None or not consecutive:
            return
        if self._may_share:
            self._may_share = False
            rest = range(step + 1, self.spec.schedule.steps + 1)
            workers = batch_workers.count(self.spec.compute.workers, self.device, self._seconds, len(rest))
            if workers and rest:
                self._workers = self._started(rest, workers)
                return
        if self._reader is not None and not self._stale(step + 1):
            self._ahead = step + 1, self._reader.submit(self._read, step + 1)

    def _started(self, steps: range, workers: int) -> BatchWorkers:
        """Return processes that read the batches of `steps`."""
        log.info("reading a batch takes %.1f ms; from here on %d processes do it", 1e3 * self._seconds, workers)

        def read(step: int) -> tuple[tuple[Ints, Ints | None, Crops | None], Tensor]:
            indices, gathered = self._gather(step)
            return (indices, gathered.sizes, gathered.crops), _tensor(gathered.inputs)

        size = _tensor(self._gather(steps.start)[1].inputs).nbytes
        return BatchWorkers(read, steps, workers, size, pin=self.device.type == "cuda")

    def prepared(self, indices: Ints, seed: int) -> Tensor:
        """Load samples onto the device and augment them as for training. The result depends only on (indices, seed)."""
        if self.dataset.features is not None:
            return upload(self.dataset.features.batch(indices, seed), self.device)
        return load_augmented(self.dataset, indices, self.spec.data, seed, self.device)

    def sampler_of(self, step: int) -> samplers.Sampler:
        """Return the sampler for a step, which is a balanced one for the first `batch.balanced_steps` steps."""
        return self.first if self.first is not None and step <= self.spec.batch.balanced_steps else self.sampler

    def _stale(self, step: int) -> bool:
        if not self.sampler_of(step).uses_table:
            return False
        done, refresh = step - 1 - self.spec.batch.balanced_steps, self.spec.batch.refresh
        return self.table is None or (refresh > 0 and done % refresh == 0)

    def _seed(self, step: int) -> int:
        return seed_of(self.spec.seed, "augment", step)

    def _read(self, step: int) -> tuple[Ints, Gathered]:
        """Read the batch of a step in this process, into pinned memory on a GPU."""
        began = time.perf_counter()
        indices, gathered = self._gather(step)
        if self.device.type == "cuda":
            gathered = gathered.pinned()
        self._seconds = time.perf_counter() - began
        return indices, gathered

    def _gather(self, step: int) -> tuple[Ints, Gathered]:
        """Return the sample indices of a step, and their images or the stored feature maps of a frozen backbone."""
        indices = self.train[self.sampler_of(step).batch(step, self.table)]
        share = processes.share(len(indices))
        if self.dataset.features is not None:
            return indices, Gathered(self.dataset.features.batch(indices, self._seed(step), share.rows))
        gathered = gather(self.dataset, indices, self.spec.data, self._seed(step), share.rows)
        return indices, gathered.with_crops(self.spec.data, self._seed(step), share)


def to_device(dataset: Dataset, indices: Ints, device: torch.device) -> Tensor:
    """Return the inputs of the samples at `indices`, or the stored feature maps of a frozen backbone, on the device.

    Images and maps have the channels_last memory format.
    """
    return upload((dataset.inputs if dataset.features is None else dataset.features)[indices], device)


def rows_of(data: Dataset, split: str) -> tuple[Ints, Bools]:
    """Return the sample indices (n,) to embed for scoring a split, and a mask (n,) of the gallery among them."""
    indices = data.splits[split]
    gallery = data.splits.get("gallery", indices[:0]) if split == "test" else indices[:0]
    return np.concatenate([indices, gallery]), np.arange(len(indices) + len(gallery)) >= len(indices)


@contextmanager
def evaluation_mode(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Put the model into evaluation mode; on exit restore the mode of every module.

    A frozen batch norm stays in evaluation mode while its network trains, so modules are restored one by one.
    """
    modules = [(module, module.training) for module in model.modules()] if isinstance(model, nn.Module) else []
    if isinstance(model, nn.Module):
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modules:
            module.training = training


def embed(
    model: Callable[[Tensor], Tensor], dataset: Dataset, indices: Ints, device: torch.device, size: int = CHUNK
) -> Singles:
    """Return embeddings (n, D) float32 of samples without augmentation, computed in evaluation mode.

    A model with conditioned embeddings receives the whole set at once, because the samples may be neighbours of each
    other. If several processes train a run together, each embeds a share of the samples and all receive the whole
    result.

    Args:
        model: A network, or any function of inputs on the device.
        dataset: Data set that contains the samples.
        indices: Samples to embed, (n,).
        device: Device to compute on.
        size: Samples per forward pass.
    """
    together = len(indices) >= processes.size()
    own = indices[processes.share(len(indices)).rows] if together else indices
    chunks = np.split(own, range(size, len(own), size))
    embed_set: Callable[[Tensor, Ints], Tensor] | None = getattr(model, "embed_set", None)
    one: Callable[[Tensor], Tensor] = getattr(model, "model", model) if embed_set else model
    # embeddings stay on the device until the end, so that the device computes while the next inputs are read
    with evaluation_mode(model):
        alone = torch.cat([one(to_device(dataset, c, device)).float() for c in chunks])
        if together:
            alone = processes.gather(alone, len(indices))
        embeddings: Singles = (embed_set(alone, indices) if embed_set else alone).cpu().numpy()
    return embeddings


Crops = tuple[Ints, Bools]  # boxes (n, 4) and flips (n,), as from `draw_boxes`


@dataclass(frozen=True, eq=False)
class Gathered:
    """Inputs of a batch in main memory.

    Attributes:
        inputs: The inputs; images of different sizes are padded.
        sizes: Heights and widths (n, 2) of padded images, else None.
        crops: Random crops of images, if they have been drawn.
    """

    inputs: Array | Tensor
    sizes: Ints | None = None
    crops: Crops | None = None

    def pinned(self) -> Gathered:
        """Return a copy in pinned memory. Copying takes several ms per batch, so the reading thread does it."""
        return replace(self, inputs=_tensor(self.inputs).pin_memory())

    def with_crops(self, data: DataSpec, seed: int, share: Share) -> Gathered:
        """Return a copy with crops, if images are augmented by resized crops."""
        if self.inputs.ndim != 4 or not data.augment or data.crop != "resized":
            return self
        sizes = self.sizes
        if sizes is None:
            sizes = np.broadcast_to(np.array(self.inputs.shape[2:]), (len(self.inputs), 2))
        boxes, flip = draw_boxes(sizes, data.crop_area, data.crop_ratio, seed, share)
        return replace(self, crops=(boxes.numpy(), flip.numpy()))


def load_augmented(dataset: Dataset, indices: Ints, data: DataSpec, seed: int, device: torch.device | str) -> Tensor:
    """Return training inputs on the device: images (n, 3, S, S) uint8, augmented according to the settings `data`.

    Vectors and tokens are unchanged. The result depends only on (indices, data, seed) and is the same on every device
    up to rounding.
    """
    return augment(gather(dataset, indices, data, seed), dataset.inputs.shape[-1], data, seed, device)


def gather(dataset: Dataset, indices: Ints, data: DataSpec, seed: int, rows: slice = slice(None)) -> Gathered:
    """Read the inputs of the samples `indices[rows]` in the form that `augment` expects.

    Uses NumPy only, so that a thread can read while the previous training step runs.
    """
    if data.fresh:
        assert hasattr(dataset.inputs, "fresh")  # `Batches` rejects data sets without this method
        return Gathered(dataset.inputs.fresh(indices, seed, rows))
    indices = indices[rows]
    if data.augment and data.crop == "resized" and hasattr(dataset.inputs, "uncut"):
        return _padded(dataset.inputs.uncut(indices))
    return Gathered(dataset.inputs[indices])


def _padded(images: Sequence[Pixels]) -> Gathered:
    """Return images (h, w, 3) of different sizes as one zero-padded tensor (n, 3, H, W) with their sizes.

    One call copies all images. With one NumPy call per image, this thread requests the GIL a hundred times and the
    training thread waits as often: that took 11 of the 42 ms of a step on an H200.
    """
    sizes = np.array([image.shape[:2] for image in images], np.int64).reshape(-1, 2)
    padded = torch.zeros((len(images), *sizes.max(0, initial=0).tolist(), 3), dtype=torch.uint8)
    places = [place[:height, :width] for place, (height, width) in zip(padded.numpy(), sizes.tolist(), strict=True)]
    torch._foreach_copy_([*map(torch.from_numpy, places)], [*map(_tensor, images)])
    return Gathered(padded.permute(0, 3, 1, 2), sizes)


def augment(
    gathered: Gathered, side: int, data: DataSpec, seed: int, device: torch.device | str, share: Share | None = None
) -> Tensor:
    """Move gathered inputs to the device and augment them; images become (n, 3, side, side) uint8, channels_last.

    Args:
        gathered: Inputs in main memory.
        side: Side of the resulting images in pixels.
        data: Augmentation settings.
        seed: Seed for augmentation.
        device: Device to compute on.
        share: Share of the batch that this process computes, if several do; samples are augmented as in a single
            process.
    """
    inputs = upload(gathered.inputs, device)
    share = share or Share(0, len(inputs), len(inputs))
    if inputs.ndim != 4 or not data.augment:
        return inputs
    if data.crop == "shift":
        return shift_images(inputs, seed, share)
    if data.crop == "affine":
        return move_images(inputs, seed, share)
    crops = (gathered if gathered.crops else gathered.with_crops(data, seed, share)).crops
    assert crops is not None
    boxes, flip = (_send(_tensor(values), inputs.device) for values in crops)
    return crop_and_resize(inputs, boxes, flip, side)


def upload(inputs: Array | Tensor, device: torch.device | str) -> Tensor:
    """Copy inputs to the device; images get the channels_last memory format, which is faster for convolutions."""
    tensor = _send(_tensor(inputs), torch.device(device))
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor.contiguous()


def shift_images(images: Tensor, seed: int, share: Share | None = None) -> Tensor:
    """Flip half of the images (B, 3, H, W), and shift each by up to an eighth of its side, filling with black."""
    batch, _, height, width = images.shape
    share = share or Share(0, batch, batch)
    pad = height // 8
    random = torch.Generator().manual_seed(seed)  # generator on the CPU, so that every device draws the same values
    flip = (torch.rand(share.total, 1, generator=random) < 0.5)[share.rows]
    top, left = torch.randint(0, 2 * pad + 1, (2, share.total, 1), generator=random)[:, share.rows]
    rows = torch.arange(height) + top
    columns = torch.arange(width).expand(batch, width)
    columns = torch.where(flip, columns.flip(1), columns) + left
    each, rows, columns = (_send(index, images.device) for index in (torch.arange(batch), rows, columns))
    padded = F.pad(images, (pad, pad, pad, pad)).permute(0, 2, 3, 1)
    return padded[each[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def move_images(images: Tensor, seed: int, share: Share | None = None) -> Tensor:
    """Rotate, shear, scale and shift each image (B, C, H, W) uint8 slightly, filling with black, without mirroring.

    All values are drawn uniformly: angle and shear from +-TURN radians, horizontal and vertical scale from 1 +- SCALE,
    and shifts from +-SHIFT of the side.
    """
    random = torch.Generator().manual_seed(seed)  # generator on the CPU, so that every device draws the same values
    share = share or Share(0, len(images), len(images))
    turn, shear, wide, high, right, down = 2 * torch.rand(6, share.total, generator=random)[:, share.rows] - 1
    turn, shear = TURN * turn, TURN * shear
    wide, high = 1 + SCALE * wide, 1 + SCALE * high
    rows = (
        torch.stack([turn.cos() / wide, (shear - turn.sin()) / wide, 2 * SHIFT * right], 1),
        torch.stack([turn.sin() / high, turn.cos() / high, 2 * SHIFT * down], 1),
    )
    with torch.autocast(images.device.type, enabled=False):
        where = F.affine_grid(_send(torch.stack(rows, 1), images.device), list(images.shape), align_corners=False)
        values = F.grid_sample(images.float(), where, align_corners=False)
    return values.round_().clamp_(0, 255).to(torch.uint8).contiguous(memory_format=torch.channels_last)


def draw_boxes(
    sizes: Ints, area: tuple[float, float], ratio: tuple[float, float], seed: int, share: Share | None = None
) -> tuple[Tensor, Tensor]:
    """Draw crops and flips: boxes (n, 4) int64 of top, left, height and width, and flips (n,) bool, on the CPU.

    The distribution is that of torchvision's RandomResizedCrop (Szegedy et al. 2015, section 6): the first of ten draws
    that fits into the image, or else the largest centred crop that `ratio` allows.

    Args:
        sizes: Height and width of each image, (n, 2).
        area: Range of the crop's share of the image area, uniform.
        ratio: Range of the aspect ratio width / height, log-uniform.
        seed: Seed for the draw.
        share: Share of the batch that these images are, if several processes compute the batch.
    """
    random = torch.Generator().manual_seed(seed)
    n = len(sizes)
    share = share or Share(0, n, n)
    drawn = torch.rand(3, share.total, TRIES, generator=random, dtype=torch.float64)
    area_share, aspect, at = drawn[:, share.rows].unbind()
    flip = (torch.rand(share.total, generator=random) < 0.5)[share.rows]
    height, width = torch.from_numpy(np.array(sizes, dtype=np.int64)).unbind(1)

    pixels = (area[0] + (area[1] - area[0]) * area_share) * (height * width)[:, None]
    low, high = math.log(ratio[0]), math.log(ratio[1])
    shape = torch.exp(low + (high - low) * aspect)
    h, w = (pixels / shape).sqrt().round().long(), (pixels * shape).sqrt().round().long()
    fits = (h > 0) & (w > 0) & (h <= height[:, None]) & (w <= width[:, None])
    first = fits.to(torch.uint8).argmax(1, keepdim=True)  # argmax returns the first of the draws that fit
    accepted = fits.any(1)
    h, w = h.gather(1, first)[:, 0], w.gather(1, first)[:, 0]

    # If no draw fits, take the centre, cropped where the image is flatter or taller than `ratio` allows.
    whole_h = torch.minimum(height, (width / ratio[0]).round().long())
    whole_w = torch.minimum(width, (height * ratio[1]).round().long())
    h, w = torch.where(accepted, h, whole_h), torch.where(accepted, w, whole_w)
    top = torch.where(accepted, (at[:, 0] * (height - h + 1)).long(), (height - h) // 2)
    left = torch.where(accepted, (at[:, 1] * (width - w + 1)).long(), (width - w) // 2)
    return torch.stack([top, left, h, w], 1), flip


def crop_and_resize(images: Tensor, boxes: Tensor, flip: Tensor, side: int) -> Tensor:
    """Crop the boxes (n, 4) out of images (n, 3, H, W) uint8 and resize them: (n, 3, side, side) uint8, channels_last.

    Interpolation is bilinear with antialiasing, equal to `F.interpolate(cut, side, mode="bilinear", antialias=True)` of
    each crop. Resizing is linear and separable, so a batch takes two matrix products, one for rows and one for columns.
    On a GPU with Triton, one kernel does both.
    """
    if images.is_cuda and (resized := _by_kernel(images, boxes, flip, side)) is not None:
        return resized
    top, left, height, width = boxes.unbind(1)
    n, channels, high, wide = images.shape
    rows = _triangle_weights(top, height, high, side)
    columns = _triangle_weights(left, width, wide, side, mirror=flip)
    with torch.autocast(images.device.type, enabled=False):
        values = images.float().permute(0, 2, 3, 1).reshape(n, high, wide * channels)  # a view for channels_last images
        values = torch.bmm(rows, values).view(n, side, wide, channels)
        values = values.transpose(2, 3).reshape(n, side * channels, wide)
        values = torch.bmm(values, columns.mT).view(n, side, channels, side)
    whole = values.round_().clamp_(0, 255).to(torch.uint8)
    return whole.permute(0, 2, 1, 3).contiguous(memory_format=torch.channels_last)


@cache
def _kernel() -> list[Callable[[Tensor, Tensor, Tensor, int], Tensor]]:
    """Return the kernel for crops in a list, which is empty if this machine cannot run it."""
    if torch.version.cuda is None or importlib.util.find_spec("triton") is None:
        return []
    from dmlcore.training import crop_kernel

    return [crop_kernel.crop_and_resize]


def _by_kernel(images: Tensor, boxes: Tensor, flip: Tensor, side: int) -> Tensor | None:
    """Crop and resize by the kernel; return None if it cannot be compiled here, for example without a C compiler."""
    for kernel in _kernel():
        try:
            return kernel(images, boxes, flip, side)
        except Exception as error:  # Triton raises errors of many kinds
            log.warning("images are cropped by matrix products, because the kernel cannot be used: %s", error)
    _kernel().clear()
    return None


def _triangle_weights(start: Tensor, length: Tensor, pixels: int, side: int, mirror: Tensor | None = None) -> Tensor:
    """Return the weight (n, side, pixels) float32 of each source pixel in each output pixel; rows sum to 1.

    Output pixel i is centred at start + (i + 1/2) * length / side, source pixel j at j + 1/2. The triangle is two
    source pixels wide, or two output pixels if these are larger; pixels outside the crop have no weight.
    """
    place = torch.arange(pixels, device=start.device, dtype=torch.float32) + 0.5
    seen = torch.arange(side, device=start.device, dtype=torch.float32) + 0.5
    if mirror is not None:
        seen = torch.where(mirror[:, None], side - seen, seen)
    begin, scale = start.float()[:, None], (length.float() / side)[:, None]
    inside = (place > begin) & (place < begin + length[:, None])
    distance = (place - (begin + seen * scale)[..., None]).abs_()
    weights = distance.div_(-scale.clamp(min=1.0)[..., None]).add_(1.0).clamp_(min=0.0).mul_(inside[:, None])
    return weights.div_(weights.sum(2, keepdim=True))


def _tensor(inputs: Array | Tensor) -> Tensor:
    if isinstance(inputs, Tensor):
        return inputs
    if not inputs.flags.writeable or any(stride < 0 for stride in inputs.strides):
        inputs = inputs.copy()
    return torch.from_numpy(inputs)


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    # A copy from pinned memory is asynchronous; one from pageable memory waits for the device.
    if device.type != "cuda":
        return tensor.to(device)
    return (tensor if tensor.is_pinned() else tensor.pin_memory()).to(device, non_blocking=True)
