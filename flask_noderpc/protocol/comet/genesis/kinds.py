"""Types of values in a genesis document, read from JSON and written to JSON as Go does.

CometBFT: libs/json/decoder.go. An absent or null member has its type's zero value, unknown
members are ignored, and if a name occurs twice, the last member is used.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .... import jsoncodec
from ....domain.time import LAST_TIME, SECOND, ZERO_TIME, from_text, to_text
from ....domain.validator import PublicKey
from ....errors import short_repr
from ..key_types import KEY_NAMES

NULL = b"null"
# Maximum number of recorded problems, as each of the many members of a document may be
# invalid.
_MAX_PROBLEMS = 100
_HEX = re.compile(rb'"(?:[0-9a-fA-F]{2})*+"')
_KEY_KINDS = {name: kind for kind, name in KEY_NAMES.items()}


@dataclass(slots=True)
class Findings:
    """Findings about a document, by the paths of its members."""

    problems: dict[str, str] = field(default_factory=dict)
    """Reason for each rejected member, by its path."""
    absent: list[str] = field(default_factory=list)
    """Paths of the members that are absent or null, and are read as the zero value."""
    ignored: list[str] = field(default_factory=list)
    """Paths of the members that this version of CometBFT does not have."""

    def refuse(self, path: str, reason: str) -> None:
        """Record a problem of a member, unless the member already has one. The path of the
        whole document is empty."""
        if "" not in self.problems and len(self.problems) < _MAX_PROBLEMS:
            self.problems.setdefault(path, reason)

    def has_problem(self, *paths: str) -> bool:
        """Return True if one of the members, or an object or list that contains it, is
        rejected."""
        return any(
            path == wrong or path.startswith((f"{wrong}.", f"{wrong}[")) or not wrong
            for path in paths
            for wrong in self.problems
        )


class JsonType:
    """Type of a JSON value."""

    zero: Any
    expected: str

    def read(self, raw: bytes, path: str, findings: Findings) -> Any:
        """Return the value of a JSON text.

        For text of another type, record a problem and return the zero value.
        """
        if raw == NULL:
            findings.absent.append(path)
            return self.zero
        try:
            return self.parse(raw)
        except ValueError:
            given = short_repr(raw.decode(errors="replace"))[1:-1]
            findings.refuse(path, f"expected {self.expected}, got {given}")
            return self.zero

    def parse(self, raw: bytes) -> Any:
        """Return the value of a JSON text that is not null; raise :exc:`ValueError` for text of
        another type."""
        raise NotImplementedError

    def write(self, value: Any) -> Any:
        """Return a value as data that the JSON encoder accepts."""
        return value


class Text(JsonType):
    """String."""

    zero = ""
    expected = "a string"

    def parse(self, raw: bytes) -> str:
        found: str = jsoncodec.decode(raw, str)
        return found


class Integer(JsonType):
    """Integer of 64 bits: a string of digits, or with ``is_number`` a JSON number."""

    zero = 0

    def __init__(self, *, is_number: bool = False, is_unsigned: bool = False) -> None:
        # Go decodes the text between the quotes as JSON.
        quote, sign = b"" if is_number else b'"', b"" if is_unsigned else b"-?"
        digits = sign + rb"(?:0|[1-9][0-9]{0,19})"
        self._form = re.compile(quote + b" *(" + digits + b"|null) *" + quote)
        self._is_number = is_number
        self._range = range(1 << 64) if is_unsigned else range(-(1 << 63), 1 << 63)
        shape = "as a JSON number" if is_number else 'in quotes, such as "1"'
        self.expected = f"an integer of 64 bits {shape}"

    def parse(self, raw: bytes) -> int:
        match = self._form.fullmatch(raw)
        number = int(match[1].replace(NULL, b"0")) if match else -1
        if match is None or number not in self._range:
            raise ValueError
        return number

    def write(self, value: int) -> int | str:
        return value if self._is_number else str(value)


class Hex(JsonType):
    """Bytes as hexadecimal digits."""

    zero = b""
    expected = "hexadecimal digits in quotes"

    def parse(self, raw: bytes) -> bytes:
        if not _HEX.fullmatch(raw):
            raise ValueError
        return bytes.fromhex(raw[1:-1].decode())

    def write(self, value: bytes) -> str:
        return value.hex().upper()


class Base64(JsonType):
    """Bytes as base64."""

    zero = b""
    expected = "base64 in quotes"

    def parse(self, raw: bytes) -> bytes:
        if raw.startswith(b"["):
            # Go: encoding/json also accepts a list of numbers.
            return bytes(each or 0 for each in jsoncodec.decode(raw, list[int | None]))
        # Go: encoding/base64 skips line breaks.
        text = jsoncodec.decode(raw, str).replace("\r", "").replace("\n", "")
        return b64decode(text, validate=True)

    def write(self, value: bytes) -> str:
        return b64encode(value).decode()


class Time(JsonType):
    """RFC 3339 time in UTC, or with ``has_offset`` in any time zone."""

    zero = ZERO_TIME

    def __init__(self, *, has_offset: bool = False) -> None:
        # Go: time.Time.UnmarshalJSON accepts a comma, one digit for the hour, more than nine
        # digits for the fraction of a second, which it truncates, and time zones up to 24 hours
        # away.
        stamp = r"(\d{4}-\d\d-\d\dT)(\d?\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?"
        zone = r"(?:Z|([+-])([01]\d|2[0-4]):([0-5]\d|60))" if has_offset else r"Z()()()"
        self._form = re.compile(f'"{stamp}{zone}"', re.ASCII)
        where = "" if has_offset else "in UTC "
        self.expected = f"a time {where}such as 2024-01-02T03:04:05Z of the years 1 to 9999"

    def parse(self, raw: bytes) -> int:
        match = self._form.fullmatch(raw.decode())
        if match is None:
            raise ValueError
        date, time, fraction, sign, hours, minutes = match.groups()
        local = from_text(f"{date}{time:0>8}.{fraction or 0}Z")
        offset = (int(hours or 0) * 60 + int(minutes or 0)) * 60 * SECOND
        moment = local + offset if sign == "-" else local - offset
        if not ZERO_TIME <= moment <= LAST_TIME:
            raise ValueError
        return moment

    def write(self, value: int) -> str:
        return to_text(value)


class Document(JsonType):
    """JSON value that is copied unchanged."""

    zero = b""
    expected = "JSON"

    def parse(self, raw: bytes) -> bytes:
        return raw

    def write(self, value: bytes) -> jsoncodec.Raw:
        return jsoncodec.Raw(value)


class Key(JsonType):
    """Public key as an object with a type and a value; ``None`` if it is missing."""

    zero = None
    _value = Base64()
    expected = f"an object of type (one of {', '.join(_KEY_KINDS)}) and value (base64)"

    def parse(self, raw: bytes) -> PublicKey:
        # Go: an encoding/json struct, so the member names may contain capital letters.
        found = folded(members_of(raw))
        if not found.keys() >= {"type", "value"}:
            raise ValueError
        kind = _KEY_KINDS.get(jsoncodec.decode(found["type"], str))
        if kind is None:
            raise ValueError
        value = found["value"]
        return PublicKey(kind, b"" if value == NULL else self._value.parse(value))

    def write(self, value: PublicKey) -> dict[str, str]:
        return {"type": KEY_NAMES[value.type], "value": self._value.write(value.value)}


@dataclass(frozen=True)
class ListOf(JsonType):
    """List of values of one type."""

    of: JsonType
    zero = ()
    expected = "a list"

    def read(self, raw: bytes, path: str, findings: Findings) -> tuple[Any, ...]:
        items: Sequence[bytes] = super().read(raw, path, findings)
        return tuple(
            self.of.read(bytes(item), f"{path}[{at}]", findings)
            for at, item in enumerate(items)
        )

    def parse(self, raw: bytes) -> list[jsoncodec.Raw]:
        found: list[jsoncodec.Raw] = jsoncodec.decode(raw, list[jsoncodec.Raw])
        return found

    def write(self, value: Sequence[Any]) -> list[Any]:
        return [self.of.write(each) for each in value]


@dataclass(frozen=True)
class Member:
    """Member of a JSON object: its name, its type, and the name of the Python attribute that
    has its value."""

    name: str
    kind: JsonType
    attribute: str = ""
    omit_empty: bool = False
    """True if the member is omitted when its value is empty."""

    @property
    def source(self) -> str:
        """Name of the Python attribute that has the value; by default the member's name."""
        return self.attribute or self.name


class Object(JsonType):
    """Object with the members of a table. It is read as a dictionary of the values by
    attribute name; with ``may_be_null``, null is read as ``None``."""

    expected = "an object"

    def __init__(
        self, *members: Member, is_folded: bool = False, may_be_null: bool = False
    ) -> None:
        self.members = members
        self._is_folded = is_folded
        self.zero = None if may_be_null else {}

    def read(self, raw: bytes, path: str, findings: Findings) -> dict[str, Any] | None:
        given = super().read(raw, path, findings)
        if given is None:
            return None
        return self.read_members(given, path, findings)

    def parse(self, raw: bytes) -> Mapping[str, bytes]:
        found = members_of(raw)
        return folded(found) if self._is_folded else found

    def read_members(
        self, given: Mapping[str, bytes], path: str, findings: Findings
    ) -> dict[str, Any]:
        """Return the values of the members by attribute name, and record members that are not
        in the table as ignored."""
        prefix = f"{path}." if path else ""
        known = {member.name for member in self.members}
        findings.ignored += [prefix + name for name in given if name not in known]
        return {
            member.source: member.kind.read(
                given.get(member.name, NULL), prefix + member.name, findings
            )
            for member in self.members
        }

    def write(self, value: Any) -> dict[str, Any]:
        found = {member: getattr(value, member.source) for member in self.members}
        return {
            member.name: member.kind.write(each)
            for member, each in found.items()
            if each or not member.omit_empty
        }


def members_of(raw: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object by name, each as raw JSON; raise :exc:`ValueError`
    for other text."""
    found: dict[str, jsoncodec.Raw] = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
    return {name: bytes(value) for name, value in found.items()}


def folded(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the members by lower-case name; if two names differ only in case, the last member
    that is not null is used.

    Go: encoding/json ignores the case of names, and null does not change a value.
    """
    found: dict[str, bytes] = {}
    for name, value in members.items():
        key = name.casefold()
        if value != NULL or key not in found:
            found[key] = value
    return found
