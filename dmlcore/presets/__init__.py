"""What ships with the library, and the one place that says where it lies."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
SPECS = _FOLDER / "specs"  # NAME.toml
PROTOCOLS = _FOLDER / "protocols"  # NAME.toml
STUDIES = _FOLDER / "studies"  # NAME.toml, and NAME.jsonl, what its runs reached
SEARCHES = _FOLDER / "searches"  # NAME.toml
LESSONS = _FOLDER / "lessons"  # NAME.md
RECORDINGS = _FOLDER / "recordings"  # NAME.jsonl, what lessons play
TRIALS = _FOLDER / "trials.toml"  # what was tried outside the studies
EXAMPLE = _FOLDER / "example.zip"  # a finished run; its SHA-256 in example.sha256
