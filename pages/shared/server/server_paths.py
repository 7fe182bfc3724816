"""Files and folders of the server's machine that a visitor may name."""

from __future__ import annotations

from pathlib import Path

from dmlcore.data.dataset import DataError
from dmlcore.data.files import locate
from dmlcore.storage.home import HOME
from pages.shared.server.access import Access, is_loopback, listening

EXAMPLES = HOME / "docs" / "embeddings"  # files that ship with the app


def is_shared(access: Access | None = None) -> bool:
    """Return True if people on other machines can reach the app, directly or through a proxy."""
    rule = (access or Access.from_environment()).rule
    return rule == "proxy" or not all(is_loopback(host) for host, _ in listening())


def allowed_folders() -> list[Path]:
    """Return the folders below which visitors may name files: all of the machine, unless the app is shared."""
    return [*locate.search_folders(), EXAMPLES] if is_shared() else [Path("/")]


def require_allowed(text: str) -> Path:
    """Return the path that a visitor entered; a relative one is relative to the folder of the app.

    If the app is shared, only files below the data folders are allowed, so that visitors from other machines cannot
    read text files of the account that runs the app.

    Raises:
        DataError: If the path is not allowed or malformed.
    """
    try:
        path = Path(text).expanduser()
        path = path if path.is_absolute() else HOME / path
        inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in allowed_folders())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, or a NUL byte
        raise DataError(f"{text}: this path cannot be used ({error}); check it") from error
    if not inside:
        raise DataError(
            f"{text} is outside the data folder {locate.search_folders()[0]}; this app is shared, so it reads only "
            "files in that folder: move the file there, or upload it"
        )
    return path
