"""URL parameters of the Collage page: the characters on its tiles and the gate passed on by the previous step."""

from __future__ import annotations

from collections.abc import Mapping

from dmlcore import data
from dmlcore.experiments import studies
from dmlcore.experiments.studies import StudyRequest
from pages.shared.state import spec_link, untrusted

STUDIES = {"omniglot": "omniglot-collage", "glyphs": "glyph-collage"}  # by source of the characters
# Written out in full, because a link to Settings cannot unset a value of its base spec.
OWN = ("data.split=own", "data.validation=own")
GATE = {"mu": (0.01, 1.0), "epsilon": (0.1, 450.0)}  # ranges of the values passed on by the previous step


def tiles(query: Mapping[str, str]) -> str:
    """Return the source of the characters: from the URL, else Omniglot if it is available, else invented glyphs."""
    here = data.available(data_of(STUDIES["omniglot"])) is not None
    return untrusted.one_of(query.get("tiles"), tuple(STUDIES), "omniglot" if here else "glyphs")


def data_of(study: str) -> str:
    """Return the name of the data set of a study."""
    return studies.read(study).base.data.name


def onward(name: str, query: Mapping[str, str]) -> str:
    """Return the URL query of the Settings page (New run): the study's GSP run with the gate of the URL."""
    spec = next(entry.spec for entry in StudyRequest(study=name).entries() if entry.spec.pooling.name == "gsp")
    gate = {
        key: untrusted.bounded(query.get(key), low, high, float(spec.pooling.parameters[key]))
        for key, (low, high) in GATE.items()
    }
    changes = [f"pooling.{key}={value!r}" for key, value in gate.items()]
    return spec_link.link(spec.with_overrides([*changes, *OWN]))
