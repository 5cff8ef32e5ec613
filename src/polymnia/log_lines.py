"""The log on standard error: text for people, JSON for programs."""

import logging
import sys
from typing import Any

from msgspec.json import encode

from polymnia.errors import SettingsError

# What a log line about a request may carry besides its message, in this order. The logging call
# passes it as `extra`.
LOG_FIELDS = ("request_id", "client", "token", "method", "tool", "workspace", "duration_ms")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logging(level: str, form: str = "text") -> None:
    """Log to standard error, as text or as one JSON object per line.

    Raise SettingsError for an unknown level.
    """
    if level not in _LEVELS:
        raise SettingsError(f"unknown log level {level!r}: use {', '.join(_LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=_LEVELS[level])


class TextFormatter(logging.Formatter):
    """`TIME polymnia: LEVEL: MESSAGE`, followed by the fields of a request as key=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s polymnia: %(levelname)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = super().format(record).split("\n")
        fields = [f"{name}={value}" for name, value in _log_fields(record).items()]
        return "\n".join([" ".join([first, *fields]), *rest])


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the fields of a request and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_log_fields(record),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return encode(entry, enc_hook=str).decode()


def _log_fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {}
    for name in LOG_FIELDS:
        value = getattr(record, name, None)
        if value not in (None, ""):
            fields[name] = value
    return fields
