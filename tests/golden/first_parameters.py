"""Default of each hyper-parameter when it was introduced, which is its meaning in a spec that omits it.

Stored runs, presets and digests omit default values, so a changed default would silently merge different runs. `python
-m tests.golden.first_parameters` adds lines for new hyper-parameters; existing lines never change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dmlcore.training.methods import METHODS
from dmlcore.training.objective import CATALOGUES

FILE = Path(__file__).with_suffix(".json")
Defaults = dict[str, dict[str, dict[str, Any]]]  # section of a spec -> name -> hyper-parameter -> default


def today() -> Defaults:
    """Return the current defaults of the catalogues; infinity is written as in specs."""
    return {
        section: {
            name: {key: "inf" if value == float("inf") else value for key, value in entry.defaults.items()}
            for name, entry in catalogue.items()
        }
        for section, catalogue in {**CATALOGUES, "method": METHODS}.items()
    }


def first() -> Defaults:
    """Return the stored first defaults."""
    read: Defaults = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return read


if __name__ == "__main__":
    found, known = today(), first()
    for section, entries in found.items():
        for name, defaults in entries.items():
            known.setdefault(section, {})[name] = {**defaults, **known.get(section, {}).get(name, {})}
    FILE.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
