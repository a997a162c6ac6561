"""Parser and matcher of CometBFT 0.38's event query language.

``tm.event='Tx' AND transfer.amount > 5``: conditions joined by AND; a condition holds if any
value of its key satisfies it. Numeric comparisons use the leading number of a value, so
``8atom`` is 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple

from ..domain.time import from_text
from ..errors import QuerySyntaxError, ValueNotAllowed
from ..event_aliases import comparable, has_aliases

Events = Mapping[str, Sequence[str]]
"""Keys of an event message, each with its values in the order of the events."""


class Kind(Enum):
    """Kind of a token; the values are CometBFT's names in error texts."""

    TAG = "tag"
    STRING = "string"
    NUMBER = "number"
    TIME = "timestamp"
    DATE = "datestamp"
    AND = "AND operator"
    CONTAINS = "CONTAINS operator"
    EXISTS = "EXISTS operator"
    EQ = "= operator"
    LT = "< operator"
    LEQ = "<= operator"
    GT = "> operator"
    GEQ = ">= operator"
    END = "EOF"


_OPERATORS = {"=": Kind.EQ, "<": Kind.LT, "<=": Kind.LEQ, ">": Kind.GT, ">=": Kind.GEQ}
_WORDS = {"AND": Kind.AND, "CONTAINS": Kind.CONTAINS, "EXISTS": Kind.EXISTS}
_SYMBOLS = {kind: text for text, kind in (_OPERATORS | _WORDS).items()}
_COMPARE: dict[Kind, Callable[[Any, Any], bool]] = {
    Kind.EQ: eq,
    Kind.LT: lt,
    Kind.LEQ: le,
    Kind.GT: gt,
    Kind.GEQ: ge,
}
# Order of the operators in CometBFT's error texts.
_OPERATOR_ORDER = (
    Kind.LEQ,
    Kind.GEQ,
    Kind.LT,
    Kind.GT,
    Kind.EQ,
    Kind.CONTAINS,
    Kind.EXISTS,
)
_ORDERED = (Kind.NUMBER, Kind.TIME, Kind.DATE)
_OPERANDS = {
    Kind.EQ: (*_ORDERED, Kind.STRING),
    Kind.CONTAINS: (Kind.STRING,),
    **dict.fromkeys((Kind.LT, Kind.LEQ, Kind.GT, Kind.GEQ), _ORDERED),
}

# Blanks by Go's unicode.IsSpace: Python's \s without four ASCII control characters.
_BLANKS = re.compile(r"[^\S\x1c-\x1f]*")
# One alternative per kind of token. TIME and DATE only begin an operand if a blank follows;
# otherwise they are keys.
_TOKEN = re.compile(
    _BLANKS.pattern
    + r"""(?:
        (?P<number>[0-9]+(?:\.[0-9]*)?)
      | '(?P<string>[^']*)'
      | (?P<operator>[<>]=?|=)
      | TIME\ (?P<time>[-T:+Z0-9]*)
      | DATE\ (?P<date>[-0-9]*)
      | (?P<tag>[^\W\d][\w.-]*)
    )""",
    re.VERBOSE,
)
# Number of characters of a token before its text: a quote, or TIME or DATE with a blank.
_BEFORE = {"number": 0, "string": 1, "operator": 0, "time": 5, "date": 5, "tag": 0}
_LEADING_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Token(NamedTuple):
    kind: Kind
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a query: a key, an operator, and its operand."""

    key: str
    operator: Kind
    kind: Kind | None = None
    """Kind of the operand; ``None`` for EXISTS."""
    text: str = ""
    _holds: Callable[[str], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        holds = _predicate(self.operator, self.kind, self.text)
        if self.is_equality and has_aliases(self.key):
            expected = comparable(self.key, self.text)
            holds = lambda value: comparable(self.key, value) == expected  # noqa: E731
        object.__setattr__(self, "_holds", holds)

    def __str__(self) -> str:
        operand = {
            None: "",
            Kind.STRING: f" '{self.text}'",
            Kind.TIME: f" TIME {self.text}",
            Kind.DATE: f" DATE {self.text}",
        }.get(self.kind, f" {self.text}")
        # Write no blank after these two keys, which would otherwise be parsed as the beginning
        # of an operand.
        gap = "" if self.key in ("TIME", "DATE") else " "
        return f"{self.key}{gap}{_SYMBOLS[self.operator]}{operand}"

    @property
    def is_equality(self) -> bool:
        """True if the value must equal a string; subscriptions are indexed by such
        conditions."""
        return self.operator is Kind.EQ and self.kind is Kind.STRING

    def holds(self, value: str) -> bool:
        """Return True if a single value satisfies the condition."""
        return self._holds(value)

    def matches(self, events: Events) -> bool:
        """Return True if any value of the key satisfies the condition."""
        if any(map(self._holds, events.get(self.key, ()))):
            return True
        # As in CometBFT 0.38, a key that is only the type of an event has an empty value.
        return self._holds("") and any(key.rpartition(".")[0] == self.key for key in events)


@dataclass(frozen=True, slots=True)
class Query:
    """Conjunction of conditions; ``str(query)`` is its normal form."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(map(str, self.conditions))

    def matches(self, events: Events) -> bool:
        """Return True if each condition is satisfied by any value of its key."""
        return bool(events) and all(c.matches(events) for c in self.conditions)


# CometBFT's maxQueryLength.
MAX_QUERY_BYTES = 512


def check_length(text: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for a query that is too long."""
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise ValueNotAllowed(
            "maximum query length exceeded", f"expected at most {MAX_QUERY_BYTES} bytes"
        )


def parse(text: str) -> Query:
    """Parse a query; raise :exc:`~flask_noderpc.errors.QuerySyntaxError`."""
    tokens = _scan(text)
    conditions = [_condition(tokens)]
    while (token := next(tokens)).kind is not Kind.END:
        _require(token, Kind.AND)
        conditions.append(_condition(tokens))
    return Query(tuple(conditions))


def _condition(tokens: Iterator[_Token]) -> Condition:
    key = _require(next(tokens), Kind.TAG)
    operator = _require(next(tokens), *_OPERATOR_ORDER)
    if operator.kind is Kind.EXISTS:
        return Condition(key.text, Kind.EXISTS)
    operand = _require(next(tokens), *_OPERANDS[operator.kind])
    return Condition(key.text, operator.kind, operand.kind, operand.text)


def _require(token: _Token, *kinds: Kind) -> _Token:
    if token.kind in kinds:
        return token
    if token.kind is Kind.END:
        raise QuerySyntaxError("EOF", token.at)
    names = ", ".join(kind.value for kind in kinds[:-1])
    names = f"{names} or {kinds[-1].value}" if names else kinds[-1].value
    raise QuerySyntaxError(f"got {token.kind.value}, wanted {names}", token.at)


def _scan(text: str) -> Iterator[_Token]:
    """Yield the tokens and finally END, in one pass without backtracking."""
    at = 0
    while match := _TOKEN.match(text, at):
        yield _token(match)
        at = match.end()
    rest = _BLANKS.sub("", text[at:], count=1)
    start = len(text) - len(rest)
    # As in CometBFT, report an unterminated string as an unexpected end of the text.
    if rest and rest[0] != "'":
        end = _bytes_before(text, start + 1)
        reason = f"invalid input {rest[0]} at offset {end}"
        raise QuerySyntaxError(reason, _bytes_before(text, start))
    yield _Token(Kind.END, "", _bytes_before(text, start))


def _bytes_before(text: str, at: int) -> int:
    # Offsets in CometBFT's errors count bytes.
    return len(text[:at].encode("utf-8", "replace"))


def _token(match: re.Match[str]) -> _Token:
    group = str(match.lastgroup)
    text, at = match[group], _bytes_before(match.string, match.start(group) - _BEFORE[group])
    if group == "operator":
        return _Token(_OPERATORS[text], text, at)
    if group == "tag":
        return _Token(_WORDS.get(text, Kind.TAG), text, at)
    if group in ("time", "date"):
        _check_time(group, text, at)
    return _Token(Kind[group.upper()], text, at)


def _check_time(group: str, text: str, at: int) -> None:
    try:
        _PARSERS[Kind[group.upper()]](text)
    except ValueError as error:
        raise QuerySyntaxError(f"invalid {group.upper()} value: {error}", at) from None
    if not 1900 <= int(text[:4]) <= 2999:
        raise QuerySyntaxError(f"{group}stamp year {text[:4]} out of range", at)


def _number(text: str) -> Decimal:
    match = _LEADING_NUMBER.match(text)
    if match is None:
        raise ValueError(f"{text!r} starts with no number")
    return Decimal(match[0])


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not a date")
    return date.fromisoformat(text)


_PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.STRING: str,
    Kind.NUMBER: _number,
    Kind.TIME: from_text,
    Kind.DATE: _date,
}


def _predicate(operator: Kind, kind: Kind | None, text: str) -> Callable[[str], bool]:
    """Return a function that compares a value with the operand; it returns false for a value
    of another kind."""
    if kind is None:
        return lambda value: True
    if operator is Kind.CONTAINS:
        return lambda value: text in value
    if kind is Kind.STRING:
        return text.__eq__
    parse_value, compare = _PARSERS[kind], _COMPARE[operator]
    expected = parse_value(text)

    def holds(value: str) -> bool:
        try:
            return compare(parse_value(value), expected)
        except ValueError:
            return False

    return holds
