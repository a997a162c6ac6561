"""Filters for logs and receipts: parsed with geth's errors, and stored as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .... import jsoncodec
from ....events.history import Place
from ....wire.params import ParamField
from ...domain.records import Log
from ..errors import EvmError
from . import hex
from .params import (
    BlockNumber,
    Hash,
    Height,
    MemberNames,
    Tag,
    is_newest_first,
    mismatch,
    read_page_size,
)

# geth: eth/filters/api.go.
MAX_TOPICS = 4
MAX_ALTERNATIVES = 1_000


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Conditions on a log's address and topics, and the block or range of blocks to search."""

    addresses: tuple[bytes, ...] = ()
    """Addresses of which a log must have one; if empty, every address matches."""
    topics: tuple[tuple[bytes, ...], ...] = ()
    """For each topic of a log in order, the values that match; if empty, every value does."""
    first: Height = Tag.LATEST
    last: Height = Tag.LATEST
    block_hash: bytes | None = None

    def matches(self, log: Log) -> bool:
        """Return true if the log's address and topics match; its block is not checked."""
        if self.addresses and log.address not in self.addresses:
            return False
        if len(self.topics) > len(log.topics):
            return False
        pairs = zip(self.topics, log.topics, strict=False)
        return all(not alternatives or topic in alternatives for alternatives, topic in pairs)


_MEMBERS = MemberNames("fromBlock", "toBlock", "blockHash", "address", "topics")


class FilterObject(ParamField):
    """The filter object of ``eth_getLogs``; unknown members are ignored."""

    json_type = "object"

    def from_json(self, value: Any) -> LogFilter:
        """Return the filter; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, dict):
            raise mismatch(value, "filters.input")
        value = _MEMBERS.of(value)
        first, last = value.get("fromBlock"), value.get("toBlock")
        block_hash = value.get("blockHash")
        if block_hash is not None and (first is not None or last is not None):
            raise ValueError(
                "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"
            )
        return LogFilter(
            addresses=_addresses(value.get("address")),
            topics=_topics(value.get("topics")),
            first=_block(first),
            last=_block(last),
            block_hash=None if block_hash is None else Hash().from_json(block_hash),
        )


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A filter with the page of its logs to return; the cursor of a page is the place of its
    last log: the height, and the log's index in the block."""

    filter: LogFilter
    cursor: Place | None = None
    limit: int | None = None
    newest_first: bool = False
    is_paged: bool = False
    """True if the client asks for a page."""


# Maximum logs in a page.
_MAX_PAGE = 10_000
_PAGE = MemberNames("cursor", "limit", "order")


class LogQueryObject(FilterObject):
    """A filter object with the additional members ``cursor``, ``limit`` and ``order``."""

    def from_json(self, value: Any) -> LogQuery:  # type: ignore[override]
        """Return the query; raise :exc:`ValueError` for a wrong page."""
        log_filter = super().from_json(value)
        page = {name: each for name, each in _PAGE.of(value).items() if each is not None}
        cursor = page.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise mismatch(cursor, "string")
        if page and log_filter.block_hash is not None:
            raise ValueError("blockHash: expected fromBlock and toBlock with a page")
        limit = page.get("limit")
        newest_first = "order" in page and is_newest_first(page["order"])
        place = None if cursor is None else Place.parse(cursor)
        if place is not None:
            given = _MEMBERS.of(value)
            # A page continues at its cursor, so that end of the range need not be given.
            if newest_first and given.get("toBlock") is None:
                log_filter = replace(log_filter, last=place.height)
            elif not newest_first and given.get("fromBlock") is None:
                log_filter = replace(log_filter, first=place.height)
        return LogQuery(
            log_filter,
            cursor=place,
            limit=None if limit is None else read_page_size("limit", limit, _MAX_PAGE),
            newest_first=newest_first,
            is_paged=bool(page),
        )


def _block(value: Any) -> Height:
    return Tag.LATEST if value is None else BlockNumber().from_json(value)


def _addresses(value: Any) -> tuple[bytes, ...]:
    match value:
        case None:
            return ()
        case str():
            return (_address(value, "invalid address"),)
        case list():
            _check_count(value)
            return tuple(_element(index, each) for index, each in enumerate(value))
        case _:
            raise ValueError("invalid addresses in query")


def _element(index: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"non-string address at index {index}")
    return _address(value, f"invalid address at index {index}")


def _address(text: str, prefix: str) -> bytes:
    try:
        return _sized(text, 20, "address")
    except ValueError as error:
        raise ValueError(f"{prefix}: {error}") from None


def _topics(value: Any) -> tuple[tuple[bytes, ...], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise mismatch(value, "[]interface {}")
    if len(value) > MAX_TOPICS:
        raise ValueError("exceed max topics")
    return tuple(map(_alternatives, value))


def _alternatives(value: Any) -> tuple[bytes, ...]:
    match value:
        case None:
            return ()
        case str():
            return (_topic(value),)
        case list():
            _check_count(value)
            # geth: a list that contains null matches every topic.
            return () if None in value else tuple(map(_topic, value))
        case _:
            raise ValueError("invalid topic(s)")


def _topic(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("invalid topic(s)")
    return _sized(value, 32, "topic")


def _check_count(values: Sequence[Any]) -> None:
    if len(values) > MAX_ALTERNATIVES:
        raise ValueError("exceed max addresses or topics per search position")


def _sized(text: str, size: int, name: str) -> bytes:
    value = hex.read_data(text)
    if len(value) != size:
        raise ValueError(
            f"hex has invalid length {len(value)} after decoding; expected {size} for {name}"
        )
    return value


def criteria_text(log_filter: LogFilter) -> str:
    """Return the filter as JSON."""
    members: dict[str, object] = {
        "address": [hex.data(address) for address in log_filter.addresses],
        "topics": [[hex.data(topic) for topic in topics] for topics in log_filter.topics],
    }
    if log_filter.block_hash is not None:
        members["blockHash"] = hex.data(log_filter.block_hash)
    else:
        members["fromBlock"], members["toBlock"] = (
            _height_text(log_filter.first),
            _height_text(log_filter.last),
        )
    return jsoncodec.encode(members).decode()


def _height_text(height: Height) -> str:
    return hex.quantity(height) if isinstance(height, int) else height.value


def criteria_of(text: str) -> LogFilter:
    """Return the filter from its stored JSON."""
    return FilterObject().from_json(jsoncodec.decode(text))


# geth: eth/filters/api.go, maxTxHashes.
_MAX_HASHES = 200
_RECEIPT_MEMBERS = MemberNames("transactionHashes")


class ReceiptFilter(ParamField):
    """Hashes of the transactions of a receipt subscription; empty for all transactions."""

    json_type = "object"

    def from_json(self, value: Any) -> frozenset[bytes]:
        """Return the hashes; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, dict):
            raise mismatch(value, "filters.input")
        hashes = _RECEIPT_MEMBERS.of(value).get("transactionHashes")
        if not isinstance(hashes, list | None):
            raise mismatch(hashes, "[]common.Hash")
        if len(hashes or ()) > _MAX_HASHES:
            raise EvmError(
                "exceed max number of transaction hashes allowed per transactionReceipts"
                " subscription"
            )
        return frozenset(map(Hash().from_json, hashes or ()))
