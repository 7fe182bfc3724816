"""Protocols: TOML files that describe how published results are trained, selected, repeated and summarised."""

from dmlcore.experiments.protocols.expansion import data_name, deviations, expand, images, remarks
from dmlcore.experiments.protocols.requests import ProtocolRequest, ProtocolState, conduct, describe, place_of
from dmlcore.experiments.protocols.results import (
    Collection,
    Member,
    ProtocolResults,
    ScoreSummary,
    collect,
    load,
    write,
)
from dmlcore.experiments.protocols.spec import Protocol, Setting, names, read
from dmlcore.experiments.protocols.tables import Printed, as_text, printed_rows

__all__ = [
    "Collection",
    "Member",
    "Printed",
    "Protocol",
    "ProtocolRequest",
    "ProtocolResults",
    "ProtocolState",
    "ScoreSummary",
    "Setting",
    "as_text",
    "collect",
    "conduct",
    "data_name",
    "describe",
    "deviations",
    "expand",
    "images",
    "load",
    "names",
    "place_of",
    "printed_rows",
    "read",
    "remarks",
    "write",
]
