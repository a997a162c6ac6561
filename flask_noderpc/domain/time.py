"""Nanosecond timestamps and their RFC 3339 text.

``datetime`` only has microseconds, so a time is an integer number of nanoseconds since
1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from ..errors import short_repr

SECOND = 1_000_000_000
MILLISECOND = 1_000_000

# Go's zero time, which CometBFT prints for "no time": 0001-01-01T00:00:00Z.
ZERO_TIME = -62135596800 * SECOND

# Last nanosecond that datetime can format.
LAST_TIME = 253402300800 * SECOND - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_EPOCH = _EPOCH.replace(tzinfo=None)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def to_text(time_ns: int) -> str:
    """Return RFC 3339 text in UTC with up to nine fraction digits, without trailing zeros."""
    seconds, nanos = divmod(time_ns, SECOND)
    text = _text_of_second(seconds)
    if nanos:
        text += f".{nanos:09d}".rstrip("0")
    return text + "Z"


# The votes of a block, and the block itself, are mostly of one second.
@lru_cache(256)
def _text_of_second(seconds: int) -> str:
    # isoformat pads the year; strftime("%Y") does not on every platform.
    return (_BARE_EPOCH + timedelta(seconds=seconds)).isoformat()


def to_go_text(time_ns: int) -> str:
    """Return Go's default format of a time: ``2006-01-02 15:04:05.999 +0000 UTC``."""
    return to_text(time_ns).replace("T", " ").replace("Z", " +0000 UTC")


_SMALL = {"ns": 1, "us": 1_000, "µs": 1_000, "\u03bcs": 1_000, "ms": MILLISECOND}
_UNITS = _SMALL | {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
# A duration with every unit has about 60 characters; a longer one would take long to parse.
_MAX_DURATION = 100
_PART = re.compile(r"(\d++\.?\d*+|\.\d++)([^\d.]*+)", re.ASCII)


def from_go_duration(text: str) -> int:
    """Return the nanoseconds of a duration such as ``1m30s``, by the rules of Go's
    ``time.ParseDuration``; raise :exc:`ValueError`."""
    shown = f'"{text[:_MAX_DURATION]}"'
    if len(text) > _MAX_DURATION:
        raise ValueError(f"time: expected at most {_MAX_DURATION} characters, got {len(text)}")
    body = text[1:] if text[:1] in ("+", "-") else text
    body = "0s" if body == "0" else body
    parts = list(_PART.finditer(body))
    if not parts or "".join(part[0] for part in parts) != body:
        raise ValueError(f"time: invalid duration {shown}")
    found = Decimal(0)
    for number, unit in (part.groups() for part in parts):
        if unit not in _UNITS:
            problem = f'unknown unit "{unit}"' if unit else "missing unit"
            raise ValueError(f"time: {problem} in duration {shown}")
        found += Decimal(number) * _UNITS[unit]
    nanoseconds = -int(found) if text[0] == "-" else int(found)
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        raise ValueError(f"time: invalid duration {shown}")
    return nanoseconds


def from_text(text: str) -> int:
    """Return the nanoseconds of an RFC 3339 text; raise :exc:`ValueError` for other text."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{short_repr(text)} is not an RFC 3339 time")
    stamp, fraction, zone = match.groups()
    instant = datetime.fromisoformat(stamp.upper() + ("+00:00" if zone in "Zz" else zone))
    delta = instant - _EPOCH
    seconds = delta.days * 86400 + delta.seconds
    time_ns = seconds * SECOND + int((fraction or "0").ljust(9, "0"))
    if not ZERO_TIME <= time_ns <= LAST_TIME:
        raise ValueError(f"{short_repr(text)} is outside the years 1 to 9999")
    return time_ns
