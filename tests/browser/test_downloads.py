"""Each file that a page offers can be downloaded."""

from __future__ import annotations

import pytest

from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser

PAGES = {
    "fields": 3,
    "compare": 1,
    "sphere": 5,
    "pair_weights": 3,
    "charges?step=1": 2,
    "prototypes": 1,
    "transport": 6,
    "gap_vs_gsp?step=1": 2,
}  # least number of files by page


@pytest.mark.parametrize("name", PAGES)
def test_every_offered_file_comes(page, server, name):
    go(page, f"{server.url}/{name}")
    links = page.locator("a[download]")

    def addresses() -> list[str]:
        return [link.evaluate("link => link.href") for link in links.all()]

    offered = becomes(addresses, lambda found: len(found) >= PAGES[name] and all("/api/" in each for each in found))
    for address in offered:
        answer = page.request.get(address)
        assert (answer.status, address) == (200, address)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.body()
