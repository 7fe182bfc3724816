"""The shared style sheet and script are added to Streamlit's document and to no other response."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from pages.shared.server import static_files
from pages.shared.server.head import Head

PAGE = "<html><head><title>x</title></head><body>" + "y" * 2000 + "</body></html>"


@pytest.fixture
def client(tmp_path):
    """Client of Streamlit's document and a text behind the middleware; both are compressed if the client accepts it."""
    (tmp_path / "index.html").write_text(PAGE)

    async def document(_):
        return FileResponse(tmp_path / "index.html", headers={"Cache-Control": "no-cache"})

    async def text(_):
        return PlainTextResponse("</head>" * 200)

    routes = [Route("/text", text), Route("/train", document)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Head), Middleware(GZipMiddleware)]))


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip"}


def test_both_files_are_in_the_head_and_served(client):
    answer = client.get("/train", headers=BROWSER)
    at = f"/api/assets/{static_files.version()}/kit/page/page"
    assert f'<link rel="stylesheet" href="{at}.css"><script type="module" src="{at}.js"></script></head>' in answer.text
    assert answer.text.endswith("</body></html>")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert {"kit/page/page.css", "kit/page/page.js", "kit/formulas.css"} <= static_files.files().keys()


def test_a_browser_never_keeps_the_document_of_another_release(client):
    bare = client.get("/train", headers={"Accept": "*/*", "Accept-Encoding": "identity"})
    asked = {
        "If-None-Match": bare.headers["etag"],
        "If-Modified-Since": bare.headers["last-modified"],
        "Range": "bytes=0-9",
    }
    answer = client.get("/train", headers=BROWSER | asked)
    assert (answer.status_code, "kit/page/page.js" in answer.text) == (200, True)
    assert not {"etag", "last-modified", "accept-ranges"} & answer.headers.keys()
    assert answer.headers["cache-control"] == "no-cache"


def test_all_else_passes_untouched(client):
    assert client.get("/text", headers=BROWSER).text == "</head>" * 200
    assert client.get("/nothing", headers=BROWSER).status_code == 404
    head = client.head("/train", headers=BROWSER)
    assert (head.status_code, head.content) == (200, b"")


def test_an_address_below_a_folder_is_sent_beside_the_pages(client):
    """Relative links of the document would not resolve there, and the page would stay blank."""
    for path, beside in (("/runs/a", "/runs-a"), ("/x//y", "/x--y"), ("/a/..%2F%2Fevil", "/a-..--evil")):
        answer = client.get(path, headers=BROWSER, follow_redirects=False)
        assert answer.status_code == 303, path
        assert answer.headers["location"] == beside
    for path in ("/train", "/", "/api/x/y", "/static/js/x", "/_stcore/upload_file/a/b"):
        assert client.get(path, headers=BROWSER, follow_redirects=False).status_code != 303, path
    assert client.get("/runs/a", headers={"Accept": "*/*"}, follow_redirects=False).status_code == 404


def test_katex_is_that_of_streamlits_own_formulas():
    files = static_files.files()
    assert b"/static/js/rehype-katex." in files["kit/katex.js"][0]
    assert b"/static/css/index." in files["kit/katex.css"][0]
