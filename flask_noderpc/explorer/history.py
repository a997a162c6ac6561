"""Transactions of an account, sent and received, as rows of a page, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import NamedTuple

from flask import Response, request

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..domain.abci import Event
from ..domain.search import SearchLimits, TxResult
from ..domain.time import SECOND, to_text
from ..errors import SearchTooCostly, ValueNotAllowed
from ..events.history import History, Place
from ..protocol.comet.hashes import tx_hash
from . import text
from .chain import MAX_HEIGHT_DIGITS
from .node import Node

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
    sent, received = _moved(record.result.events, address.lower())
    if sent and received:
        direction, amounts = "both", [*sent, *(each for each in received if each not in sent)]
    else:
        direction, amounts = "sent" if sent else "received" if received else "", sent + received
    return HistoryRow(
        tx_hash(record.tx).hex().upper(),
        record.height,
        text.summary(record.tx, record.result).text,
        direction,
        ", ".join(amounts)[:_MAX_TEXT],
        record.result.code,
    )


def _moved(events: Sequence[Event], address: str) -> tuple[list[str], list[str]]:
    """Return the amounts that the account sent, without fees, and those that it received."""
    sent: list[str] = []
    received: list[str] = []
    for event in events:
        own = {each.key: each.value.decode(errors="replace") for each in event.attributes}
        if event.type == "tx" and b"fee" in own:
            # The SDK reports the fee after the transfer that pays it, before the messages.
            sent.clear()
        elif b"ethereumTxFailed" in own:
            # A transaction that was reverted moves nothing.
            continue
        elif amount := _amount(event.type, own.get(b"amount", "")):
            if own.get(b"sender", "").lower() == address:
                sent.append(amount)
            if own.get(b"recipient", "").lower() == address:
                received.append(amount)
    return sent, received


def _amount(kind: str, given: str) -> str:
    """Return the amount of an event that moves some, else an empty string."""
    if kind == "ethereum_tx" and given.isdecimal() and len(given) <= text.MAX_WEI_DIGITS:
        return text.ether_of(int(given)) if int(given) else ""
    return given[:_MAX_TEXT] if kind == "transfer" else ""


_COLUMNS = "hash", "height", "time", "code", "kind", "direction", "amount"


def export(node: Node, address: str, found: Found, kind: str) -> Response:
    """Return the rows as a CSV or JSON file for download."""
    lines = list(_lines(node, found.rows))
    if kind == "json":
        body = jsoncodec.encode({"address": address, "txs": lines, "cursor": found.following})
        mime = "application/json"
    else:
        table = io.StringIO()
        writer = csv.DictWriter(table, _COLUMNS)
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in each.items()} for each in lines)
        body, mime = table.getvalue().encode(), "text/csv; charset=utf-8"
    # The address has only letters and digits.
    name = f"{address}.{kind}"
    return Response(
        body,
        content_type=mime,
        headers={"Content-Disposition": f"attachment; filename={name}"},
    )


def _lines(node: Node, rows: Sequence[HistoryRow]) -> Iterator[dict[str, str | int]]:
    read = cache(node.time_of)
    for row in rows:
        made = read(row.height)
        yield {
            "hash": row.hash,
            "height": row.height,
            "time": "" if made is None else to_text(made),
            "code": row.code,
            "kind": row.kind,
            "direction": row.direction,
            "amount": row.amount,
        }


def _cell(value: str | int) -> str | int:
    """Return a value that a spreadsheet does not take for a formula."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
