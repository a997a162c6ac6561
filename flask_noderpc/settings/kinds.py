"""Kinds of settings' values: how each is parsed from JSON, the environment or a flag, and its
placeholder in help."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import short_repr

_MAX_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its placeholder in help, and its parser, which may raise
    ``ValueError``."""

    form: str
    """Placeholder in help for a value without fixed choices; empty for a switch, which needs
    no value."""
    read: Callable[[object], Any]
    is_secret: bool = False
    """True for credentials, which are never shown, and refused on the command line, which
    other users can see."""
    known: Callable[[], Iterable[str]] = tuple
    """Function that returns the allowed values of a choice; empty for other kinds."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Allowed values of a choice; empty for other kinds."""
        return tuple(self.known())

    @property
    def label(self) -> str:
        """Choices or placeholder after the flag in help; empty for a switch, which needs no
        value."""
        choices = self.choices
        return f"[{'|'.join(choices)}]" if choices else self.form


def _text(value: object) -> str:
    # Accept an int, as from_prefixed_env parses a chain ID of digits as JSON.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError("expected a string (quote a value that looks like a JSON number)")
    if not value.isascii():
        # Raise for lone surrogates, which Python uses for bytes that are not UTF-8.
        value.encode()
    return value


# CometBFT: types/genesis.go, MaxChainIDLen.
_MAX_CHAIN_ID_BYTES = 50


def check_chain_id(text: str) -> str:
    """Return a chain ID; raise ``ValueError`` for one that a genesis document can't have."""
    size = len(text.encode())
    if not 0 < size <= _MAX_CHAIN_ID_BYTES or not text.isprintable():
        raise ValueError(
            f"expected a chain ID of 1 to {_MAX_CHAIN_ID_BYTES} printable bytes, got {size}"
        )
    return text


def one_of(known: Callable[[], Iterable[str]]) -> Kind:
    """Return a kind of choice among the strings that ``known`` returns."""

    def read(value: object) -> str:
        names = tuple(known())
        if _text(value) not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return _text(value)

    return Kind("TEXT", read, known=known)


def _path(value: object) -> str:
    return _text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _maybe_path(value: object) -> str:
    return "" if value == "" else _path(value)


_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True)
_WORDS |= dict.fromkeys(("false", "no", "off", "0"), False)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    raise ValueError("expected true or false")


def integer(minimum: int, label: str = "INTEGER", maximum: float = math.inf) -> Kind:
    """Return a kind of integer between a minimum and a maximum."""
    upper_bound = "" if maximum == math.inf else f", at most {maximum}"

    def read(value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value)
        is_bool = isinstance(value, bool)
        if isinstance(value, int) and not is_bool and minimum <= value <= maximum:
            return value
        raise ValueError(f"expected a whole number of at least {minimum}{upper_bound}")

    return Kind(label, read)


AUTO = "auto"
"""Value of NODERPC_WORKERS for a number that depends on the machine."""


def _processes(value: object) -> int | str:
    if value == AUTO:
        return AUTO
    try:
        number: int = _FIXED_PROCESSES.read(value)
    except ValueError as error:
        raise ValueError(f"{error}, or {AUTO}") from None
    return number


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _seconds(value: object) -> float:
    number = _number(value)
    if not 0 < number <= _MAX_S:
        raise ValueError(f"expected a number of seconds above 0, at most {_MAX_S}")
    return number


def _amount(value: object) -> float:
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError("expected a number of at least 0")
    return number


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("expected a list of names, or names separated by commas")
    return tuple(value)


def _urls(value: object) -> tuple[str, ...]:
    names = _names(value)
    if isinstance(value, str) and not names:
        raise ValueError("expected a URL such as http://localhost:26657")
    return names


_ORIGIN = re.compile(r"(\*|null|[a-z][a-z0-9+.-]*://[^/\s]+)", re.IGNORECASE)


def _origins(value: object) -> tuple[str, ...]:
    names = _names(value)
    for name in names:
        # Refuse an origin without a scheme, which would never match what browsers send.
        if not _ORIGIN.fullmatch(name):
            raise ValueError(
                f"expected origins such as https://wallet.example, got {short_repr(name)}"
            )
    return names


_PERIOD = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(d|h|m|s)")
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def _period(value: object) -> float:
    found = _PERIOD.fullmatch(value) if isinstance(value, str) else None
    number = float(found[1]) * _UNITS[found[2]] if found else _number(value)
    if not 0 < number < math.inf:
        raise ValueError("expected days, hours, minutes or seconds, such as 14d or 336h")
    return number


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_FILE_BYTES = 65_536


def _header(value: object) -> str:
    text = _text(value)
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="ascii") as file:
                text = file.read(_FILE_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            raise ValueError(f"expected a readable file after @ ({reason})") from None
    if not _HEADER.fullmatch(text):
        raise ValueError(
            "expected a header such as 'Authorization: Bearer …', or @FILE with one"
        )
    return text


TEXT = Kind("TEXT", _text)
HEADER = Kind("HEADER", _header, is_secret=True)
CHAIN_ID = Kind("TEXT", lambda value: check_chain_id(_text(value)))
ADDRESSES = Kind("ADDRESS,...", _text)
PATH = Kind("PATH", _path)
OPTIONAL_PATH = Kind("PATH", _maybe_path)
SWITCH = Kind("", _switch)
COUNT = integer(1)
_FIXED_PROCESSES = integer(1, maximum=1000)
PROCESSES = Kind(f"[{AUTO}|INTEGER]", _processes)
BYTES = integer(1, "BYTES")
SECONDS = Kind("SECONDS", _seconds)
AMOUNT = Kind("NUMBER", _amount)
PERIOD = Kind("PERIOD", _period)
NAMES = Kind("NAME,...", _names)
URLS = Kind("URL,...", _urls)
ORIGINS = Kind("ORIGIN,...", _origins)
