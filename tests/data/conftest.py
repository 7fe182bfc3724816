from pathlib import Path

import pytest

PACKS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("unpacked")


@pytest.fixture(autouse=True)
def _own_cache(cache, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(cache))


@pytest.fixture
def pack():
    """Return the path of a pack of real data by its file name; each is unpacked once per session."""

    def path(name: str) -> Path:
        if not (PACKS / name).is_file():
            pytest.skip(f"the data pack {name} is not in {PACKS}")
        return PACKS / name

    return path
