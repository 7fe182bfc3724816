"""What the address of Collage says: what its tiles show, and the gate that the step before hands on."""

from __future__ import annotations

from collections.abc import Mapping

from dmlcore import data
from dmlcore.experiments import studies
from dmlcore.experiments.studies import StudyRequest
from pages.shared.state import spec_link, untrusted

STUDIES = {"omniglot": "omniglot-collage", "glyphs": "glyph-collage"}  # by what the tiles show
OWN = ("data.split=own", "data.validation=own")  # said, as a link to Train cannot leave out what its base has
GATE = {"mu": (0.01, 1.0), "epsilon": (0.1, 450.0)}  # what the step before hands on


def tiles(query: Mapping[str, str]) -> str:
    """What the tiles show: what the address says, else characters of Omniglot where they are here, else invented."""
    here = data.available(data_of(STUDIES["omniglot"])) is not None
    return untrusted.one_of(query.get("tiles"), tuple(STUDIES), "omniglot" if here else "glyphs")


def data_of(study: str) -> str:
    """The name of its data set."""
    return studies.read(study).base.data.name


def onward(name: str, query: Mapping[str, str]) -> str:
    """The query of the Train page: the run of the study whose pooling is a gate, with the gate of the address."""
    spec = next(entry.spec for entry in StudyRequest(study=name).entries() if entry.spec.pooling.name == "gsp")
    gate = {
        key: untrusted.bounded(query.get(key), low, high, float(spec.pooling.parameters[key]))
        for key, (low, high) in GATE.items()
    }
    changes = [f"pooling.{key}={value!r}" for key, value in gate.items()]
    return spec_link.link(spec.with_overrides([*changes, *OWN]))
