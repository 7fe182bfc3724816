"""RunSpec: everything that decides a training, as frozen, validated plain data (TOML, JSON, overrides, digest)."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo


class SpecError(ValueError):
    """A spec that cannot be used; the message has one line per mistake, each beginning with the key."""


def _hyper_parameter(value: object) -> float | str:
    """Numbers become floats; "inf" is the JSON spelling of infinity, which JSON itself lacks."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("must be a number or a word")
    if isinstance(value, str):
        return math.inf if value == "inf" else value
    if math.isnan(value) or value == -math.inf:
        raise ValueError("must be a number or inf")
    return float(value)


def _printable(text: str) -> str:
    """Refuse control and direction-changing characters: a name is shown in tables and logs."""
    if not text.isprintable():
        raise ValueError("must be printable text on one line")
    return text


HyperParameter = Annotated[float | str, BeforeValidator(_hyper_parameter)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=65536)], ...], Field(strict=False, max_length=8)]
Ranks = Annotated[tuple[Annotated[int, Field(ge=1, le=100_000)], ...], Field(strict=False, min_length=1, max_length=16)]


class _Section(BaseModel):
    # strict: `steps = "100"` and `steps = true` are mistakes, not numbers.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DataSpec(_Section):
    name: str = Field("digits", min_length=1, max_length=64, description="Data set, as in dmlcore.data.names()")
    root: str | None = Field(None, description="Folder that holds the data set or its archive; empty: the usual places")
    split: Literal["classes", "samples", "own"] | None = Field(
        None, description="Test on unseen classes, or on unseen samples of known classes; empty: as the data set does"
    )
    validation: Literal["classes", "samples", "none", "own"] | None = Field(
        None, description="What validation holds out of the training part; empty: as the data set does"
    )
    image_size: int | None = Field(
        None, ge=32, le=512, description="Side of the square pictures in pixels; empty: as stored"
    )
    augment: bool = Field(True, description="Flip and shift the training pictures at random")


class ModelSpec(_Section):
    name: Literal["mlp", "resnet20", "resnet18", "resnet50", "tokens"] = Field(
        "mlp", description="Network: mlp for vectors, a resnet for pictures, tokens for bags of tokens"
    )
    hidden: Widths = Field((128,), description="Widths of the hidden layers of an mlp")
    embedding_dim: int = Field(64, ge=1, le=4096, description="Dimension of the embedding space")
    normalize: bool = Field(True, description="Put embeddings on the unit sphere (L2 normalisation)")
    start: str | None = Field(
        None, max_length=4096, description="Run id or weights file the backbone starts from; empty: at random"
    )


class PoolingSpec(_Section):
    name: Identifier = Field("gap", description="Pooling of pictures and bags, as listed by dmlcore.pooling.names()")
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Parameters of the pooling; those left out keep their defaults"
    )
    zero_shot: float = Field(
        0.0, ge=0, lt=1, description="Share of the zero-shot prediction loss in the whole, for pooling with prototypes"
    )
    ridge: float = Field(0.05, gt=0, le=100, description="Ridge weight of the zero-shot prediction")
    logit_scale: float = Field(9.5, gt=0, le=1000, description="Scale of the logits of the zero-shot prediction")


class LossSpec(_Section):
    name: Identifier = Field("ranking", description="Loss, as listed by dmlcore.losses.names()")
    parameters: dict[Identifier, HyperParameter] = Field(
        default_factory=dict, description="Hyper-parameters of the loss; those left out keep their defaults"
    )
    reduction: Literal["mean_valid", "mean_nonzero", "mean_raw"] = Field(
        "mean_valid", description="Mean over all valid triplets, over those with a positive loss, or without clamps"
    )


class BatchSpec(_Section):
    classes: int = Field(8, ge=2, le=4096, description="Classes per batch")
    samples: int = Field(8, ge=2, le=4096, description="Samples of each class per batch")


class OptimiserSpec(_Section):
    name: Literal["rmsprop", "adam"] = Field("adam", description="Optimiser")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="Learning rate of network and loss parameters")
    weight_decay: float = Field(0.0, ge=0, le=1, description="L2 penalty on the parameters")


class ScheduleSpec(_Section):
    steps: int = Field(400, ge=1, le=10_000_000, description="Optimiser steps, one batch each")
    validate_every: int = Field(50, ge=1, description="Steps between two validations")
    patience: int = Field(
        0, ge=0, description="Validations without a better MAP@R before stopping; 0: never stop early"
    )
    plateau: int = Field(
        0, ge=0, description="Validations without a better MAP@R before the learning rate is halved; 0: never"
    )
    checkpoint_every: int = Field(50, ge=1, description="Steps between two checkpoints")


class RunSpec(_Section):
    """What is trained, on what, how, and how it is judged; `RunSpec()` is the digits default."""

    name: Annotated[str, AfterValidator(_printable)] = Field(
        "", max_length=80, description="Label of the run, free text"
    )
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Everything random is a function of (seed, step)")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: CUDA where present, otherwise CPU")
    ks: Ranks = Field((1, 2, 4, 8), description="K of the reported R@K and P@K")
    data: DataSpec = DataSpec()
    model: ModelSpec = ModelSpec()
    pooling: PoolingSpec = PoolingSpec()
    loss: LossSpec = LossSpec()
    batch: BatchSpec = BatchSpec()
    optimiser: OptimiserSpec = OptimiserSpec()
    schedule: ScheduleSpec = ScheduleSpec()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("patience", "plateau"):
            if getattr(self.schedule, key) and self.data.validation == "none":
                raise ValueError(f'schedule.{key}: needs a validation part, but data.validation is "none"')
        return self

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> RunSpec:
        """Build a spec from nested plain data; raises SpecError naming every unknown or bad key."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise SpecError("\n".join(_explain(item) for item in error.errors())) from None

    @classmethod
    def from_toml(cls, text: str) -> RunSpec:
        """Read TOML text; raises SpecError."""
        try:
            return cls.parse(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"not TOML: {error}") from None

    def to_toml(self) -> str:
        """TOML text that `from_toml` reads back; keys without a value are left out."""
        return tomli_w.dumps(_without_none(self.model_dump()))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Read JSON text; raises SpecError."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise SpecError(f"not JSON: {error}") from None
        if not isinstance(data, dict):
            raise SpecError(f"not a spec: expected a JSON object, got {type(data).__name__}")
        return cls.parse(data)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, infinity written as "inf"."""
        return json.dumps(_json_safe(self.model_dump()), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def with_overrides(self, assignments: Iterable[str]) -> RunSpec:
        """Return a copy with `key=value` applied in order, for example `schedule.steps=100` or `loss.m=0.2`.

        Values are TOML; a bare word is a string. `loss.x` means `loss.parameters.x`, and a new `loss.name` drops the
        parameters of the old loss; the same for `pooling`. Raises SpecError.
        """
        data = self.model_dump()
        for assignment in assignments:
            key, equals, text = assignment.partition("=")
            if not equals or not key.strip():
                raise SpecError(f"{assignment}: expected key=value, for example schedule.steps=100")
            _assign(data, key.strip(), _toml_value(key.strip(), text.strip()))
        return self.parse(data)

    def differences(self, other: RunSpec) -> list[str]:
        """One line `key: mine | theirs` for each key whose values differ."""
        mine, theirs = dict(_flatten(self.model_dump())), dict(_flatten(other.model_dump()))
        keys = sorted(mine.keys() | theirs.keys())
        return [f"{k}: {mine.get(k)!r} | {theirs.get(k)!r}" for k in keys if mine.get(k) != theirs.get(k)]


def keys() -> dict[str, FieldInfo]:
    """Every settable key in dotted form with its type, default and description, for forms and --help."""
    found: dict[str, FieldInfo] = {}
    for name, field in RunSpec.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, _Section):
            found |= {f"{name}.{inner}": value for inner, value in section.model_fields.items()}
        else:
            found[name] = field
    return found


def _explain(error: Any) -> str:
    """One readable line for one pydantic error."""
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        parent = ".".join(path[:-1])
        known = sorted(
            {k.removeprefix(parent + ".").split(".")[0] for k in keys() if not parent or k.startswith(parent)}
        )
        near = difflib.get_close_matches(path[-1], known, 1)
        return f"{key}: unknown key" + (f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(known)}")
    message = str(error["msg"]).removeprefix("Value error, ")
    if not key:
        return message
    return f"{key}: {message[0].lower()}{message[1:]}, got {error['input']!r}"


_WITH_PARAMETERS: dict[str, type[_Section]] = {"loss": LossSpec, "pooling": PoolingSpec}


def _toml_value(key: str, text: str) -> Any:
    """Parse one TOML value; what is not TOML is taken as a bare word."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    if parsed.keys() != {"value"}:
        raise SpecError(f"{key}: expected one value, got {text!r}")
    return parsed["value"]


def _assign(data: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted `key` in nested `data`, creating what is missing; unknown keys are left to the validation."""
    *parents, last = key.split(".")
    section = parents[0] if len(parents) == 1 else ""
    if section in _WITH_PARAMETERS and last not in _WITH_PARAMETERS[section].model_fields:
        parents = [section, "parameters"]
    target = data
    for depth, parent in enumerate(parents):
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise SpecError(f"{key}: {'.'.join(parents[: depth + 1])} is a value, not a section")
    if last == "name" and section in _WITH_PARAMETERS and target.get("name") != value:
        target["parameters"] = {}
    target[last] = value


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_none(v) if isinstance(v, dict) else v for k, v in data.items() if v is not None}


def _json_safe(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _json_safe(v) for k, v in value.items()}
    return "inf" if value == math.inf else value


def _flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
