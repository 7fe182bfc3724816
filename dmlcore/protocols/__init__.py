"""Protocols: how published results are trained, selected, repeated and summed up, as TOML files."""

from dmlcore.protocols.expansion import data_name, deviations, expand, images
from dmlcore.protocols.requests import ProtocolState, Request, conduct, place_of
from dmlcore.protocols.spec import Protocol, Setting, names, read

__all__ = [
    "Protocol",
    "ProtocolState",
    "Request",
    "Setting",
    "conduct",
    "data_name",
    "deviations",
    "expand",
    "images",
    "names",
    "place_of",
    "read",
]
