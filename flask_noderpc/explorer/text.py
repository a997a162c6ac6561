"""Conversion of a chain's content to text that is safe to show.

Jinja escapes markup. This module replaces control characters, direction marks and bytes that
are not UTF-8 with visible text.
"""

from __future__ import annotations

import codecs
import time
from dataclasses import dataclass

from ..domain.facts import TxLine, in_unit, in_words
from ..domain.time import SECOND, ZERO_TIME, to_text

_LINE, _HEADING = 160, 80
"""Maximum number of characters of a transaction in a list, and of a heading."""


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


def line(found: TxLine, tx: bytes) -> ShownText:
    """Return a transaction as one line: what it does, or else its bytes, and why it failed."""
    if not (found.text or found.failure):
        return of_bytes(tx, _LINE)
    words = found.text or of_bytes(tx, _LINE // 2).text
    return of_text(f"{words}: {found.failure}" if found.failure else words, _LINE)


def heading(kind: str) -> str:
    """Return the type of an event as a heading, such as "Coin received"."""
    return of_text(in_words(kind), _HEADING).text


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


def ether_of(wei: int) -> str:
    """Return an amount of wei as text in ether, without rounding."""
    return in_unit(wei, 18, "ether")
