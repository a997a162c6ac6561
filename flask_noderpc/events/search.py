"""Translate event queries to index searches by CometBFT 0.38's rules.

The rules differ from those for subscriptions: only indexed attributes match, and ``tm.event``
is not indexed; a range only compares values that are numbers as a whole, not those that begin
with one; and one event must satisfy all conditions on attributes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from ..domain.search import HIGHEST, Bound, Search, Term
from ..errors import ValueNotAllowed
from ..event_aliases import comparable
from .query import Condition, Kind, Query

TX_HASH, TX_HEIGHT, BLOCK_HEIGHT = "tx.hash", "tx.height", "block.height"

_HEIGHT = re.compile(r"0*[0-9]{1,19}", re.ASCII)
_RANGES = {Kind.LT: "<", Kind.LEQ: "<=", Kind.GT: ">", Kind.GEQ: ">="}


class _NothingMatches(Exception):
    """Raised internally if no transaction or block can satisfy the query."""


def hash_in(query: Query) -> bytes | None:
    """Return the hash in the first condition on ``tx.hash``, or ``None``; raise
    ``ValueNotAllowed`` if it is not a hash."""
    for condition in query.conditions:
        if condition.key == TX_HASH:
            return _hash(condition)
    return None


def _hash(condition: Condition) -> bytes:
    if condition.operator is not Kind.EQ:
        raise ValueNotAllowed("tx.hash: expected the operator = and a whole hash")
    digits = condition.text
    for digit in digits:
        if digit not in "0123456789abcdefABCDEF":
            # CometBFT returns Go's error texts of encoding/hex.
            raise _bad_hash(f"invalid byte: U+{ord(digit):04X} '{digit}'")
    if len(digits) % 2:
        raise _bad_hash("odd length hex string")
    return bytes.fromhex(digits)


def _bad_hash(reason: str) -> ValueNotAllowed:
    return ValueNotAllowed(
        f"error during searching for a hash in the query: encoding/hex: {reason}"
    )


def tx_search(query: Query) -> Search | None:
    """Return the search for transactions, or ``None`` if nothing can match."""
    return _search(query, TX_HEIGHT)


def block_search(query: Query) -> Search | None:
    """Return the search for blocks, or ``None`` if nothing can match."""
    return _search(query, BLOCK_HEIGHT)


def _search(query: Query, height_key: str) -> Search | None:
    on_height = [c for c in query.conditions if c.key == height_key]
    others = [c for c in query.conditions if c.key != height_key]
    try:
        low, high = _heights(on_height)
        # As in CometBFT 0.38, a height that is the only condition is compared as text with the
        # index, so that leading zeros don't match.
        if height_key == TX_HEIGHT and not others and low == high:
            _require_canonical(on_height[0])
        return Search((*_terms(others), *_ranges(others)), low, high, str(query))
    except _NothingMatches:
        return None


def _terms(conditions: Iterable[Condition]) -> Iterable[Term]:
    for condition in conditions:
        if condition.operator is Kind.EQ:
            # As in CometBFT, = compares strings, so =5 does not match 5.0.
            yield Term(condition.key, equals=comparable(condition.key, condition.text))
        elif condition.operator is Kind.CONTAINS:
            yield Term(condition.key, contains=condition.text)
        elif condition.operator is Kind.EXISTS:
            yield Term(condition.key)


def _ranges(conditions: Iterable[Condition]) -> Iterable[Term]:
    """Yield one term per key with all its bounds, as these apply to the same value."""
    bounds: dict[str, list[Bound]] = defaultdict(list)
    for condition in conditions:
        if condition.operator in _RANGES:
            bounds[condition.key].append(_bound(condition))
    for key, key_bounds in bounds.items():
        yield Term(key, within=tuple(key_bounds))


def _bound(condition: Condition) -> Bound:
    if condition.kind is not Kind.NUMBER:
        # As in CometBFT, no range of times matches, because times are not indexed as times.
        raise _NothingMatches
    return Bound(_RANGES[condition.operator], Decimal(condition.text))


def _heights(conditions: list[Condition]) -> tuple[int, int]:
    """Return the lowest and the highest height that the conditions allow."""
    ranges = [c for c in conditions if c.operator is not Kind.EQ]
    if not ranges and conditions:
        # As in CometBFT 0.37, the first condition counts if all are equalities.
        return _one_height(conditions[0])
    low, high = 0, HIGHEST
    # As in CometBFT 0.37, equalities are ignored if there is another condition on the height.
    for condition in ranges:
        first, last = _height_range(condition)
        low, high = max(low, first), min(high, last)
    if low > high:
        raise _NothingMatches
    return low, high


def _one_height(condition: Condition) -> tuple[int, int]:
    # As in CometBFT 0.38, a height in quotes matches blocks, but no transactions.
    quoted = condition.kind is Kind.STRING and condition.key == TX_HEIGHT
    if quoted or not _HEIGHT.fullmatch(condition.text) or int(condition.text) > HIGHEST:
        raise _NothingMatches
    height = int(condition.text)
    return height, height


def _require_canonical(condition: Condition) -> None:
    if condition.operator is Kind.EQ and condition.text != str(int(condition.text)):
        raise _NothingMatches


def _height_range(condition: Condition) -> tuple[int, int]:
    if condition.operator in _RANGES:
        bound = _bound(condition)
        number, floor = bound.number, math.floor(bound.number)
        return {
            "<": (0, math.ceil(number) - 1),
            "<=": (0, floor),
            ">": (floor + 1, HIGHEST),
            ">=": (math.ceil(number), HIGHEST),
        }[bound.operator]
    if condition.key == BLOCK_HEIGHT:
        # As in CometBFT, EXISTS and CONTAINS match no block.
        raise _NothingMatches
    if condition.operator is Kind.EXISTS:
        return 0, HIGHEST
    raise ValueNotAllowed("tx.height: expected an operator =, <, <=, >, >= or EXISTS")
