"""Transactions of an address, with the internal calls that a chain records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from ....domain.search import TxResult
from ....events.history import History, Place, lowest_searched
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ....protocol.secp256k1eth import to_checksum
from ....wire.params import ParamField
from ...domain.execution import Operation
from ...protocol import ethermint
from ...protocol.execution import Receipt, transaction_hashes
from ...state import EVM_STATE
from ..codec.params import (
    Address,
    Bool,
    Height,
    PlainBlockNumber,
    Tag,
    is_newest_first,
    mismatch,
    read_page_size,
)
from ..errors import PrunedHistory
from ..reader import SearchBudget, reader

_CREATED = f"{ethermint.CALLS}.created"
_DIRECT = ("ethereum_tx.sender", "ethereum_tx.recipient", _CREATED)
_INTERNAL = f"{ethermint.CALLS}.account"
# Ethermint's own event of a transaction lacks the sender, which is in this one.
_SENDER = "message.sender"

_DEFAULT_LIMIT = 25
MAX_LIMIT = 100
"""Maximum transactions in a page."""


@dataclass(frozen=True, slots=True)
class Found:
    """A transaction of an address."""

    receipt: Receipt
    operations: tuple[Operation, ...]
    """All internal operations of the transaction."""

    @property
    def place(self) -> Place:
        """Block, and index in the block."""
        inclusion = self.receipt.inclusion
        return Place(inclusion.block_number, inclusion.index)

    def is_internal(self, address: bytes) -> bool:
        """Return true if the address is only in internal calls of the transaction."""
        tx, receipt = self.receipt.transaction, self.receipt
        created = receipt.contract_address if receipt.succeeded else None
        return address not in (tx.sender, tx.to, created)


def transactions_of(
    ctx: Context,
    address: bytes,
    span: range,
    *,
    newest_first: bool,
    internal: bool = True,
    after: Place | None = None,
) -> Iterator[Found]:
    """Yield the transactions of an address in a range of heights, after a place.

    Raise :exc:`~flask_noderpc.errors.SearchTooCostly`.
    """
    keys = [*_DIRECT, *([_INTERNAL] if internal else [])]
    if EVM_STATE.find(ctx.backend) is None:
        keys.append(_SENDER)
    if after is not None and newest_first:
        span = range(span.start, min(span.stop, after.height + 1))
    elif after is not None:
        span = range(max(span.start, after.height), span.stop)
    for found in _of_keys(ctx, address, span, keys, newest_first=newest_first):
        is_read = after is not None and (
            found.place >= after if newest_first else found.place <= after
        )
        if not is_read and (internal or not found.is_internal(address)):
            yield found


def heights_of(ctx: Context, addresses: Collection[bytes], span: range) -> Iterator[int]:
    """Yield the heights in a range of blocks with transactions of any of the addresses, lowest
    first."""
    keys = (*_DIRECT, _INTERNAL)
    found = merge(
        *(_history(ctx, each, span, keys, newest_first=False).txs(None) for each in addresses),
        key=attrgetter("height"),
    )
    return (height for height, _ in groupby(found, attrgetter("height")))


def creation_of(ctx: Context, address: bytes) -> Found | None:
    """Return the latest transaction that created a contract at an address, or ``None``."""
    span = range(reader(ctx).first, reader(ctx).latest + 1)
    return next(_of_keys(ctx, address, span, (_CREATED,), newest_first=True), None)


def _of_keys(
    ctx: Context, address: bytes, span: range, keys: Sequence[str], *, newest_first: bool
) -> Iterator[Found]:
    history = _history(ctx, address, span, keys, newest_first=newest_first)
    for record in history.txs(None):
        found = _found(ctx, address, record)
        yield from reversed(found) if newest_first else found


def _history(
    ctx: Context, address: bytes, span: range, keys: Sequence[str], *, newest_first: bool
) -> History:
    return History(
        ctx.backend.reads,
        to_checksum(address),
        keys,
        span.start,
        span.stop - 1,
        newest_first,
        SearchBudget(ctx.settings).limits,
    )


def _found(ctx: Context, address: bytes, record: TxResult) -> list[Found]:
    block = reader(ctx).block_at(record.height)
    if block is None:
        raise PrunedHistory
    hashes = transaction_hashes(record.tx)
    operations = tuple(ethermint.operations(record.result.events))
    found = [
        Found(receipt, operations)
        for receipt in block.receipts
        if receipt.encoded.hash in hashes
    ]
    if len(found) > 1:
        # A transaction of the Cosmos SDK may have several of Ethereum, of other accounts too.
        found = [each for each in found if not each.is_internal(address)] or found
    return found


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Page, order and range of blocks of an address's transactions."""

    cursor: Place | None = None
    limit: int = _DEFAULT_LIMIT
    newest_first: bool = True
    internal: bool = True
    first: Height = Tag.EARLIEST
    last: Height = Tag.LATEST


_MEMBERS = ("cursor", "limit", "order", "internal", "fromBlock", "toBlock")


class Options(ParamField):
    """The options of ``noderpc_getTransactionsByAddress``."""

    json_type = "object"

    def from_json(self, value: Any) -> HistoryOptions:
        """Return the options; raise :exc:`ValueError` for an unknown or a wrong one."""
        if not isinstance(value, dict):
            raise mismatch(value, "HistoryOptions")
        given = {name: each for name, each in value.items() if each is not None}
        for name in given:
            if name not in _MEMBERS:
                raise ValueError(
                    f"expected options from {', '.join(_MEMBERS)}, got {name[:40]!r}"
                )
        return HistoryOptions(**_read(given))


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if "cursor" in given:
        if not isinstance(given["cursor"], str):
            raise mismatch(given["cursor"], "string")
        read["cursor"] = Place.parse(given["cursor"])
    if "limit" in given:
        read["limit"] = read_page_size("limit", given["limit"], MAX_LIMIT)
    if "order" in given:
        read["newest_first"] = is_newest_first(given["order"])
    if "internal" in given:
        read["internal"] = Bool().from_json(given["internal"])
    for name, member in (("first", "fromBlock"), ("last", "toBlock")):
        if member in given:
            read[name] = PlainBlockNumber().from_json(given[member])
    return read


@dataclass(frozen=True, slots=True)
class HistoryParams(Params):
    """Parameters of ``noderpc_getTransactionsByAddress``."""

    address: bytes = param(Address(), doc="Address of the account.")
    options: HistoryOptions = param(
        Options(),
        default=HistoryOptions(),
        doc="cursor of the page before; limit, at most 100; order, desc or asc; internal, false"
        " to leave out internal calls; fromBlock and toBlock.",
    )


def by_address(ctx: Context, params: HistoryParams) -> dict[str, Any]:
    """The transactions of an address, page by page, with the blocks that could not be
    searched."""
    chosen, chain = params.options, reader(ctx)
    low = max(chain.height(chosen.first), chain.first)
    if chosen.first is Tag.EARLIEST:
        low = chain.first
    high = min(chain.height(chosen.last), chain.latest)
    found = list(
        islice(
            transactions_of(
                ctx,
                params.address,
                range(low, high + 1),
                newest_first=chosen.newest_first,
                internal=chosen.internal,
                after=chosen.cursor,
            ),
            chosen.limit + 1,
        )
    )
    page = found[: chosen.limit]
    return {
        "transactions": tuple(_shown(each, params.address) for each in page),
        "cursor": str(page[-1].place) if len(found) > len(page) else None,
        "fromBlock": low,
        "toBlock": high,
        "missing": tuple(_missing(ctx, low, high, internal=chosen.internal)),
    }


def _shown(found: Found, address: bytes) -> dict[str, Any]:
    receipt = found.receipt
    return {
        "transaction": receipt.in_block,
        "status": int(receipt.succeeded),
        "gasUsed": receipt.gas_used,
        "contractAddress": receipt.contract_address,
        "internal": found.is_internal(address),
        "operations": tuple(
            {"type": each.kind, "from": each.sender, "to": each.to, "value": each.value}
            for each in found.operations
            if address in (each.sender, each.to)
        ),
    }


def _missing(ctx: Context, low: int, high: int, *, internal: bool) -> Iterator[dict[str, Any]]:
    """Yield the ranges of blocks that are not searched, each with the reason."""
    lowest = lowest_searched(ctx.backend.reads)
    if low < min(lowest, high + 1):
        yield _range(low, min(high, lowest - 1), "pruned")
    evm = EVM_STATE.find(ctx.backend)
    since = evm.calls_recorded_since() if evm else None
    begin, end = max(low, lowest), high if since is None else min(high, since - 1)
    if internal and begin <= end:
        reason = (
            "internal calls not recorded (NODERPC_EVM_RECORD_CALLS)"
            if evm
            else "internal calls may not be recorded by the node that made the blocks"
        )
        yield _range(begin, end, reason)


def _range(first: int, last: int, reason: str) -> dict[str, Any]:
    return {"fromBlock": first, "toBlock": last, "reason": reason}
