"""The glossary: the table in Python and docs/glossary.md agree, and help texts contain the definitions."""

from __future__ import annotations

import pytest

from pages.shared.words import glossary


def test_the_document_is_the_table() -> None:
    assert glossary.PATH.read_text(encoding="utf-8") == glossary.document()


def test_help_texts_hold_the_definitions() -> None:
    shown = glossary.explain("anchor, positive, negative", "force")
    assert shown.startswith("**anchor, positive, negative**: The three samples")
    assert glossary.TERMS["force"] in shown
    with pytest.raises(KeyError):
        glossary.explain("no such term")
