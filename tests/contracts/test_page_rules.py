"""Modules of the pages that may import streamlit and torch, a rule that import-linter cannot express.

Panels are modules named after what they show and may import streamlit; services, states, exports and words may not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.members import in_one_case

ROOT = Path(__file__).parents[2]
MAY_NOT = {
    "streamlit": (
        "*/service.py",
        "*/state.py",
        "*/export.py",
        "*/words.py",
        "pages/shared/[!w]*",
        "pages/shared/words/*",
    ),
}
MAY = {
    "streamlit": ("pages/shared/server/host.py",),
    "torch": ("*/service.py", "*/export.py"),
}


def imported(source: str) -> Iterator[str]:
    """Yield the packages that a module imports, including imports inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def breaches(package: str) -> set[str]:
    """Return the paths of modules that import a package without being allowed to."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "pages").rglob("*.py"))}
    assert len(paths) > 100
    return {
        name
        for name, path in paths.items()
        if package in imported(path.read_text())
        and any(fnmatch(name, refused) for refused in MAY_NOT.get(package, ("*",)))
        and not any(fnmatch(name, allowed) for allowed in MAY[package])
    }


@in_one_case(package=MAY)
def test_only_the_modules_of_the_rule_import(package):
    assert not breaches(package), f"{package} is imported by a module that may not import it"
