"""Specs of training runs: frozen and validated settings, grouped into the sections of `sections`."""

from dmlcore.spec.run_spec import RunSpec, SpecError, flat, keys
from dmlcore.spec.sections import DataSpec, ModelSpec, PoolingSpec

__all__ = ["DataSpec", "ModelSpec", "PoolingSpec", "RunSpec", "SpecError", "flat", "keys"]
