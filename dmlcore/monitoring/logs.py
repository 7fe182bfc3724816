"""Log formats: plain text or, with DML_LOG=json, one JSON object per line for a log collector."""

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
)  # loggers of the web server, which may have handlers of their own


class JsonLine(logging.Formatter):
    """Formatter that writes each log record as one JSON object.

    Keys are time (ISO 8601, UTC), level, logger, message and process; `error` holds a traceback if there is one.
    """

    def __init__(self, **fields: str) -> None:
        super().__init__()
        self.fields = fields  # added to every line, for example the run's id

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON on a single line, even if its message has several lines."""
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


def is_json_enabled() -> bool:
    """Return True if the environment variable DML_LOG requests JSON."""
    return os.environ.get("DML_LOG") == "json"


def configure_server_logs() -> None:
    """If DML_LOG=json, use JSON in all handlers of the web server's loggers, and add a JSON handler for dmlcore."""
    if not is_json_enabled():
        return
    ours = logging.getLogger("dmlcore")
    ours.setLevel(logging.INFO)
    if not ours.handlers:
        ours.addHandler(logging.StreamHandler())
        ours.propagate = False
    for name in SERVERS:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(JsonLine())
