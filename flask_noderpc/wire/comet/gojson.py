"""JSON, hex and base64 as Go decodes them, with the exact error texts of Go's ``encoding``
packages.

A table of states replaces Go's functions, one per state; an error names the unexpected byte and
the context of its state. Documents are bytes, as in Go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from json import loads
from typing import NamedTuple

from ... import jsoncodec
from ...jsoncodec import text_of

# Go: encoding/json/scanner.go, maxNestingDepth.
MAX_DEPTH = 10_000

# Maximum bytes of a document for which Go's error text is determined: scanning a megabyte takes
# half a second.
MAX_EXPLAINED = 20_000

# Go: encoding/json escapes the characters that HTML and JavaScript treat specially, and writes
# an escape for an invalid byte, which :func:`text_of` has replaced with U+FFFD.
_JSON_ESCAPES = tuple(
    (char.encode(), f"\\u{ord(char):04x}".encode()) for char in "<>&\u2028\u2029\ufffd"
)

_SPACE = " \t\r\n"
_DIGITS = "0123456789"
_HEX = _DIGITS + "abcdefABCDEF"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_SIGNED, _UNSIGNED = re.compile(r"-?[0-9]{1,20}"), re.compile(r"[0-9]{1,20}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {'"': "string", "[": "array", "{": "object", "t": "bool", "f": "bool", "n": "null"}
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"} | {
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


class GoError(ValueError):
    """Error whose text is Go's."""


class _State(NamedTuple):
    """Next state by byte, and Go's context of other bytes; a state without context ends the
    value."""

    next: Mapping[str, str]
    waiting: str = ""


def _on(chars: str, state: str) -> dict[str, str]:
    return dict.fromkeys(chars, state)


def _literal(word: str) -> Iterator[tuple[str, _State]]:
    for at in range(1, len(word)):
        then = word[: at + 1] if at + 1 < len(word) else "ended"
        waiting = f"in literal {word} (expecting '{word[at]}')"
        yield word[:at], _State({word[at]: then}, waiting)


def _unicode() -> Iterator[tuple[str, _State]]:
    for at in range(4):
        then = f"u{at + 1}" if at < 3 else "string"
        yield f"u{at}", _State(_on(_HEX, then), r"in \u hexadecimal character escape")


_VALUE = (
    {'"': "string", "-": "minus", "0": "zero", "[": "element?", "{": "key?"}
    | _on("123456789", "digits")
    | {"t": "t", "f": "f", "n": "n"}
)
_BEGIN = "looking for beginning of value"
_KEY = "looking for beginning of object key string"

# Go: encoding/json/scanner.go, the state functions.
_STATES: dict[str, _State] = {
    "value": _State(_VALUE | _on(_SPACE, "value"), _BEGIN),
    "element?": _State(_VALUE | _on(_SPACE, "element?") | {"]": "closed"}, _BEGIN),
    "key": _State({'"': "string"} | _on(_SPACE, "key"), _KEY),
    "key?": _State({'"': "string", "}": "closed"} | _on(_SPACE, "key?"), _KEY),
    "string": _State({'"': "ended", "\\": "escape"}, "in string literal"),
    "escape": _State(_on('bfnrt\\/"', "string") | {"u": "u0"}, "in string escape code"),
    "minus": _State({"0": "zero"} | _on("123456789", "digits"), "in numeric literal"),
    "digits": _State(_on(_DIGITS, "digits") | {".": "point", "e": "exp", "E": "exp"}),
    "zero": _State({".": "point", "e": "exp", "E": "exp"}),
    "point": _State(_on(_DIGITS, "decimals"), "after decimal point in numeric literal"),
    "decimals": _State(_on(_DIGITS, "decimals") | {"e": "exp", "E": "exp"}),
    "exp": _State(_on("+-", "sign") | _on(_DIGITS, "power"), "in exponent of numeric literal"),
    "sign": _State(_on(_DIGITS, "power"), "in exponent of numeric literal"),
    "power": _State(_on(_DIGITS, "power")),
    "ended": _State({}),
    **dict(_literal("true")),
    **dict(_literal("false")),
    **dict(_literal("null")),
    **dict(_unicode()),
}

# States after a value, by the enclosing container.
_AFTER = {
    "": _State(_on(_SPACE, "ended"), "after top-level value"),
    "key": _State(_on(_SPACE, "ended") | {":": "value"}, "after object key"),
    "member": _State(
        _on(_SPACE, "ended") | {",": "key", "}": "closed"}, "after object key:value pair"
    ),
    "element": _State(
        _on(_SPACE, "ended") | {",": "value", "]": "closed"}, "after array element"
    ),
}


class _Scanner:
    """Go's scanner, one character at a time."""

    def __init__(self) -> None:
        self.state = "value"
        self.within = [""]

    def read(self, text: str) -> Iterator[tuple[int, str]]:
        """Scan the text; yield each character with its offset, except plain ones in strings."""
        at = 0
        while at < len(text):
            if self.state == "string" and (plain := _PLAIN.match(text, at)) is not None:
                at = plain.end()
            if at < len(text):
                self.take(text[at])
                yield at, text[at]
                at += 1

    def take(self, char: str) -> None:
        row = _STATES[self.state]
        if not row.waiting and char not in row.next:
            row = _AFTER[self.within[-1]]
        if char not in row.next:
            raise GoError(f"invalid character {quoted_char(char)} {row.waiting}")
        self._enter(row.next[char], char)

    def _enter(self, state: str, char: str) -> None:
        if state == "closed":
            self.within.pop()
            state = "ended"
        elif state in ("element?", "key?") and char in "[{":
            self.within.append("element" if char == "[" else "key")
            if len(self.within) > MAX_DEPTH + 1:
                raise GoError("exceeded max depth")
        elif char == ":" and state == "value":
            self.within[-1] = "member"
        elif state == "key" and char == ",":
            self.within[-1] = "key"
        self.state = state


def check(document: bytes) -> None:
    """Raise :exc:`GoError` unless the document is exactly one JSON value."""
    try:
        # Much faster and slightly stricter: Go accepts every document that msgspec accepts.
        jsoncodec.decode(document)
    except jsoncodec.NotJSON as error:
        if len(document) <= MAX_EXPLAINED:
            _check(document)
        elif isinstance(error, jsoncodec.TooDeep):
            # Python's parser could exceed its recursion limit.
            raise GoError(str(error)) from None
        else:
            _check_long(document, str(error))


def _check_long(document: bytes, reason: str) -> None:
    """Check a long document with Python's parser, which accepts lone surrogates and numbers of
    any size."""
    try:
        text = document.decode("utf-8", "replace")
        loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except ValueError:
        raise GoError(reason) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check(document: bytes) -> None:
    # Go's errors quote single bytes, so each byte is decoded as Latin-1.
    scanner = _Scanner()
    for _ in scanner.read(document.decode("latin-1")):
        pass
    _end(scanner)


def _end(scanner: _Scanner) -> None:
    if scanner.state == "ended" and len(scanner.within) == 1:
        return
    # Go: at the end of input, a blank is scanned first, which ends a number or is an error.
    if scanner.state != "string":
        scanner.take(" ")
    if scanner.state != "ended" or len(scanner.within) > 1:
        raise GoError("unexpected end of JSON input")


def kind_of(document: bytes) -> str:
    """Return Go's name for the type of a document that passed :func:`check`."""
    return _KINDS.get(document.lstrip()[:1].decode("latin-1"), "number")


def mismatch(document: bytes, go_type: str) -> GoError:
    """Return the error for a value that is not of the Go type."""
    return _mismatch(kind_of(document), go_type)


def _mismatch(value: str, go_type: str) -> GoError:
    return GoError(f"json: cannot unmarshal {value} into Go value of type {go_type}")


def integer(document: bytes, go_type: str, minimum: int, maximum: int) -> int:
    """Parse an integer from a checked JSON number; raise :exc:`GoError` for other numbers."""
    text = document.strip().decode("latin-1")
    # Go: strconv.ParseUint accepts no sign, strconv.ParseInt accepts -0.
    pattern = _SIGNED if minimum < 0 else _UNSIGNED
    if not pattern.fullmatch(text) or not minimum <= int(text) <= maximum:
        raise _mismatch(f"number {text}", go_type)
    return int(text)


def string(document: bytes) -> str:
    """Decode a checked JSON string."""
    # Go: lone surrogates and invalid UTF-8 become U+FFFD.
    text: str = loads(text_of(document))
    return _SURROGATE.sub("\ufffd", text)


def elements(document: bytes) -> list[bytes]:
    """Return the raw elements of a checked array."""
    try:
        return [bytes(element) for element in jsoncodec.decode(document, list[jsoncodec.Raw])]
    except jsoncodec.NotJSON:
        # Go would accept lone surrogates.
        if len(document) > MAX_EXPLAINED:
            raise GoError("a string is not valid Unicode") from None
        return _elements(document)


def _elements(document: bytes) -> list[bytes]:
    text, scanner = document.decode("latin-1").strip(_SPACE), _Scanner()
    found, start = [], 1
    for at, char in scanner.read(text):
        within = len(scanner.within)
        next_one = within == 2 and scanner.state == "value" and char == ","
        if next_one or within == 1:
            found.append(text[start:at].strip(_SPACE).encode("latin-1"))
            start = at + 1
    return [] if found == [b""] else found


def encode(value: object) -> bytes:
    """Encode a value as compact JSON with Go's escapes."""
    document = jsoncodec.encode(value)
    for char, escape in _JSON_ESCAPES:
        document = document.replace(char, escape)
    return document


def quoted_char(char: str) -> str:
    """Return the character in quotes, for error texts."""
    # Go: encoding/json/scanner.go, quoteChar.
    special = {"'": r"'\''", '"': "'\"'"}
    return special.get(char) or f"'{quoted(char)[1:-1]}'"


def quoted(text: str) -> str:
    """Return the text as Go's ``%q`` formats it."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_NO_HEX = re.compile(rb"[^0-9a-fA-F]")
_NEWLINES = b"\r\n"
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def hex_bytes(digits: bytes) -> bytes:
    """Decode hex digits."""
    # Go: an invalid byte is reported before an odd length.
    wrong = _NO_HEX.search(digits)
    if wrong is not None:
        code = wrong[0][0]
        shown = f" '{chr(code)}'" if chr(code).isprintable() else ""
        raise GoError(f"encoding/hex: invalid byte: U+{code:04X}{shown}")
    if len(digits) % 2:
        raise GoError("encoding/hex: odd length hex string")
    return binascii.unhexlify(digits)


def base64_bytes(text: bytes) -> bytes:
    """Decode padded base64; line breaks are skipped."""
    # Go: encoding/base64/base64.go, decodeQuantum; trailing bits are not checked.
    if len(text) % 4 == 0:
        with suppress(ValueError):
            return base64.b64decode(text, validate=True)
    marks = [(at, char) for at, char in enumerate(text) if char not in _NEWLINES]
    at = _first_invalid_offset(marks, len(text))
    if at is not None:
        raise GoError(f"illegal base64 data at input byte {at}")
    return base64.b64decode(text)


def _first_invalid_offset(marks: list[tuple[int, int]], size: int) -> int | None:
    """Return the offset at which Go stops decoding, or ``None`` if it decodes all
    characters."""
    first = next((i for i, (_, char) in enumerate(marks) if char not in _ALPHABET), None)
    full = len(marks) if first is None else first
    rest = full % 4
    if first is None:
        # Go reports the offset at which it stopped, minus the characters of the last group of
        # four.
        return size - rest if rest else None
    at, char = marks[first]
    if char != ord("=") or rest < 2:
        return at
    return _wrong_padding(marks[first + 1 :], size, needed=3 - rest, at=at)


def _wrong_padding(
    marks: list[tuple[int, int]], size: int, *, needed: int, at: int
) -> int | None:
    if needed:
        if not marks:
            return size
        if marks[0][1] != ord("="):
            return marks[0][0] - 1
    behind = next(islice(marks, needed, None), None)
    return None if behind is None else behind[0]
