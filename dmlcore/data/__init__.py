"""Data sets: `load(name)` reads a data set in its official layout and splits it."""

from dmlcore.catalogue import load_plugins
from dmlcore.data.class_folds import Folds
from dmlcore.data.dataset import DataError, Dataset, Description, Inputs, MissingImages, Samples
from dmlcore.data.load import available, describe, divide, load, locate, names, read

__all__ = [
    "DataError",
    "Dataset",
    "Description",
    "Folds",
    "Inputs",
    "MissingImages",
    "Samples",
    "available",
    "describe",
    "divide",
    "load",
    "locate",
    "names",
    "read",
]


load_plugins()  # last, because plugins import this package
