"""RunSpec: all settings of a training run as frozen, validated data that converts to TOML, to JSON and to a digest."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from dmlcore.spec.first_defaults import FIRST
from dmlcore.spec.sections import (
    WITHOUT_BACKBONE,
    BatchSpec,
    ComputeSpec,
    ConditioningSpec,
    DataSpec,
    ForkSpec,
    LossSpec,
    MethodSpec,
    MinerSpec,
    ModelSpec,
    OptimiserSpec,
    PoolingSpec,
    ProjectionSpec,
    ScheduleSpec,
    Section,
    brief,
    explain_error,
)

MAX_LENGTH = 1_000_000  # maximum number of characters of a spec, and of one override
MAX_DEPTH = 8  # maximum nesting depth of lists and tables in a spec; the spec itself needs four levels
TOO_DEEP = f"lists and tables can be nested at most {MAX_DEPTH} levels deep"
MAX_OVERRIDES = 1000
MAX_KEY_LENGTH = 80  # maximum number of characters of a key quoted in an error message; longer keys are truncated


class SpecError(ValueError):
    """Error for an invalid spec; the message has one line per mistake, each starting with the key."""


def _printable(text: str) -> str:
    """Return `text`; raise ValueError for control or text-direction characters, because names are shown in tables."""
    if not text.isprintable():
        raise ValueError("must be printable text on one line")
    return text


Ranks = Annotated[tuple[Annotated[int, Field(ge=1, le=100_000)], ...], Field(strict=False, min_length=1, max_length=16)]


class RunSpec(Section):
    """All settings of a training run: data, model, loss, optimisation and evaluation; `RunSpec()` trains on digits."""

    name: Annotated[str, AfterValidator(_printable)] = Field(
        "", max_length=80, description="Label of the run, free text"
    )
    protocol: Annotated[str, AfterValidator(_printable)] = Field(
        "", max_length=80, description="Published protocol that the spec follows"
    )
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Everything random is a function of (seed, step)")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: CUDA where present, otherwise CPU")
    ks: Ranks = Field((1, 2, 4, 8), description="K of the reported R@K and P@K")
    data: DataSpec = DataSpec()
    model: ModelSpec = ModelSpec()
    pooling: PoolingSpec = PoolingSpec()
    loss: LossSpec = LossSpec()
    projection: ProjectionSpec = ProjectionSpec()
    conditioning: ConditioningSpec = ConditioningSpec()
    method: MethodSpec = MethodSpec()
    miner: MinerSpec = MinerSpec()
    batch: BatchSpec = BatchSpec()
    optimiser: OptimiserSpec = OptimiserSpec()
    schedule: ScheduleSpec = ScheduleSpec()
    compute: ComputeSpec = ComputeSpec()
    fork: ForkSpec = ForkSpec()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        without = self.data.validation == "none" and self.schedule.monitor_part == "validation"
        for section, key in (("schedule", "patience"), ("schedule", "plateau"), ("projection", "pool")):
            if getattr(getattr(self, section), key) and without:
                raise ValueError(f'{section}.{key}: needs a validation split, but data.validation is "none"')
        if self.model.normalize and self.model.lipschitz:
            raise ValueError(
                "model.lipschitz: normalised embeddings are already inside the unit ball; set model.normalize=false"
            )
        if self.loss.start_weight and not (self.model.start or self.fork.run):
            raise ValueError(
                "loss.start_weight: embeddings are pulled towards those of a pretrained network; set its weights in "
                "model.start, or set it to 0"
            )
        if self.model.name == "tokens":
            for key, default in (("dropout", 0.0), ("embedding_start", "random"), ("embedding_scale", 1.0)):
                if getattr(self.model, key) != default:
                    raise ValueError(f"model.{key}: bags of tokens have no embedding layer; set it to {default}")
        frozen = self.model.freeze != "none"
        if frozen and self.model.name in WITHOUT_BACKBONE:
            raise ValueError(f"model.freeze: {self.model.name} has no backbone; choose none, or a network for images")
        if self.model.gather != "none" and (
            self.model.freeze == "early" or self.model.keep_classifier or self.model.name in WITHOUT_BACKBONE
        ):
            raise ValueError(
                "model.gather: features of earlier depths need images, a backbone that learns or is frozen as a whole, "
                "and no kept classifier; choose none"
            )
        if frozen and self.data.fresh:
            raise ValueError(
                "data.fresh: the cached features of a frozen backbone need fixed collages; set it to false"
            )
        if self.data.views and not (frozen and self.data.augment):
            raise ValueError("data.views: needs model.freeze = backbone or early, and data.augment = true; set it to 0")
        self._conditioned()
        return self

    def _conditioned(self) -> None:
        c, schedule = self.conditioning, self.schedule
        if not c.neighbours:
            return
        if c.after > schedule.steps:
            raise ValueError(f"conditioning.after: must be at most schedule.steps = {schedule.steps}, got {c.after}")
        if c.by == "mean" and not c.continued and c.after < schedule.steps:
            raise ValueError(
                "conditioning.by: the mean has no parameters to train; set conditioning.after to schedule.steps, or "
                "conditioning.continued to true"
            )
        if c.after and schedule.patience:
            raise ValueError("schedule.patience: may stop the run before conditioning.after; set it to 0")
        for key, used in (("projection.pool", self.projection.pool), ("loss.memory", self.loss.memory)):
            if used:
                raise ValueError(f"{key}: relies on embeddings that conditioning.neighbours changes; set it to 0")

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> RunSpec:
        """Build a spec from nested dictionaries; raises SpecError naming every unknown or invalid key."""
        _refuse_excess(data)
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise SpecError("\n".join(explain_error(item, _known_under) for item in error.errors())) from None

    @classmethod
    def from_toml(cls, text: str) -> RunSpec:
        """Build a spec from TOML text; raises SpecError if the text is not valid TOML or not a valid spec."""
        try:
            return cls.parse(_toml(text))
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"not TOML: {error}") from None

    def to_toml(self) -> str:
        """Return the spec as TOML text that `from_toml` can read; keys with the value None are omitted."""
        return tomli_w.dumps(_without_none(self.model_dump()))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Build a spec from JSON text; raises SpecError if the text is not valid JSON or not a valid spec."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"not JSON: {error}") from None
        if not isinstance(data, dict):
            raise SpecError(f"not a spec: expected a JSON object, got {type(data).__name__}")
        return cls.parse(data)

    def to_json(self) -> str:
        """Return the spec as canonical JSON: sorted keys, no spaces, infinity as "inf"."""
        return json.dumps(_json_safe(self.model_dump()), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def digest(self) -> str:
        """Return the SHA-256 of all values that differ from the first defaults (`FIRST`), as 64 hexadecimal digits.

        New keys and changed defaults in later releases do not alter the digest, so equal digests mean equal
        experiments.
        """
        text = json.dumps(_json_safe(_different_values(FIRST, self)), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def with_overrides(self, assignments: Iterable[str]) -> RunSpec:
        """Return a copy with `key=value` assignments applied in order, such as `schedule.steps=100` or `loss.m=0.2`.

        Values are TOML; a bare word is a string. `loss.x` is short for `loss.parameters.x`, and a new `loss.name`
        removes the parameters of the previous loss; the same applies to `pooling`, `method` and `miner`.

        Raises SpecError.
        """
        data = self.model_dump()
        for count, assignment in enumerate(assignments, 1):
            if count > MAX_OVERRIDES:
                raise SpecError(f"more than {MAX_OVERRIDES:,} settings were changed; write them to a file")
            key, equals, text = assignment.partition("=")
            if not equals or not key.strip():
                raise SpecError(f"{assignment[:MAX_KEY_LENGTH]}: expected key=value, for example schedule.steps=100")
            _assign(data, key.strip(), _toml_value(key.strip(), text.strip()))
        return self.parse(data)

    def differences(self, other: RunSpec) -> list[str]:
        """Return one line "key: own value | other value" per key with different values in `self` and `other`."""
        mine, theirs = flat(self), flat(other)
        keys = sorted(mine.keys() | theirs.keys())
        return [f"{k}: {mine.get(k)!r} | {theirs.get(k)!r}" for k in keys if mine.get(k) != theirs.get(k)]


def flat(spec: RunSpec) -> dict[str, Any]:
    """Return all values of a spec by dotted key, for example "schedule.steps" and "loss.parameters.m"."""
    return dict(_flatten(spec.model_dump()))


@cache
def keys() -> Mapping[str, FieldInfo]:
    """Return every settable key in dotted form with its type, default and description, for forms and --help."""
    fields: dict[str, FieldInfo] = {}
    for name, field in RunSpec.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            fields |= {f"{name}.{inner}": value for inner, value in section.model_fields.items()}
        else:
            fields[name] = field
    return fields


def _known_under(path: Sequence[str]) -> list[str]:
    """Return the names directly below `path`: the keys of a section, or the top-level names for an empty path."""
    parent = ".".join(path)
    return sorted({k.removeprefix(parent + ".").split(".")[0] for k in keys() if not parent or k.startswith(parent)})


_WITH_PARAMETERS: dict[str, type[Section]] = {
    "loss": LossSpec,
    "pooling": PoolingSpec,
    "method": MethodSpec,
    "miner": MinerSpec,
}


def _toml(text: str) -> dict[str, Any]:
    """Parse TOML; raises TOMLDecodeError, or SpecError for text that is too long or nested too deeply."""
    if len(text) > MAX_LENGTH:
        raise SpecError(f"at most {MAX_LENGTH:,} characters can be read, got {len(text):,}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise SpecError(f"{TOO_DEEP}, got {brief(text)}") from None
    except ValueError:  # Python raises ValueError for a decimal integer of more than 4,300 digits
        raise SpecError(f"a number has too many digits: {brief(text)}") from None


def _toml_value(key: str, text: str) -> Any:
    """Parse one TOML value; text that is not valid TOML is returned unchanged, as a string without quotes."""
    try:
        parsed = _toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except SpecError as error:
        raise SpecError(f"{key[:MAX_KEY_LENGTH]}: {error}") from None
    if parsed.keys() != {"value"}:
        raise SpecError(f"{key[:MAX_KEY_LENGTH]}: expected one value, got {brief(text)}")
    return parsed["value"]


def _refuse_excess(value: Any, key: str = "", depth: int = 0) -> None:
    """Raise SpecError for data nested more than MAX_DEPTH levels deep, or for integers that need more than 64 bits."""
    if depth > MAX_DEPTH:
        raise SpecError(f"{key}: {TOO_DEEP}")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            # Recurse only where necessary; parsing the specs of 10,000 stored runs would otherwise take a million
            # calls.
            if not _plain(inner):
                _refuse_excess(
                    inner, f"{key}.{name}"[:MAX_KEY_LENGTH] if key else str(name)[:MAX_KEY_LENGTH], depth + 1
                )
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _refuse_excess(inner, key, depth + 1)
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise SpecError(f"{key}: a whole number of more than 64 bits, got {brief(value)}")


def _plain(value: Any) -> bool:
    """Return True for a scalar that `_refuse_excess` accepts: str, float, bool, None, or an int of at most 64 bits."""
    kind = type(value)
    return kind is str or kind is float or kind is bool or value is None or (kind is int and -(2**63) < value < 2**63)


def _assign(data: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted `key` in nested dictionaries, creating missing sections; unknown keys are not checked here."""
    *parents, last = key.split(".")
    section = parents[0] if len(parents) == 1 else ""
    if section in _WITH_PARAMETERS and last not in _WITH_PARAMETERS[section].model_fields:
        parents = [section, "parameters"]
    target = data
    for depth, parent in enumerate(parents):
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise SpecError(
                f"{key[:MAX_KEY_LENGTH]}: {'.'.join(parents[: depth + 1])[:MAX_KEY_LENGTH]} is a value, not a section"
            )
    if last == "name" and section in _WITH_PARAMETERS and target.get("name") != value:
        target["parameters"] = {}
    target[last] = value


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_none(v) if isinstance(v, dict) else v for k, v in data.items() if v is not None}


def _different_values(first: Mapping[str, Any], values: Section) -> dict[str, Any]:
    """Return the values that differ from the defaults `first`, nested by section; sections without any are omitted."""
    unknown: dict[str, Any] = {}
    # Iterating over `vars` is faster than over the model; a list of runs computes the digest of each run.
    for name, value in vars(values).items():
        if isinstance(value, Section):
            if inner := _different_values(first[name], value):
                unknown[name] = inner
        elif value != first[name]:
            unknown[name] = value
    return unknown


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
