"""Progress of long work, on stderr: a bar on a terminal, elsewhere a line each half minute."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

_LINE_EACH_S = 30.0


class Progress:
    """Counts what is done of a total, with the rate and the time that is left.

    As a context it begins and ends the bar. ``total`` may be set again, with work that grows.
    """

    def __init__(
        self, label: str, total: int = 0, unit: str = "blocks", *, done: int = 0
    ) -> None:
        self.label, self.total, self.unit = label, total, unit
        # What was done before is not part of the rate.
        self.done = self._first = done
        self._began = self._shown = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, count: int) -> None:
        """Count what was done since the last call."""
        self.show(self.done + count, self.total)

    def show(self, done: int, total: int) -> None:
        """Show how much of a total is done; the bar begins with the first of it."""
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
