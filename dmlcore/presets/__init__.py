"""What ships with the library, and the one place that says where it lies."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
SPECS = _FOLDER / "specs"  # NAME.toml
PROTOCOLS = _FOLDER / "protocols"  # NAME.toml
STUDIES = _FOLDER / "studies"  # NAME.toml, and NAME.jsonl, what its runs reached
LESSONS = _FOLDER / "lessons"  # NAME.md
TRIALS = _FOLDER / "trials.toml"  # what was tried outside the studies
EXAMPLE = _FOLDER / "example.zip"  # a finished run; its SHA-256 in example.sha256
