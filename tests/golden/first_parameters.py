"""What a hyper-parameter means in a spec that leaves it out: its default when it came.

Stored runs, presets and digests leave out what has its default, so a changed default would silently merge runs that
differ. `python -m tests.golden.first_parameters` adds lines for what is new; no line ever changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dmlcore.training.objective import CATALOGUES

FILE = Path(__file__).with_suffix(".json")
Defaults = dict[str, dict[str, dict[str, Any]]]  # section of a spec -> name -> hyper-parameter -> default


def today() -> Defaults:
    """The defaults as the catalogues declare them; infinity as specs write it."""
    return {
        section: {
            name: {key: "inf" if value == float("inf") else value for key, value in entry.defaults.items()}
            for name, entry in catalogue.items()
        }
        for section, catalogue in CATALOGUES.items()
    }


def first() -> Defaults:
    """The defaults as they were when each came."""
    read: Defaults = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return read


if __name__ == "__main__":
    found, known = today(), first()
    for section, entries in found.items():
        for name, defaults in entries.items():
            known.setdefault(section, {})[name] = {**defaults, **known.get(section, {}).get(name, {})}
    FILE.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
