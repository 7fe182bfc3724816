"""Embeddings from arrays, tensors and data frames."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from dmlcore.data import DataError
from dmlcore.data.embedding_sets.files import from_arrays
from tests.data.embedding_sets import samples

VALUES = samples.vectors()


def whole(table) -> np.ndarray:
    return np.concatenate(list(table.vectors.chunks(7)))


@pytest.mark.parametrize(
    "vectors",
    [
        VALUES,
        VALUES.tolist(),
        VALUES[::-1][::-1],
        torch.tensor(VALUES, requires_grad=True),
        pd.DataFrame(VALUES),
        pd.Series(list(VALUES)),
    ],
)
def test_vectors_of_any_kind_are_accepted(vectors) -> None:
    assert np.allclose(whole(from_arrays(vectors)), VALUES, rtol=1e-6)


def test_bfloat16_tensors_become_float32() -> None:
    table = from_arrays(torch.tensor(VALUES).bfloat16())
    assert table.vectors.dtype == np.float32
    assert np.allclose(whole(table), VALUES, rtol=1e-2)


@pytest.mark.parametrize(
    "columns",
    [
        {"label": samples.labels(), "n": np.arange(60)},
        {"label": np.array(samples.labels()), "n": torch.arange(60)},
        {"label": np.array(samples.labels(), dtype=object), "n": range(60)},
        pd.DataFrame({"label": samples.labels(), "n": np.arange(60)}),
        pd.DataFrame({"label": pd.Categorical(samples.labels()), "n": np.arange(60)}),
        pa.table({"label": samples.labels(), "n": range(60)}),
    ],
)
def test_columns_of_any_kind_are_accepted(columns) -> None:
    table = from_arrays(VALUES, columns)
    assert table.columns.to_pydict() == {"label": samples.labels(), "n": list(range(60))}


@pytest.mark.parametrize(
    ("vectors", "columns", "message"),
    [
        ([[1.0, 2.0], [1.0]], None, "embeddings is not a rectangular array"),
        (None, None, "no embeddings were given; pass an array"),
        (VALUES, {"label": ["a"]}, "columns has 1 rows, but arrays has 60 vectors"),
        (VALUES, {"a": [1], "b": [1, 2]}, r"the columns have different lengths \(a: 1, b: 2\)"),
        (VALUES, ["a"], "columns must be a mapping, a DataFrame or an Arrow table, got list"),
        (VALUES, {"a": [object()] * 60}, "the columns cannot be converted"),
        (VALUES > 0, None, "embeddings contains true/false values"),
        ("other", {"label": [1]}, "arrays has no column other; it has label"),
    ],
)
def test_what_does_not_fit_is_named(vectors, columns, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_arrays(vectors, columns)
