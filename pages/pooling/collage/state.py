"""URL parameters of the Collage page: the kind of characters on the tiles, and gate parameters from GAP vs GSP."""

from __future__ import annotations

from collections.abc import Mapping

from dmlcore import data
from dmlcore.experiments import studies
from dmlcore.experiments.studies import StudyRequest
from pages.shared.state import spec_link, untrusted

STUDIES = {"omniglot": "omniglot-collage", "glyphs": "glyph-collage"}  # study for each kind of characters
# These overrides are always included, because a link to the New run page cannot remove values of its base spec.
OWN = ("data.split=own", "data.validation=own")
GATE = {"mu": (0.01, 1.0), "epsilon": (0.1, 450.0)}  # allowed ranges of the gate parameters in the URL


def tiles(query: Mapping[str, str]) -> str:
    """Return the kind of characters in the URL; by default "omniglot" if it is available, else "glyphs"."""
    here = data.available(data_of(STUDIES["omniglot"])) is not None
    return untrusted.one_of(query.get("tiles"), tuple(STUDIES), "omniglot" if here else "glyphs")


def data_of(study: str) -> str:
    """Return the name of a study's data set."""
    return studies.read(study).base.data.name


def onward(name: str, query: Mapping[str, str]) -> str:
    """Return the URL query string of the New run page for the study's GSP run with the gate parameters in `query`."""
    spec = next(entry.spec for entry in StudyRequest(study=name).entries() if entry.spec.pooling.name == "gsp")
    gate = {
        key: untrusted.bounded(query.get(key), low, high, float(spec.pooling.parameters[key]))
        for key, (low, high) in GATE.items()
    }
    changes = [f"pooling.{key}={value!r}" for key, value in gate.items()]
    return spec_link.link(spec.with_overrides([*changes, *OWN]))
