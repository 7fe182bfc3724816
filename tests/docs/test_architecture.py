"""The architecture page: its diagram equals the import contract, and paths named in documents exist."""

import re

import pytest

from docs import layers

PATH = re.compile(r"`((?:dmlcore|pages|assets|tests|docs|benchmarks)/[\w./-]+)`")


def test_the_diagram_is_that_of_the_contract():
    page = layers.PAGE.read_text()
    assert all(mark in page for mark in layers.MARKS)
    assert layers.filled(page) == page, "python -m docs.layers"


def test_the_page_is_one_page():
    assert len(layers.PAGE.read_text().splitlines()) <= 100


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/how-it-works.md", "CONTRIBUTING.md", "README.md"])
def test_every_path_that_is_named_is_there(page):
    named = set(PATH.findall((layers.ROOT / page).read_text()))
    # words in CAPITALS are placeholders
    gone = [path for path in named if not re.search(r"\b[A-Z]{3,}\b", path) and not (layers.ROOT / path).exists()]
    assert gone == []
