"""Transactions of an account, sent and received, by height or date."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import NamedTuple

from flask import request

from ..backends.base.backend import ChainBackend
from ..domain.search import SearchLimits, TxResult
from ..domain.time import SECOND
from ..errors import SearchTooCostly, ValueNotAllowed
from ..events.history import History, Place
from ..protocol.comet.hashes import tx_hash
from . import text
from .chain import MAX_HEIGHT_DIGITS
from .node import Node, tx_line

PAGE, MAX_EXPORT = 25, 10_000
"""Number of rows of a page, and the maximum number of rows of a file."""
RECENT = 10_000
"""Number of latest blocks to search if searching all is too costly."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MAX_TEXT = 200


class HistoryRow(NamedTuple):
    """A transaction in the history of an account."""

    hash: str
    height: int
    kind: str
    """Actions of the transaction in words, or its bytes."""
    direction: str
    """``sent``, ``received``, ``both``, or empty if the events name no amount."""
    amount: str
    """Amounts that moved to or from the account, empty if the events do not name them."""
    code: int
    """Code of the result, 0 for success."""
    failure: str
    """Reason why the transaction failed, also if it has the code 0, as those of Ethereum."""
    ethereum_hash: str
    """Hash of the Ethereum transaction with 0x; empty unless it has exactly one."""


@dataclass(frozen=True, slots=True)
class Range:
    """Heights to search, both ends included, in one order."""

    low: int
    high: int
    newest_first: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of one page, and the cursor of the next one, empty on the last page."""

    rows: Sequence[HistoryRow] = ()
    following: str = ""
    is_recent: bool = False
    """True if only the latest blocks were searched."""


def wanted_range(node: Node) -> Range:
    """Return the range of the query parameters ``from`` and ``to``, which are heights or dates,
    and ``order``; raise ``ValueNotAllowed``."""
    order = request.args.get("order", "desc")
    if order not in ("asc", "desc"):
        raise ValueNotAllowed(f"order: expected asc or desc, got {order[:40]!r}")
    latest = node.read("tx_search", lambda backend: backend.reads.latest_height())
    low = _height(node, "from", 1, latest, 0)
    high = _height(node, "to", latest, latest, 1)
    return Range(low, min(high, latest), order == "desc")


def _height(node: Node, name: str, default: int, latest: int, days: int) -> int:
    value = request.args.get(name, "").strip()
    if not value:
        return default
    if value.isascii() and value.isdigit() and len(value) <= MAX_HEIGHT_DIGITS:
        return int(value)
    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        day = date.fromisoformat(value)
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    except ValueError:
        raise ValueNotAllowed(
            f"{name}: expected a height or a date such as 2026-01-31, got {value[:40]!r}"
        ) from None
    begun = (int(begin.timestamp()) + days * 86_400) * SECOND
    first = _first_from(node, begun, latest)
    # The range ends with the last block before the end of the day.
    return first - 1 if days else first


def _first_from(node: Node, begun: int, latest: int) -> int:
    """Return the height of the first block at or after a time; the height above the latest if
    all blocks are older."""

    def find(backend: ChainBackend) -> int:
        low, high = max(1, backend.reads.lowest_readable()), latest + 1
        while low < high:
            middle = (low + high) // 2
            if backend.reads.block_meta(middle).header.time < begun:
                low = middle + 1
            else:
                high = middle
        return low

    return node.read("tx_search", find)


def search(
    node: Node, address: str, keys: Sequence[str], wanted: Range, after: Place | None
) -> Found:
    """Return a page of the transactions in whose events one of the keys has the address; if
    searching all is too costly, of the latest blocks.

    Raise :exc:`~flask_noderpc.errors.NodeRPCError`.
    """
    try:
        return read_page(node, address, keys, wanted, after, PAGE)
    except SearchTooCostly:
        low = max(wanted.low, wanted.high - RECENT + 1)
        recent = replace(wanted, low=low)
        return replace(read_page(node, address, keys, recent, after, PAGE), is_recent=True)


def wanted_place() -> Place | None:
    """Return the place in the query parameter ``cursor``, if it has one; raise
    ``ValueNotAllowed``."""
    cursor = request.args.get("cursor", "")
    try:
        return Place.parse(cursor) if cursor else None
    except ValueError as error:
        raise ValueNotAllowed(str(error)) from None


def read_page(
    node: Node,
    address: str,
    keys: Sequence[str],
    wanted: Range,
    after: Place | None,
    limit: int,
) -> Found:
    """Return at most ``limit`` transactions of an account.

    The whole page has one time limit and one limit of bytes; raise
    :exc:`~flask_noderpc.errors.SearchTooCostly`.
    """
    own = node.settings
    seconds, size = own.search_timeout, own.max_response_bytes
    limits = SearchLimits.within(seconds, size)

    def read(backend: ChainBackend) -> Found:
        low, high = wanted.low, wanted.high
        history = History(backend.reads, address, keys, low, high, wanted.newest_first, limits)
        rows: list[HistoryRow] = []
        left, until, last = size, time.monotonic() + seconds, ""
        for record in history.txs(after):
            if len(rows) == limit:
                return Found(rows, last)
            rows.append(_row(record, address))
            last = str(Place(record.height, record.index))
            left -= _size(record)
            if left < 0:
                raise SearchTooCostly(
                    f"these transactions have more than {size} bytes",
                    "narrow them by from and to, which are heights or dates, or raise"
                    " NODERPC_MAX_RESPONSE_BYTES",
                )
            if time.monotonic() > until:
                raise SearchTooCostly.by_time(seconds)
        return Found(rows)

    return node.read("tx_search", read)


def _size(record: TxResult) -> int:
    """Return the approximate bytes of a transaction with its events."""
    attributes = (each for event in record.result.events for each in event.attributes)
    return len(record.tx) + sum(len(each.key) + len(each.value) for each in attributes)


def _row(record: TxResult, address: str) -> HistoryRow:
    line, own = tx_line(record.tx, record.result), address.lower()
    sent = [each.amount for each in line.moves if each.sender.lower() == own]
    received = [each.amount for each in line.moves if each.recipient.lower() == own]
    if sent and received:
        direction, amounts = "both", [*sent, *(each for each in received if each not in sent)]
    else:
        direction, amounts = "sent" if sent else "received" if received else "", sent + received
    return HistoryRow(
        tx_hash(record.tx).hex().upper(),
        record.height,
        text.line(line, record.tx).text,
        direction,
        ", ".join(amounts)[:_MAX_TEXT],
        record.result.code,
        line.failure,
        line.ethereum_hash,
    )
