"""Base directory of runs, data and workers: the repository or, for an installed package, the working directory."""

from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2]
# In a checkout or container, app.py is next to the package; an installed package has no app.py next to it.
HOME = _BESIDE if (_BESIDE / "app.py").is_file() else Path.cwd()
