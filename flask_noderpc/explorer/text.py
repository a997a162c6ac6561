"""Conversion of a chain's content to text that is safe to show.

Jinja escapes markup. This module replaces control characters, direction marks and bytes that
are not UTF-8 with visible text.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..domain.abci import Event, ExecTxResult
from ..domain.facts import in_words
from ..domain.time import SECOND, ZERO_TIME, to_text

_ETHER = 10**18
"""Number of wei in an ether."""
MAX_WEI_DIGITS = 78
"""Maximum digits of a number of 256 bits."""

SHORT, LONG = 100, 2_000
"""Maximum number of characters of a value, in a list and on its own page."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A value as text, which may be cut."""

    text: str
    left: int = 0
    """Number of characters or bytes that are cut off."""


def of_bytes(data: bytes, limit: int) -> ShownText:
    """Return bytes as text of at most ``limit`` characters, or as hex if they are not UTF-8 or
    have control characters other than line breaks and tabs."""
    # Decode only as many bytes as ``limit`` characters can have, four for each.
    head = data[: 4 * limit]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, len(head) == len(data))
    except UnicodeDecodeError:
        text = ""
    if (text or not data) and visible(text) == text:
        return ShownText(text[:limit], len(data) - len(text[:limit].encode()))
    digits = limit // 2
    return ShownText("0x" + data[:digits].hex(), max(0, len(data) - digits))


def of_text(text: str, limit: int) -> ShownText:
    """Return the first ``limit`` characters of a text, with control characters escaped."""
    head = text[:limit]
    return ShownText(visible(head), len(text) - len(head))


def visible(text: str) -> str:
    """Return a text in which ``\\u{…}`` replaces characters that are not printable, except
    line feeds and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):x}}}" for c in text)


def summary(tx: bytes, result: ExecTxResult | None, limit: int = SHORT) -> ShownText:
    """Return a transaction as one line: its actions according to its events, or its bytes."""
    actions = _actions(result.events) if result else ""
    return of_text(actions, limit) if actions else of_bytes(tx, limit)


def _actions(events: Sequence[Event]) -> str:
    """Return the actions in the events of a Cosmos SDK transaction, the parties and values of
    Ethereum transactions, or an empty string for others."""
    found = [
        attribute.value.decode(errors="replace")
        for event in events
        if event.type == "message"
        for attribute in event.attributes
        if attribute.key == b"action"
    ]
    if not found:
        found = [_ethereum(event) for event in events if event.type == "ethereum_tx"]
    names = (in_words(each) if each.startswith("/") else each for each in found)
    return ", ".join(dict.fromkeys(names))


def _ethereum(event: Event) -> str:
    """Return sender, recipient and value of an Ethereum transaction, and why it failed."""
    own = {each.key: each.value.decode(errors="replace") for each in event.attributes}
    amount, sender = own.get(b"amount", ""), own.get(b"sender", "")
    # A companion's chain may have an older event, without these attributes.
    if not sender or not amount.isdecimal() or len(amount) > MAX_WEI_DIGITS:
        return "Ethereum transaction"
    to = own.get(b"recipient")
    shown = (
        f"{_short(sender)} → {_short(to) if to else 'new contract'}, {ether_of(int(amount))}"
    )
    failed = own.get(b"ethereumTxFailed")
    return f"{shown}: {failed}" if failed else shown


def _short(address: str) -> str:
    return f"{address[:8]}…{address[-4:]}" if len(address) > 14 else address


def moment(time_ns: int) -> str:
    """Return a time in UTC without fractions of a second; Go's zero time is a dash."""
    if time_ns <= ZERO_TIME:
        return "–"
    return to_text(time_ns // SECOND * SECOND).replace("T", " ").replace("Z", " UTC")


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def age(time_ns: int) -> str:
    """Return how long ago a time was, or the time itself after 100 days or in the future."""
    seconds = (time.time_ns() - time_ns) // SECOND
    if not 0 <= seconds < 100 * 86_400:
        return moment(time_ns)
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now"


def size(count: int) -> str:
    """Return a number of bytes with its unit."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def number(value: int) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,}"


def amount(value: float) -> str:
    """Return a number with at most three significant digits unless it is whole or large, and
    "more" for infinity."""
    if value == float("inf"):
        return "more"
    return number(int(value)) if value == int(value) or value >= 1000 else f"{value:.3g}"


def quantity(digits: str) -> str:
    """Return a QUANTITY of Ethereum's JSON-RPC in decimal."""
    return number(int(digits, 16))


def ether(digits: str) -> str:
    """Return a QUANTITY in wei as text in ether."""
    return ether_of(int(digits, 16))


def ether_of(wei: int) -> str:
    """Return an amount of wei as text in ether, without rounding."""
    whole, rest = divmod(wei, _ETHER)
    fraction = f".{rest:018d}".rstrip("0") if rest else ""
    return f"{whole:,}{fraction} ether"
