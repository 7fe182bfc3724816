"""Data sets as the page shows them, read once for all: the keys are plain parameters and the state of the files."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st
from PIL import Image

from dmlcore import data
from dmlcore.data import DataError, Folds, checks, report
from dmlcore.data.dataset import Split, Validation
from dmlcore.data.report import Found, Report

SIDE = 96  # pixels, longest side of a picture on the page


@dataclass(frozen=True)
class Where:
    """A data set, the folder that was given for it, and its files: what a cache may be keyed by."""

    name: str
    root: str | None
    place: str
    changed: int  # nanoseconds
    seed: int = 0


@dataclass(frozen=True)
class Cut:
    """How it is split."""

    split: str | None = None
    validation: str | None = None
    folds: int = 0
    fold: int = 1
    order: Literal["contiguous", "random"] = "contiguous"


def place_of(name: str, root: str | None) -> Path | None:
    """Where its files are; raises DataError."""
    return data.available(name, root)


def where(name: str, root: str | None, place: Path, seed: int) -> Where:
    """The key of what lies at `place`."""
    try:
        changed = place.stat().st_mtime_ns if data.describe(name).needs_files else 0
    except OSError:
        changed = 0
    return Where(name, root, str(place), changed, seed)


def found(at: Where) -> Found:
    """What is there; reads the data set the first time."""
    return _found(at.name, at.root, at.place, at.changed, at.seed)


def divided(at: Where, cut: Cut) -> Report:
    """The same, split and counted."""
    return _divided(at.name, at.root, at.place, at.changed, at.seed, *_plain(cut))


def picture(at: Where, index: int) -> str:
    """A sample as a small picture in a data: address; raises DataError."""
    return _picture(at.name, at.root, at.place, at.changed, at.seed, index)


def stamp(at: Where) -> str:
    """What a check is compared with: sizes and times of all files, looked at once a minute."""
    return _stamp(at.name, at.root, at.place, at.changed, at.seed)


def forget() -> None:
    """Read everything anew: files were put in their place."""
    _found.clear()
    _divided.clear()
    _picture.clear()
    _stamp.clear()


def _plain(cut: Cut) -> tuple[Any, ...]:
    return cut.split, cut.validation, cut.folds, cut.fold, cut.order


@st.cache_resource(max_entries=4, ttl=900, show_spinner="Reading the data set; an archive is unpacked once …")
def _found(name: str, root: str | None, place: str, changed: int, seed: int) -> Found:
    read = report.find(name, root, seed=seed)
    report.remember(read)
    return read


@st.cache_resource(max_entries=8, ttl=900, show_spinner=False)
def _divided(
    name: str,
    root: str | None,
    place: str,
    changed: int,
    seed: int,
    split: Split | None,
    validation: Validation | None,
    folds: int,
    fold: int,
    order: Literal["contiguous", "random"],
) -> Report:
    read = _found(name, root, place, changed, seed)
    try:
        chosen = Folds(folds, fold, order, seed) if folds else None
    except DataError as error:
        return Report(read, None, (), (), (), (), (*read.problems, str(error)))
    return report.divide(read, split=split, validation=validation, folds=chosen, seed=seed)


@st.cache_data(max_entries=2048, ttl=900, show_spinner=False)  # some 4 kB each
def _picture(name: str, root: str | None, place: str, changed: int, seed: int, index: int) -> str:
    samples = _found(name, root, place, changed, seed).samples
    if samples is None or samples.picture is None:
        raise DataError(f"{name} has no pictures")
    pixels = samples.picture(index)
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    if tiny := max(pixels.shape[:2]) <= SIDE:
        image.save(file, "PNG")
    else:
        image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        image.save(file, "JPEG", quality=85)
    return f"data:image/{'png' if tiny else 'jpeg'};base64," + base64.b64encode(file.getvalue()).decode()


@st.cache_data(max_entries=16, ttl=60, show_spinner=False)
def _stamp(name: str, root: str | None, place: str, changed: int, seed: int) -> str:
    samples = _found(name, root, place, changed, seed).samples
    return checks.stamp_of(samples) if samples else ""


@st.cache_data(max_entries=16, ttl=900, show_spinner=False)
def _plane(name: str, root: str | None, place: str, changed: int, seed: int) -> tuple[Any, Any]:
    samples = _found(name, root, place, changed, seed).samples
    assert samples is not None
    rows = np.random.default_rng(0).permutation(len(samples.labels))[:MOST_POINTS]
    vectors = np.asarray(samples.inputs[rows], np.float64)
    vectors -= vectors.mean(0)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return rows, vectors @ axes[:, :-3:-1]


MOST_POINTS = 2000  # of a scatter


def plane(at: Where) -> tuple[Any, Any]:
    """Rows (n,) of a data set of vectors, and their first two principal components (n, 2)."""
    return _plane(at.name, at.root, at.place, at.changed, at.seed)
