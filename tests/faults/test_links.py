"""A small fixed sample of the hostile links of `tests.faults.links`, and links that once broke a page."""

from __future__ import annotations

import pytest

from tests.faults import links
from tests.faults.links import Store

BROKE = (
    ("fork", {"step": "9" * 5000}),  # int() of too many digits
    ("settings", {"base": "digits", "set": "ks=" + "[" * 3000}),
    ("settings", {"base": "digits", "set": "loss.m=abc"}),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DML_RUNS", "")  # restored afterwards
        yield links.prepared(tmp_path_factory.mktemp("runs"), patch)


def test_no_hostile_link_ends_in_an_error_or_a_line_in_the_log(store: Store) -> None:
    failures = links.attack(store, links=22, seed=1)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(("page", "query"), BROKE, ids=lambda value: value if isinstance(value, str) else "")
def test_links_that_broke_a_page(store: Store, page: str, query: dict[str, str]) -> None:
    app = links.opened(page, {"run": store.trained.id} | query)
    assert not app.exception
