"""The folder that runs, data and the processes we start belong to: the repository, or where one works without it."""

from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2]
# The app lies beside the package in a checkout and in a container; an installed package has other packages beside it.
HOME = _BESIDE if (_BESIDE / "app.py").is_file() else Path.cwd()
