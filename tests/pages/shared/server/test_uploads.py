"""Limits on the uploads of a session, and the deletion of its files when it is closed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from pages.shared.server import host, uploads
from pages.shared.server.access import Access
from pages.shared.server.guard import Guard


@pytest.fixture
def manager(monkeypatch):
    """Streamlit's store of uploaded files with the open sessions a and b."""
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    open_sessions = [SimpleNamespace(session=SimpleNamespace(id=name)) for name in ("a", "b")]
    runtime = SimpleNamespace(
        uploaded_file_mgr=manager, _session_mgr=SimpleNamespace(list_sessions=lambda: open_sessions)
    )
    monkeypatch.setattr(host, "Runtime", SimpleNamespace(exists=lambda: True, instance=lambda: runtime))
    monkeypatch.setattr(uploads, "PER_SESSION", 100)
    monkeypatch.setattr(uploads, "IN_ALL", 150)
    return manager


def put(manager: MemoryUploadedFileManager, session: str, size: int) -> int:
    """Upload a file through the guard and return the status."""

    async def store(scope, receive, send):
        _, file = scope["path"].split("/")[-2:]
        manager.add_file(session, UploadedFileRec(file, "x.png", "image/png", b"x" * size))
        await PlainTextResponse("", 204)(scope, receive, send)

    visitor = TestClient(Guard(store, Access.from_environment({})), base_url="http://localhost")
    name = f"file{len(manager.file_storage.get(session, {}))}"
    return visitor.put(f"/_stcore/upload_file/{session}/{name}", content=b"x" * size).status_code


def test_a_session_and_all_together_have_a_limit(manager):
    assert [put(manager, "a", 40) for _ in range(4)] == [204, 204, 413, 413]
    assert [put(manager, "b", 40) for _ in range(2)] == [204, 413]  # would make 160 bytes in total
    manager.remove_session_files("a")
    assert put(manager, "b", 40) == 204


def test_what_still_arrives_counts(manager):
    seen = []
    guard = Guard(None, Access.from_environment({}))
    upload = {"type": "http", "method": "PUT", "path": "/lab/_stcore/upload_file/a/1", "headers": []}
    chunked = upload | {"headers": [(b"content-length", b"60")]}
    with guard.uploads.admit(chunked) as first, guard.uploads.admit(chunked) as second:
        seen += [first, bool(second)]
    with guard.uploads.admit(chunked) as third, guard.uploads.admit(upload) as of_unknown_size:
        seen += [third, bool(of_unknown_size)]
    assert seen == ["", True, "", True]


def test_files_of_closed_sessions_are_removed_and_others_stay(manager):
    for session in ("a", "closed"):
        manager.add_file(session, UploadedFileRec("1", "x.png", "image/png", b"x" * 80))
    assert put(manager, "a", 10) == 204
    assert host.uploaded_bytes() == {"a": 90}


def test_other_requests_are_not_counted(manager):
    manager.add_file("a", UploadedFileRec("1", "x.png", "image/png", b"x" * 1000))
    guard = Guard(None, Access.from_environment({}))
    for method, path in (("DELETE", "/_stcore/upload_file/a/1"), ("PUT", "/api/x"), ("GET", "/")):
        with guard.uploads.admit({"type": "http", "method": method, "path": path, "headers": []}) as refused:
            assert refused == ""
