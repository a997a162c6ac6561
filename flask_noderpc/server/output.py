"""Output of the commands and processes of a node: log lines on stderr as text or JSON,
progress of long work, and exit statuses (listed in docs/start)."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from ..errors import (
    ConfigurationError,
    InvalidSetting,
    NodeRPCError,
    NotSupported,
    StoreError,
    StoreUnavailable,
    ValueNotAllowed,
)

FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of the log lines of a node's processes."""

    format: str = "text"
    """One of :data:`FORMATS`."""
    quiet: bool = False
    """True to write only errors."""

    @property
    def is_json(self) -> bool:
        """True if each log line is a JSON object."""
        return self.format == "json"

    @property
    def has_bars(self) -> bool:
        """True if progress is shown as a bar instead of log lines."""
        return not self.is_json and not self.quiet and sys.stderr.isatty()


def configure(options: LogOptions) -> None:
    """Configure the logging of this process, unless the root logger already has handlers."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if options.is_json else TextFormatter())
    if options.quiet:
        handler.setLevel(logging.ERROR)
    logging.basicConfig(handlers=[handler])
    # The logger of calls is only used with NODERPC_LOG_CALLS.
    for name in ("blocks", "calls", "contracts", "start"):
        logging.getLogger(f"flask_noderpc.{name}").setLevel(logging.INFO)
    if not options.has_bars:
        logging.getLogger("flask_noderpc.progress").setLevel(logging.INFO)


_COLORS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
# Clears the current line, on which another process may have drawn its progress bar.
_CLEAR_LINE = "\r\033[K"


class TextFormatter(logging.Formatter):
    """Formatter of lines with time and message; if the level is not INFO, also with logger and
    level."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(where)s%(message)s")
        color = wants_color()
        self._clear = _CLEAR_LINE if sys.stderr.isatty() else ""
        self._is_colored = sys.stderr.isatty() if color is None else color

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        record.where = ""
        if record.levelno != logging.INFO:
            level = record.levelname
            if self._is_colored:
                level = click.style(level, fg=_COLORS.get(level), bold=True)
            record.where = f"{record.name} {level}: "
        return self._clear + super().format(record)


class JsonFormatter(logging.Formatter):
    """Formatter of one JSON object per line: ``time``, ``level``, ``event``, ``logger``,
    ``message``, and the attributes in ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON of a record."""
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
    """Return true with FORCE_COLOR, false with NO_COLOR, and ``None`` if neither is set: then
    only terminals get colors."""
    # Any value that is not empty counts: https://no-color.org and https://force-color.org.
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


_LINE_EACH_S = 30.0


class Progress:
    """Progress of long work on stderr: a bar on a terminal, else a line every 30 seconds, with
    the rate and the remaining time.

    Leaving it as a context manager ends the bar. ``total`` may be changed if the work grows.
    """

    def __init__(
        self, label: str, total: int = 0, unit: str = "blocks", *, done: int = 0
    ) -> None:
        self.label, self.total, self.unit = label, total, unit
        # The rate only counts work after the start.
        self.done = self._first = done
        self._began = self._shown = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, count: int) -> None:
        """Add completed work."""
        self.show(self.done + count, self.total)

    def show(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` is completed."""
        self.done, self.total = done, total
        if not total:
            return
        if sys.stderr.isatty():
            self._draw()
        elif time.monotonic() - self._shown >= _LINE_EACH_S:
            self._shown = time.monotonic()
            click.echo(self._line(), err=True)

    def close(self) -> None:
        """End the bar's line."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None

    def _draw(self) -> None:
        if self._bar is None:
            bar: Any = click.progressbar(
                length=self.total,
                label=self.label,
                item_show_func=lambda _: f"{self._rate():,.0f} {self.unit} a second",
                file=sys.stderr,
            )
            self._bar = bar.__enter__()
        self._bar.length = self.total
        self._bar.update(self.done - self._bar.pos)

    def _rate(self) -> float:
        return (self.done - self._first) / max(0.001, time.monotonic() - self._began)

    def _line(self) -> str:
        rate = self._rate()
        left = f"{(self.total - self.done) / rate:.0f} s left" if rate else "time left unknown"
        done = f"{self.label}: {self.done} of {self.total} {self.unit}"
        return f"{done}, {rate:.0f} a second, {left}"


FAILED = 1
"""Exit status if a check failed, a node or database can't be reached, or the program has a
bug: the same command may succeed later."""
USAGE = 2
"""Exit status for a flag, an argument or a setting with an invalid value."""
REFUSED = os.EX_CONFIG
"""Exit status for valid settings that don't fit the store, the home or the machine: the same
command will fail again."""
INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 plus the number of SIGINT, as in shells."""


class WorkerFailed(NodeRPCError):
    """Error for a process of the node that can't start; ``status`` is the exit status for
    it."""

    def __init__(self, text: str, status: int) -> None:
        self.status = status
        super().__init__(text)


def exit_status(error: NodeRPCError) -> int:
    """Return the exit status of a command that ends with an error."""
    match error:
        case WorkerFailed():
            return error.status
        case InvalidSetting() | ValueNotAllowed():
            return USAGE
        case StoreUnavailable():
            return FAILED
        case ConfigurationError() | StoreError() | NotSupported():
            return REFUSED
        case _:
            return FAILED
