"""Names of users' own networks, and the permission to import them.

Importing a module executes its code, and the spec of a run may come from somebody else. A network is therefore imported
only if the user of this process has named it: on the command line of `dml train`, or in the environment variable
DML_NETWORKS. Processes that this one starts inherit the permission. Nothing in a run directory, link or form grants it.
"""

from __future__ import annotations

import os
import sys

NETWORKS = "DML_NETWORKS"  # environment variable: names module:factory that may be imported, separated by commas
FOLDER = "DML_NETWORKS_FOLDER"  # environment variable: folder from which their modules are imported
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
PATTERN = rf"{_IDENTIFIER}(\.{_IDENTIFIER})*:{_IDENTIFIER}"  # regular expression of package.module:factory


def is_own(name: str) -> bool:
    """Return True if `name`, a valid `model.name`, names a factory of the user, as package.module:factory."""
    return ":" in name and not name.startswith("timm:")


def refusal(name: str) -> str:
    """Return why this process may not import the network `name`; "" if it may, or if it is not a user's own."""
    if not is_own(name) or name in _permitted():
        return ""
    return (
        f"{name} is Python code, which is imported only if you name it: set the environment variable {NETWORKS}={name}"
        f" for this command or for the app, or train with dml train SPEC model.name={name}"
    )


def permit(name: str) -> None:
    """Permit this process, and those that it starts, to import the network `name` from the working directory."""
    if is_own(name) and name not in _permitted():
        os.environ[NETWORKS] = ",".join([*_permitted(), name])
    remember_folder()


def remember_folder() -> None:
    """Record the working directory for processes that are started elsewhere, if any network is permitted."""
    if _permitted():
        os.environ.setdefault(FOLDER, os.getcwd())


def make_importable() -> None:
    """Put the recorded folder first on sys.path, as `python -m` does with the working directory."""
    folder = os.environ.get(FOLDER) or os.getcwd()
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def _permitted() -> list[str]:
    return [word.strip() for word in os.environ.get(NETWORKS, "").split(",") if word.strip()]
