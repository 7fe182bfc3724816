"""Script that runs the library's tests with the lowest versions that pyproject.toml allows.

    python -m docs.supply.lower_bounds --uv UV [--into FOLDER] [--as-is NAME==VERSION ...] [-- PYTEST_ARGUMENTS]

The script creates a virtual environment, in a temporary folder unless `--into` is given. Packages named in
pyproject.toml have their lowest version, all other packages have the newest version that fits, and the test tools have
the versions of requirements-dev.txt. The script downloads gigabytes, because torch comes with CUDA from the registry.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from packaging.utils import canonicalize_name

from docs.supply.locks import ROOT, requirements

TOOLS = {"hypothesis", "pytest", "pytest-rerunfailures", "pytest-xdist", "pytorch-metric-learning"}


def folders() -> list[str]:
    """Return the test folders that belong to a package of the library."""
    packages = sorted(path.parent.name for path in (ROOT / "dmlcore").glob("*/__init__.py"))
    return [f"tests/{name}" for name in packages if (ROOT / "tests" / name).is_dir()]


def make(uv: str, into: Path, as_is: Sequence[str] = ()) -> Path:
    """Create the virtual environment and return the path of its Python interpreter.

    Args:
        uv: Path of the uv command.
        into: Folder of the environment.
        as_is: Requirements (NAME==VERSION) to install instead of the lowest version.
    """
    into.mkdir(parents=True, exist_ok=True)
    python, overrides, lowest = into / "bin" / "python", into / "overrides.txt", into / "lowest.txt"

    def run(*arguments: object) -> None:
        subprocess.run([uv, *map(str, arguments)], check=True, cwd=ROOT)

    run("venv", "--quiet", "--allow-existing", "--python", sys.executable, into)
    overrides.write_text("\n".join(as_is))
    pip = ("--quiet", "--python", python)
    chosen = ("--extra", "app", "--resolution", "lowest-direct", "--override", overrides)
    run("pip", "compile", *pip, *chosen, "--no-header", "--no-annotate", "pyproject.toml", "--output-file", lowest)
    tools = [r for r in requirements("requirements-dev.txt") if canonicalize_name(r.name) in TOOLS]
    run("pip", "install", *pip, "-r", lowest, *tools)
    run("pip", "install", *pip, "--no-deps", ROOT)
    print(lowest.read_text())
    return python


def main() -> int:
    """Create the environment, run the tests in it, and return the exit status of pytest."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m docs.supply.lower_bounds", description=about)
    parser.add_argument("--uv", required=True, help="command of uv")
    parser.add_argument("--into", type=Path, help="folder of the environment; it is kept [default: a temporary one]")
    parser.add_argument(
        "--as-is", nargs="*", default=[], metavar="NAME==VERSION", help="versions that replace the lowest ones"
    )
    parser.add_argument("pytest", nargs="*", help="arguments of pytest [default: the library's tests in two processes]")
    given = parser.parse_args()
    with nullcontext(given.into) if given.into else tempfile.TemporaryDirectory() as folder:
        python = make(given.uv, Path(folder), given.as_is)
        chosen = given.pytest or ["-n", "2", "--dist", "loadfile", *folders()]
        environment = os.environ | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run([python, "-m", "pytest", *chosen], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
