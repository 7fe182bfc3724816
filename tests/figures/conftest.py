"""What tests of figures share."""

import pytest


@pytest.fixture
def words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are not laid out, a third of the time of drawing one: for a test of what stands in them, not where.

    That the formula of each loss can be set is seen where it is (test_fields: every loss is drawn with all layers).
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: {})
