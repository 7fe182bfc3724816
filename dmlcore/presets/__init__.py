"""Files shipped with the library and the paths of their directories."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
SPECS = _FOLDER / "specs"  # NAME.toml
PROTOCOLS = _FOLDER / "protocols"  # NAME.toml
STUDIES = _FOLDER / "studies"  # NAME.toml defines a study, NAME.jsonl holds its results
SEARCHES = _FOLDER / "searches"  # NAME.toml
LESSONS = _FOLDER / "lessons"  # NAME.md
RECORDINGS = _FOLDER / "recordings"  # NAME.jsonl holds a recorded simulation or training run that a lesson plays
TRIALS = _FOLDER / "trials.toml"  # trials that were run for a claim outside the studies
CLAIMS = _FOLDER / "claims.toml"  # claims of the sources, and the contrast of a study that tests each of them
EXAMPLE = _FOLDER / "example.zip"  # a finished run; its SHA-256 is in example.sha256
