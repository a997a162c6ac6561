"""Handler of ``events``: the event log of Tendermint's ADR-075.

Each message of a committed block has a cursor: its height and its position in the block. A
client that was disconnected requests the events after the last cursor that it has seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..concurrency import next_turn
from ..domain.block import Block
from ..domain.events import NewBlock, TxCommitted
from ..domain.responses import EventItem, ResultBlock, ResultEvents
from ..errors import SearchTooCostly
from ..events.messages import Message, check_events_available, messages_at
from ..events.query import Query, check_length, parse
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..wire.params import Cursor, Duration, Filter, Int

# Tendermint 0.36: rpc/core/events.go.
DEFAULT_RESULTS = 10
MAX_RESULTS = 100
MAX_WAIT_S = 30.0

LOG_BLOCKS = 1_000
"""Number of latest blocks in the event log."""

# Seconds for which a scan of blocks runs without a slot. A longer scan acquires one of the
# slots for scans, and lets other calls run after each such period.
WORK_S = 0.005

EventCursor = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EventsParams(Params):
    """Parameters of ``events``."""

    filter: str | None = param(
        Filter(),
        default=None,
        doc="Object with a ``query`` that events must match; by default all match.",
    )
    max_results: int | None = param(
        Int(), default=None, doc="Number of events to return; by default 10, at most 100."
    )
    after: EventCursor | None = param(
        Cursor(), default=None, doc="Return only events after this cursor."
    )
    before: EventCursor | None = param(
        Cursor(), default=None, doc="Return only events before this cursor."
    )
    wait_time: float = param(
        Duration(),
        default=0.0,
        doc="Time to wait for a matching event, at most 30 s: nanoseconds, or ``5s``.",
    )


def events(ctx: Context, params: EventsParams) -> ResultEvents:
    """Newest matching events, newest first, with cursors for later requests."""
    query = _query(ctx, params.filter)
    limit = _limit(params.max_results)
    latest = ctx.backend.reads.latest_height()
    found, more = _matching_page(ctx, query, params, latest, limit)
    if not found and params.before is None and params.wait_time > 0:
        latest, found, more = _wait_for_events(ctx, query, params, latest, limit)
    oldest, newest = _ends(ctx, latest)
    return ResultEvents(
        tuple(
            EventItem(_cursor_of(message), message.category, message.value) for message in found
        ),
        more=more,
        oldest=oldest,
        newest=newest,
    )


def _query(ctx: Context, text: str | None) -> Query | None:
    if not text:
        return None
    check_length(text)
    query = parse(text)
    check_events_available(ctx.backend, query)
    return query


def _limit(max_results: int | None) -> int:
    return (
        DEFAULT_RESULTS
        if max_results is None or max_results < 1
        else min(max_results, MAX_RESULTS)
    )


def _wait_for_events(
    ctx: Context, query: Query | None, params: EventsParams, latest: int, limit: int
) -> tuple[int, list[Message], bool]:
    """Wait for matching events above the latest height.

    Return the new latest height, the newest matching events, and true if there are more.
    """
    deadline = time.monotonic() + min(params.wait_time, MAX_WAIT_S)
    found: list[Message] = []
    more = False
    with ctx.waiters.acquire(ctx.client) as waiter:
        while not found and (remaining := deadline - time.monotonic()) > 0:
            seen = latest
            latest = waiter.wait_for_height(ctx.backend.reads, seen, remaining)
            found, more = _matching_page(ctx, query, params, latest, limit, above=seen)
    return latest, found, more


def _matching_page(
    ctx: Context,
    query: Query | None,
    params: EventsParams,
    latest: int,
    limit: int,
    above: int = 0,
) -> tuple[list[Message], bool]:
    """Return the newest matching events, and true if there are more.

    A page ends early if it gets too large or takes too long; the client continues after it
    with a request with ``before``.
    """
    after, before = params.after or (0, 0), params.before or (latest + 1, 0)
    eligible = (
        message
        for message in _newest_first(
            ctx, max(after[0], _lowest(ctx, latest), above + 1), min(before[0], latest)
        )
        if after < _cursor_of(message) < before
        if query is None or query.matches(message.keys)
    )
    found: list[Message] = []
    space = ctx.settings.max_response_bytes
    try:
        for message in eligible:
            space -= _weight(message)
            if len(found) == limit or (found and space < 0):
                return found, True
            found.append(message)
    except SearchTooCostly:
        if not found:
            raise
        return found, True
    return found, False


def _weight(message: Message) -> int:
    """Return the approximate size in bytes of a message of a type that can be large, or 0 for
    other messages."""
    match message.value:
        case NewBlock(results=results, result_block=ResultBlock(block=Block(txs=txs))):
            output = sum(len(result.data) + len(result.log) for result in results.tx_results)
            return 2 * sum(map(len, txs)) + output
        case TxCommitted(tx=tx, result=result):
            return 2 * len(tx) + len(result.data) + len(result.log)
        case _:
            return 0


def _newest_first(ctx: Context, low: int, high: int) -> Iterator[Message]:
    heights = iter(range(high, low - 1, -1))
    rest = time.monotonic() + min(WORK_S, ctx.settings.search_timeout)
    for height in heights:
        yield from _messages_reversed(ctx, height)
        if time.monotonic() > rest:
            break
    else:
        return
    with ctx.scans.acquire():
        yield from _scan(ctx, heights)


def _scan(ctx: Context, heights: Iterator[int]) -> Iterator[Message]:
    seconds = ctx.settings.search_timeout
    now = time.monotonic()
    deadline, rest = now + seconds, now + WORK_S
    for height in heights:
        now = time.monotonic()
        if now > deadline:
            raise SearchTooCostly.by_time(seconds)
        if now > rest:
            # Let other greenlets run under gevent. They may run for long, so read the time
            # again.
            next_turn()
            rest = time.monotonic() + WORK_S
        yield from _messages_reversed(ctx, height)


def _messages_reversed(ctx: Context, height: int) -> Iterator[Message]:
    return reversed(tuple(_messages(ctx, height)))


def _messages(ctx: Context, height: int) -> Iterable[Message]:
    return ctx.behaviours.filter_events(messages_at(ctx.backend.reads, height))


def _lowest(ctx: Context, latest: int) -> int:
    """Return the lowest height of the event log."""
    return max(ctx.backend.reads.base_height(), latest - LOG_BLOCKS + 1, 1)


def _ends(ctx: Context, latest: int) -> tuple[EventCursor | None, EventCursor | None]:
    if latest == 0:
        return None, None
    *_, last = _messages(ctx, latest)
    return (_lowest(ctx, latest), 0), _cursor_of(last)


def _cursor_of(message: Message) -> EventCursor:
    return message.height, message.position
