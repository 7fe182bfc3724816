"""Fixtures shared by the tests of figures."""

import pytest


@pytest.fixture
def skip_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the layout of figures, a third of the drawing time, for tests of their texts.

    The formulas of all losses are laid out in test_fields, which draws every loss with all layers.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: {})
