"""Lines of the processes of a node on stderr: as text, or as one JSON object each."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import click

FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How the processes of a node write their lines."""

    format: str = "text"
    """One of :data:`FORMATS`."""
    quiet: bool = False
    """True to write errors alone."""

    @property
    def is_json(self) -> bool:
        """True if each line is a JSON object."""
        return self.format == "json"

    @property
    def has_bars(self) -> bool:
        """True if progress is shown by bars, and not by lines."""
        return not self.is_json and not self.quiet and sys.stderr.isatty()


def configure(options: LogOptions) -> None:
    """Write the lines of this process, unless somebody has configured logging already."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if options.is_json else TextFormatter())
    if options.quiet:
        handler.setLevel(logging.ERROR)
    logging.basicConfig(handlers=[handler])
    # Calls are silent unless NODERPC_LOG_CALLS asks for them.
    for name in ("blocks", "calls", "start"):
        logging.getLogger(f"flask_noderpc.{name}").setLevel(logging.INFO)
    if not options.has_bars:
        logging.getLogger("flask_noderpc.progress").setLevel(logging.INFO)


_COLORS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
# It clears a bar that another process draws; the bar goes on below.
_CLEAR_LINE = "\r\033[K"


class TextFormatter(logging.Formatter):
    """Time and message, with logger and level where it is more than a notice."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(where)s%(message)s")
        color = wants_color()
        self._clear = _CLEAR_LINE if sys.stderr.isatty() else ""
        self._is_colored = sys.stderr.isatty() if color is None else color

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        record.where = ""
        if record.levelno != logging.INFO:
            level = record.levelname
            if self._is_colored:
                level = click.style(level, fg=_COLORS.get(level), bold=True)
            record.where = f"{record.name} {level}: "
        return self._clear + super().format(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``time``, ``level``, ``event``, ``logger``, ``message``, and what
    the record has of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        time = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": "log",
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


_STANDARD = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "where"}
)


def wants_color() -> bool | None:
    """Return what NO_COLOR or FORCE_COLOR ask for; ``None`` for colours on terminals alone."""
    # https://no-color.org and https://force-color.org: any text that is not empty.
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None
