"""The spec of a run: one frozen, validated description; what it consists of lies in `sections`."""

from dmlcore.spec.run_spec import RunSpec, SpecError, flat, keys
from dmlcore.spec.sections import DataSpec, ModelSpec, PoolingSpec

__all__ = ["DataSpec", "ModelSpec", "PoolingSpec", "RunSpec", "SpecError", "flat", "keys"]
