"""Sections of a RunSpec: groups of settings, each frozen and validated, with a description of every key."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from dmlcore.spec import optimisers, own_network

# maximum number of characters of a textual hyper-parameter, and of each part of a key in error messages
MAX_WORD_LENGTH = 64

_brief = reprlib.Repr()
_brief.maxlevel, _brief.maxstring, _brief.maxother, _brief.maxlong = 3, 60, 60, 40


def brief(value: object) -> str:
    """Return the repr of a value for a message, shortened to about 60 characters."""
    try:
        return _brief.repr(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return "a number with thousands of digits"


def _hyper_parameter(value: object) -> float | str:
    """Return a number as float, "inf" (infinity in JSON) as math.inf, and other strings unchanged."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("must be a number or a word")
    if isinstance(value, str):
        if len(value) > MAX_WORD_LENGTH:
            raise ValueError(f"must be a number or a word of at most {MAX_WORD_LENGTH} characters")
        return math.inf if value == "inf" else value
    try:
        number = float(value)
    except OverflowError:  # an integer beyond 1e308
        raise ValueError("must be a number or inf") from None
    if math.isnan(number) or number == -math.inf:
        raise ValueError("must be a number or inf")
    return number


HyperParameter = Annotated[float | str, BeforeValidator(_hyper_parameter)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
# keyword argument of a user's factory
Option = bool | int | float | Annotated[str, Field(max_length=4096)]
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=65536)], ...], Field(strict=False, max_length=8)]
Range = Annotated[tuple[float, float], Field(strict=False)]


class Section(BaseModel):
    """Base class for groups of settings; unknown keys are refused."""

    # Strict: `steps = "100"` and `steps = true` are refused instead of converted to numbers.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def explain_error(error: Any, known_under: Callable[[Sequence[str]], Iterable[str]]) -> str:
    """Return a pydantic error as one readable line that starts with the key of the invalid setting.

    Args:
        error: An item of `ValidationError.errors()`.
        known_under: Function that maps a path of section names to the keys in that section, used to suggest a
            correction of an unknown key.
    """
    path = [str(part)[:MAX_WORD_LENGTH] for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        known = list(known_under(path[:-1]))
        near = difflib.get_close_matches(path[-1], known, 1)
        return f"{key}: unknown key; " + (f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}")
    if error["type"] == "missing":
        return f"{key}: is missing"
    if error["type"] in _MESSAGES:
        return f"{key}: {_MESSAGES[error['type']].format(got=brief(error['input']), **error.get('ctx', {}))}"
    message = str(error["msg"]).removeprefix("Value error, ")
    if not key:
        return message
    # The error concerns a whole section; its message starts with the key inside that section.
    if isinstance(error["input"], dict):
        return f"{key}.{message}"
    return f"{key}: {message[0].lower()}{message[1:]}, got {brief(error['input'])}"


# pydantic error type -> message shown to users
_MESSAGES = {
    "int_type": "{got} is not a whole number",
    "int_from_float": "{got} is not a whole number",
    "float_type": "{got} is not a number",
    "finite_number": "must be finite, got {got}",
    "bool_type": "must be true or false, got {got}",
    "string_type": "must be text, got {got}",
    "greater_than": "must be more than {gt:,}, got {got}",
    "greater_than_equal": "must be at least {ge:,}, got {got}",
    "less_than": "must be less than {lt:,}, got {got}",
    "less_than_equal": "must be at most {le:,}, got {got}",
    "too_short": "needs at least {min_length}, got {got}",
    "too_long": "takes at most {max_length}, got {got}",
    "string_too_long": "takes at most {max_length:,} characters, got {got}",
    "string_pattern_mismatch": "{got} is not a valid name",
}


class DataSpec(Section):
    name: str = Field("digits", min_length=1, max_length=64, description="Data set")
    root: str | None = Field(
        None, description="Folder with the data set or its archive; empty: $DML_DATA and the default folders"
    )
    split: Literal["classes", "samples", "own", "none"] | None = Field(
        None,
        description="Test on unseen classes, on unseen samples of known classes, or on all samples without training; "
        "empty: the data set's default",
    )
    validation: Literal["classes", "samples", "none", "own"] | None = Field(
        None, description="Part of the training split held out for validation; empty: the data set's default"
    )
    folds: int = Field(
        0, ge=0, le=50, description="Class folds of the training split, one of which validates; 0: its last quarter"
    )
    fold: int = Field(
        1, ge=1, le=50, description="Number of the validation fold; contiguous folds are counted from the end"
    )
    fold_order: Literal["contiguous", "random"] = Field(
        "contiguous", description="Folds are ranges of classes, or classes drawn at random"
    )
    fold_seed: int = Field(0, ge=0, le=2**32 - 1, description="Seed of random folds, apart from the seed of the run")
    image_size: int | None = Field(
        None, ge=16, le=512, description="Side of the square images in pixels; empty: as stored"
    )
    damaged: Literal["error", "skip"] = Field(
        "error", description="Images that cannot be decoded; error: stop the run, skip: omit and count them"
    )
    standardize: bool = Field(
        True, description="Standardise vectors to mean 0 and deviation 1 over the training split; off: unchanged"
    )
    augment: bool = Field(True, description="Flip and crop training images at random")
    crop: Literal["shift", "resized", "affine"] = Field(
        "shift",
        description="Random crop; shift: moved by up to an eighth of the side, resized: random area and aspect "
        "ratio, affine: slight rotation, shear, scale and shift without flips, for handwriting",
    )
    fresh: bool = Field(
        False, description="Compose new collages of the training split at every step; off: collages are fixed"
    )
    crop_area: Range = Field((0.16, 1.0), description="Share of the image in a resized crop: from, to")
    crop_ratio: Range = Field((0.75, 4 / 3), description="Aspect ratio of a resized crop: from, to")
    views: int = Field(
        0,
        ge=0,
        le=64,
        description="Flipped and cropped views of each training image whose feature maps are cached, with a frozen "
        "backbone; 0: the unchanged image only",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.folds == 1:
            raise ValueError("folds: one fold would validate on all classes; use 2 or more, or 0 for the last quarter")
        if self.fold > max(1, self.folds):
            raise ValueError(f"fold: must be at most folds = {self.folds}, got {self.fold}")
        for key, (low, high), most in (("crop_area", self.crop_area, 1.0), ("crop_ratio", self.crop_ratio, 10.0)):
            if not 0 < low <= high <= most:
                raise ValueError(f"{key}: needs 0 < from <= to <= {most:g}, got {low:g}, {high:g}")
        return self


IDENTITY = "identity"  # name of the network of an imported embedding set, which leaves its vectors unchanged
# names of the networks that have no backbone
WITHOUT_BACKBONE = ("mlp", "tokens", IDENTITY)


class ModelSpec(Section):
    name: str = Field(
        "mlp",
        pattern=rf"^((timm:)?[A-Za-z0-9_.-]{{1,80}}|{own_network.PATTERN})$",
        max_length=160,
        description="Network: mlp for vectors, tokens for bags of tokens, a backbone for images, timm:NAME, or a "
        "network of your own as package.module:factory (command line only)",
    )
    options: dict[Identifier, Option] = Field(
        default_factory=dict, description="Keyword arguments of the factory of a network of your own"
    )
    hidden: Widths = Field((128,), description="Widths of the hidden layers of an mlp")
    embedding_dim: int = Field(64, ge=1, le=4096, description="Dimension of the embedding space")
    normalize: bool = Field(True, description="Normalise embeddings to unit length (L2 normalisation)")
    lipschitz: bool = Field(
        False, description="Pull embeddings longer than 1 back into the unit ball (Lipschitz normalisation)"
    )
    start: str | None = Field(
        None,
        max_length=4096,
        description="Initial weights of the backbone: imagenet, a run id or a weights file; empty: random",
    )
    keep_classifier: bool = Field(
        False, description="Keep the 1000-way output of the backbone and embed its logits (2021 thesis)"
    )
    freeze: Literal["none", "early", "backbone"] = Field(
        "none",
        description="Part that is not trained; its feature maps are computed once and cached; backbone: only pooling, "
        "embedding layer and loss are trained, in milliseconds per step; early: the last stage is trained as well",
    )
    freeze_batch_norm: bool = Field(False, description="Keep the initial statistics of batch norm")
    embedding_start: Literal["random", "pca", "lda", "nca", "whitening"] = Field(
        "random",
        description="Initial embedding layer: random, or a linear method fitted to its inputs: principal components, "
        "linear discriminants, neighbourhood components or within-class whitening",
    )
    embedding_scale: float = Field(
        1.0,
        gt=0,
        le=1000,
        description="Factor on the initial weights and bias of the embedding layer; below 1 if the loss would saturate "
        "because the embeddings are not normalised and have large norms",
    )
    shrinkage: float = Field(
        1.0,
        gt=0,
        le=1000,
        description="Constant added to each variance of the whitening, relative to the mean variance",
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="Share of the embedding layer's inputs set to 0 at each step")
    gather: Literal["none", "mean", "attention"] = Field(
        "none",
        description="Also embed features of earlier depths: their means, or weighted by attention (GDFL); for "
        "conv4, bn_inception and squeezenet",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.options and not own_network.is_own(self.name):
            raise ValueError(
                f"options: only a network of your own takes arguments, and {self.name} is not one; leave them out"
            )
        return self


class PoolingSpec(Section):
    name: Identifier = Field("gap", description="Pooling of images and bags")
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Parameters of the pooling; those left out keep their defaults"
    )
    zero_shot: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of the zero-shot prediction loss in the total loss, for pooling with prototypes",
    )
    ridge: float = Field(0.05, gt=0, le=100, description="Ridge weight of the zero-shot prediction")
    logit_scale: float = Field(9.5, gt=0, le=1000, description="Scale of the logits of the zero-shot prediction")


class LossSpec(Section):
    name: Identifier = Field("ranking", description="Loss")
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Hyper-parameters of the loss; those left out keep their defaults"
    )
    reduction: Literal["mean_valid", "mean_nonzero", "mean_raw", "entangled"] = Field(
        "mean_valid",
        description="Mean over all valid triplets, over those with a positive loss, or without clamps; entangled: one "
        "term per pair, with all of its negatives, log(1 + sum exp E)",
    )
    learning_rate: float | None = Field(
        None, gt=0, le=100, description="Learning rate of proxies and other loss parameters; empty: the optimiser's"
    )
    proxy_start: Literal["random", "means"] = Field(
        "random", description="Initial proxies: random, or the mean embedding of each class in the initial network"
    )
    memory: int = Field(
        0, ge=0, le=100_000, description="Batches in the cross-batch memory that pairs are drawn from; 0: none"
    )
    memory_start: int = Field(
        1000, ge=0, description="Steps before the memory is used, in addition to those that fill it"
    )
    batch_pairs: float = Field(
        0.0,
        ge=0,
        le=100,
        description="Weight of the same loss between samples of a batch, in addition to that against proxies; 0: none",
    )
    start_weight: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="Weight of the mean distance between embeddings and those of the initial network; 0: none",
    )
    tcm: float = Field(
        0.0,
        ge=0,
        le=100,
        description="Weight of the threshold-consistent margin (TCM), a loss of all pairs of a batch that is added; "
        "0: none",
    )
    tcm_m_pos: float = Field(
        0.9,
        ge=-1,
        le=1,
        description="Positive margin of the TCM: cosine similarity up to which it pulls pairs of one class",
    )
    tcm_m_neg: float = Field(
        0.5,
        ge=-1,
        le=1,
        description="Negative margin of the TCM: cosine similarity down to which it pushes pairs of two classes",
    )


class ProjectionSpec(Section):
    pool: int = Field(
        0,
        ge=0,
        le=4096,
        description="Samples per class among which new proxies are chosen after each projection, farthest from the "
        "old ones first; 0: proxies are only learned",
    )
    weight: float = Field(
        2e-4, ge=0, le=1000, description="Pull of the network towards its best weights of the previous projection"
    )
    patience: int = Field(3, ge=1, le=100_000, description="Validations without improvement that end a projection")
    first: Literal["random", "spread"] = Field(
        "random", description="Initial proxies: random samples of their class, or spread, the longest first"
    )


class ConditioningSpec(Section):
    neighbours: int = Field(
        0,
        ge=0,
        le=1024,
        description="Nearest samples that enter each sample's embedding (conditioned embedding); 0: none",
    )
    by: Literal["lstm", "average", "concat", "mean"] = Field(
        "lstm",
        description="Combination of a sample and its neighbours: a bidirectional LSTM, their average or "
        "concatenation before a linear layer, or mean: the plain mean, nothing trained",
    )
    order: Literal["nearest", "furthest", "random"] = Field(
        "nearest", description="Order of the neighbours after their sample: nearest first, furthest first, or random"
    )
    layers: int = Field(2, ge=1, le=8, description="Layers of the LSTM")
    hidden: int = Field(
        0, ge=0, le=4096, description="Width of the LSTM in each direction; 0: half of the embedding dimension"
    )
    dropout: float = Field(0.5, ge=0, lt=1, description="Dropout between the layers of the LSTM")
    after: int = Field(
        0,
        ge=0,
        description="Initial steps that train the network alone; its best weights then determine the neighbours, once",
    )
    continued: bool = Field(
        False,
        description="Also continue training the network; neighbours stay the same samples, re-embedded as often as "
        "for mined batches",
    )
    among: Literal["own", "train"] = Field(
        "own",
        description="Neighbours of a scored sample; own: other scored samples (transductive), train: the training "
        "split (inductive); the other way is scored in addition",
    )

    @property
    def transductive(self) -> bool:
        """True if the embedding of a scored sample depends on the other scored samples."""
        return self.neighbours > 0 and self.among == "own"


class MinerSpec(Section):
    name: Identifier = Field("all", description="Tuples of a batch that enter the loss; all: every one")
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Parameters of the miner; those left out keep their defaults"
    )


NO_METHOD = "none"  # value of `method.name` for a run without a method


class MethodSpec(Section):
    name: Identifier = Field(
        NO_METHOD, description="Further method of training, for example one of a plug-in; none: no method"
    )
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Parameters of the method; those left out keep their defaults"
    )


class BatchSpec(Section):
    classes: int = Field(8, ge=2, le=4096, description="Classes per batch")
    samples: int = Field(8, ge=1, le=4096, description="Samples of each class per batch")
    sampler: Literal["balanced", "random", "mined", "neighbourhood"] = Field(
        "balanced",
        description="Batches: classes x samples, as many random samples, triplets mined in the whole training split, "
        "or neighbourhoods in it",
    )
    balanced_steps: int = Field(
        0, ge=0, description="Initial steps with classes x samples, before mined batches or neighbourhoods start"
    )
    refresh: int = Field(
        200,
        ge=0,
        description="Steps between two embeddings of the whole training split, for mined batches and neighbourhoods; "
        "0: once, when they start",
    )
    neighbours: int = Field(16, ge=1, le=4096, description="Neighbours of each centre in a neighbourhood")

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.classes * self.samples < 4:
            raise ValueError("samples: a batch needs at least four samples")
        return self


if TYPE_CHECKING:
    OptimiserName = str
else:
    OptimiserName = Literal[tuple(optimisers.OPTIMISERS)]


class _AnyOptimiserSpec(Section):
    name: OptimiserName = Field("adam", description="Optimiser")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="Learning rate of the network")
    weight_decay: float = Field(0.0, ge=0, le=1, description="L2 penalty on the parameters")
    decay_batch_norm: bool = Field(True, description="Apply the weight decay to batch norm and biases too")
    head_factor: float = Field(
        1.0,
        gt=0,
        le=1000,
        description="Ratio of the learning rate of pooling and embedding layer to that of the backbone",
    )
    clip_value: float = Field(0.0, ge=0, description="Maximum gradient of a weight; 0: no clipping")
    clip_norm: float = Field(0.0, ge=0, description="Maximum norm of the gradient; 0: no clipping")


if TYPE_CHECKING:
    OptimiserSpec = _AnyOptimiserSpec
else:
    # with the settings of single optimisers from the catalogue
    OptimiserSpec = create_model(
        "OptimiserSpec", __base__=_AnyOptimiserSpec, __module__=__name__, **optimisers.fields()
    )


class ScheduleSpec(Section):
    steps: int = Field(400, ge=1, le=10_000_000, description="Optimiser steps, one batch each")
    validate_every: int = Field(50, ge=1, description="Steps between two validations")
    monitor: Literal["map_at_r", "recall_at_1"] = Field(
        "map_at_r", description="Score that selects the best weights and detects plateaus"
    )
    monitor_part: Literal["validation", "test"] = Field(
        "validation",
        description="Split on which it is measured; test: as in many papers, which makes test scores too high",
    )
    patience: int = Field(0, ge=0, description="Validations without improvement before stopping; 0: no early stopping")
    plateau: int = Field(
        0, ge=0, description="Validations without improvement before the learning rate is reduced; 0: never"
    )
    plateau_factor: float = Field(0.5, gt=0, lt=1, description="Factor on the learning rate at a plateau")
    decay: Literal["none", "step", "cosine"] = Field(
        "none", description="Learning rate schedule: constant, reduced in steps, or a half cosine to 0"
    )
    decay_every: int = Field(1000, ge=1, description="Steps between two reductions of a step decay")
    decay_factor: float = Field(0.1, gt=0, lt=1, description="Factor of each reduction of a step decay")
    warm_up: int = Field(
        0, ge=0, description="Initial steps that train new parts only: pooling, embedding layer, loss parameters"
    )
    checkpoint_every: int = Field(50, ge=1, description="Steps between two checkpoints")
    keep_every: int = Field(
        0,
        ge=0,
        description="Steps between two kept checkpoints, in addition to the first and the last, for inspection and "
        "forks; each takes up to 4 times the network's weights on disk. 0: none are kept",
    )
    measure_every: int = Field(
        10, ge=1, description="Steps between two measurements of the batch's distances, gradients and spectrum"
    )
    covering_every: int = Field(
        0,
        ge=0,
        description="Steps between two measurements of the covering radii of training and test classes; 0: none",
    )
    cluster: bool = Field(False, description="Also cluster at each validation, for the NMI of its embeddings")
    validate_test: bool = Field(
        False,
        description="Also score the test split at each validation, to show what selection on it would gain; these "
        "scores select nothing",
    )


Class = Annotated[int, Field(ge=0, le=10_000_000)]
MAX_SAMPLES = 10_000  # maximum number of samples that `fork.leave_out_samples` may list
Sample = Annotated[int, Field(ge=0)]
Relabelled = Annotated[tuple[Sample, Class], Field(strict=False)]


class ForkSpec(Section):
    run: str = Field("", pattern=r"^([a-z0-9][a-z0-9-]{0,63})?$", description="Run to continue from; empty: none")
    step: int = Field(0, ge=0, description="Step of that run's kept checkpoint; step numbers continue from it")
    leave_out: Annotated[tuple[Class, ...], Field(strict=False)] = Field(
        (), description="Classes, by number, removed from the training split"
    )
    leave_out_samples: Annotated[tuple[Sample, ...], Field(strict=False, max_length=MAX_SAMPLES)] = Field(
        (), description="Samples, by number, removed from the training split"
    )
    relabel: Annotated[tuple[Relabelled, ...], Field(strict=False)] = Field(
        (), description="Samples of the training split with another class: pairs of sample and class number"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("step", "leave_out", "leave_out_samples", "relabel"):
            if getattr(self, key) and not self.run:
                raise ValueError(f"{key}: needs fork.run, the run to fork")
        samples = [sample for sample, _ in self.relabel]
        if len(set(samples)) < len(samples):
            raise ValueError("relabel: each sample can have only one class")
        return self


class ComputeSpec(Section):
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="Arithmetic of the network; losses and scores are always float32"
    )
    compile: bool = Field(
        False, description="Compile the network with torch.compile: minutes at first, then faster steps"
    )
    graphs: bool = Field(
        False, description="On a GPU, launch a network in bfloat16 whose shapes are fixed as CUDA graphs"
    )
    workers: int = Field(
        -1, ge=-1, le=64, description="Processes that read batches; -1: some for long runs on a GPU, else none"
    )

    @model_validator(mode="after")
    def _one_launch(self) -> Self:
        if self.compile and self.graphs:
            raise ValueError("graphs: a network is compiled or launched as CUDA graphs; set one of compile and graphs")
        return self
