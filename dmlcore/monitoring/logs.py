"""How records of the log are written: for people, or with DML_LOG=json one JSON object a line for a log collector."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any

PLAIN = "%(asctime)s %(levelname)s %(message)s"
SERVERS = (
    "",
    "dmlcore",
    "streamlit",
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
)  # with handlers


class JsonLine(logging.Formatter):
    """time (ISO 8601, UTC), level, logger, message, process; error with its traceback where there is one."""

    def __init__(self, **fields: str) -> None:
        super().__init__()
        self.fields = fields  # in every line, the run for example

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **self.fields,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def wanted() -> bool:
    """Whether lines of JSON are asked for."""
    return os.environ.get("DML_LOG") == "json"


def of_server() -> None:
    """Where JSON is asked for: every handler of the server's loggers writes it; ours have one from then on."""
    if not wanted():
        return
    ours = logging.getLogger("dmlcore")
    ours.setLevel(logging.INFO)
    if not ours.handlers:
        ours.addHandler(logging.StreamHandler())
        ours.propagate = False
    for name in SERVERS:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(JsonLine())
