"""Log of new blocks: a line per block, at most ten a second; further blocks of that second
share a line."""

from __future__ import annotations

import logging
import threading
import time

log = logging.getLogger("flask_noderpc.blocks")

_LINES_A_SECOND = 10
_SECOND = 1.0

Amounts = dict[str, int | float]
"""Amounts of a block or sums over blocks, such as gas, by their names in JSON logs."""

_TEXTS = {
    "txs": "{:,} txs",
    "gas": "{:,} gas",
    "milliseconds": "{:,.1f} ms",
    "lag_seconds": "{:,.1f} s behind",
}


def is_enabled() -> bool:
    """Return true if blocks are logged; otherwise, the caller need not compute the amounts."""
    return log.isEnabledFor(logging.INFO)


class BlockLog:
    """Logs the blocks of one process at INFO; may be used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._second_began = 0.0
        self._lines = 0
        self._rest: tuple[int, int, Amounts] | None = None

    def add(self, low: int, high: int, amounts: Amounts) -> None:
        """Log the blocks of a range with the sums of their amounts, at once or, after ten
        lines, at the end of the second."""
        with self._lock:
            now = time.monotonic()
            if now - self._second_began >= _SECOND:
                self._second_began, self._lines = now, 0
            if self._rest is not None:
                self._rest = (self._rest[0], high, _sum(self._rest[2], amounts))
            elif self._lines >= _LINES_A_SECOND:
                self._rest = (low, high, amounts)
                timer = threading.Timer(self._second_began + _SECOND - now, self._write_rest)
                timer.daemon = True
                timer.start()
            else:
                self._lines += 1
                _write(low, high, amounts)

    def _write_rest(self) -> None:
        with self._lock:
            rest, self._rest = self._rest, None
            if rest is not None:
                _write(*rest)


def _sum(one: Amounts, other: Amounts) -> Amounts:
    added = {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
    # Lag is a gauge: take the latest value instead of summing.
    return {**added, "lag_seconds": other["lag_seconds"]} if "lag_seconds" in other else added


def _text(name: str, amount: float) -> str:
    return "1 tx" if (name, amount) == ("txs", 1) else _TEXTS[name].format(amount)


def _write(low: int, high: int, amounts: Amounts) -> None:
    shown = ", ".join(_text(name, amount) for name, amount in amounts.items())
    rounded = {name: round(amount, 3) for name, amount in amounts.items()}
    if low == high:
        log.info(
            "block %d: %s", high, shown, extra={"event": "block", "height": high, **rounded}
        )
    else:
        extra = {"event": "blocks", "from_height": low, "height": high, **rounded}
        log.info("blocks %d to %d: %s", low, high, shown, extra=extra)
