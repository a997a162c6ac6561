"""Methods of the explorer Otterscan, in the shapes of Erigon's namespace ``ots``.

https://github.com/otterscan/otterscan, docs/custom-jsonrpc.md; Erigon: rpc/jsonrpc, otterscan
files. Numbers may be JSON numbers or hex strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .... import jsoncodec
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....wire.json_schema import typed
from ....wire.params import ParamField
from ...domain.execution import REVERTED
from ...domain.records import PlainNumber
from ...engine.tracers.call_tracer import CallList
from ...protocol.blocks import Block, BlockView
from ...protocol.execution import Receipt
from ..codec.params import (
    Address,
    Height,
    PlainBlockNumber,
    Quantity,
    Tag,
    Uint64,
    read_page_size,
)
from ..codec.trace_config import TraceConfig
from ..errors import EvmError
from ..execution import account, debug, state
from ..execution.account import SenderAndNonceParams
from ..queries.blocks import AtNumberParams, BlockHashParams, TransactionParams, find
from ..reader import reader
from .history import MAX_LIMIT, Found, creation_of, transactions_of

_API_LEVEL = 8
_CALLS = TraceConfig(logger=CallList())
_SELECTOR_BYTES = 4
_OPERATIONS = {"CALL": 0, "SELFDESTRUCT": 1, "CREATE": 2, "CREATE2": 3}
_NO_REWARD = {"blockReward": 0, "uncleReward": 0, "issuance": 0}


def api_level(ctx: Context, params: NoParams) -> PlainNumber:
    """Version of Otterscan's API: always 8."""
    return PlainNumber(_API_LEVEL)


@dataclass(frozen=True, slots=True)
class AddressParams(Params):
    """Parameters of ``ots_getContractCreator``."""

    address: bytes = param(Address(), doc="Address of the account.")


@dataclass(frozen=True, slots=True)
class HasCodeParams(AddressParams):
    """Parameters of ``ots_hasCode``."""

    block: Height = param(
        PlainBlockNumber(), default=Tag.LATEST, doc="Block whose state is read."
    )


def has_code(ctx: Context, params: HasCodeParams) -> bool:
    """True if the account has code."""
    return bool(state.code(ctx, state.AccountParams(params.address, params.block)))


def contract_creator(ctx: Context, params: AddressParams) -> dict[str, bytes] | None:
    """The transaction and the account that created a contract; null for other accounts."""
    found = creation_of(ctx, params.address)
    if found is None:
        return None
    makers = (
        each.sender
        for each in reversed(found.operations)
        if each.to == params.address and each.kind.startswith("CREATE")
    )
    creator = next(makers, found.receipt.transaction.sender)
    return {"hash": found.receipt.transaction.hash, "creator": creator}


class Nonce(Quantity):
    """A nonce, as a JSON number or a hex string."""

    in_json = typed("integer", "string")

    def from_json(self, value: Any) -> int:
        """Return the number."""
        found: int = (
            super().from_json(value) if isinstance(value, str) else Uint64().from_json(value)
        )
        return found


@dataclass(frozen=True, slots=True)
class NonceParams(SenderAndNonceParams):
    """Parameters of ``ots_getTransactionBySenderAndNonce``."""

    nonce: int = param(Nonce(), doc="Nonce of the transaction.")


def by_sender_and_nonce(ctx: Context, params: NonceParams) -> bytes | None:
    """Hash of a sender's transaction with a nonce; null for an unused nonce."""
    found = account.by_sender_and_nonce(ctx, params)
    return None if found is None or found.inclusion is None else found.transaction.hash


# Traces.


def _calls(ctx: Context, tx_hash: bytes) -> list[dict[str, Any]]:
    """Return the calls of a transaction in their order, each with its depth."""
    raw = debug.transaction(ctx, debug.TraceTransactionParams(tx_hash, _CALLS))
    found: list[dict[str, Any]] = jsoncodec.decode(bytes(raw))
    return found


def trace(ctx: Context, params: TransactionParams) -> tuple[dict[str, Any], ...]:
    """The calls of a transaction, each with its depth."""
    return tuple(
        {
            "type": frame["type"],
            "depth": PlainNumber(frame["depth"]),
            "from": frame["from"],
            "to": frame["to"],
            "value": frame.get("value") if frame["type"] != "DELEGATECALL" else None,
            "input": frame.get("input", "0x"),
            "output": frame.get("output", "0x"),
        }
        for frame in _calls(ctx, params.hash)
    )


def internal_operations(ctx: Context, params: TransactionParams) -> tuple[dict[str, Any], ...]:
    """The transfers of ether, creations and self-destructions inside a transaction."""
    return tuple(
        {
            "type": PlainNumber(_OPERATIONS[frame["type"]]),
            "from": frame["from"],
            "to": frame["to"],
            "value": frame["value"],
        }
        for frame in _lasting(_calls(ctx, params.hash))
        if frame["depth"] and _moves(frame)
    )


def _lasting(calls: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the calls without those that failed, and the calls inside them, whose effects are
    undone."""
    failed: int | None = None
    for call in calls:
        if failed is not None and call["depth"] > failed:
            continue
        failed = call["depth"] if "error" in call else None
        if failed is None:
            yield call


def _moves(frame: dict[str, Any]) -> bool:
    kind = frame["type"]
    return kind in _OPERATIONS and (kind != "CALL" or int(frame["value"], 16) > 0)


def error(ctx: Context, params: TransactionParams) -> str:
    """The data with which a transaction reverted; empty for one that did not."""
    receipt = find(ctx, params.hash)
    if receipt is None:
        raise EvmError("transaction not found")
    if receipt.succeeded:
        return "0x"
    top = _calls(ctx, params.hash)[0]
    output: str = top.get("output", "0x")
    return output if top.get("error") == REVERTED else "0x"


# Blocks.


@dataclass(frozen=True, slots=True)
class NumberParams(AtNumberParams):
    """Parameters of ``ots_getBlockDetails``."""

    block: Height = param(PlainBlockNumber(), doc="Height or tag of the block.")


def block_details(ctx: Context, params: NumberParams) -> dict[str, Any] | None:
    """A block without its transactions, their number, and the fees that they paid."""
    return _details(ctx, reader(ctx).block(params.block))


def block_details_by_hash(ctx: Context, params: BlockHashParams) -> dict[str, Any] | None:
    """A block without its transactions, as ``ots_getBlockDetails`` returns it."""
    return _details(ctx, reader(ctx).by_hash(params.hash))


def _details(ctx: Context, block: Block | None) -> dict[str, Any] | None:
    if block is None:
        return None
    shown = _plain(ctx, BlockView(block, False)) | {"logsBloom": None}
    shown["transactionCount"] = PlainNumber(len(shown.pop("transactions")))
    fees = sum(each.gas_used * each.effective_gas_price for each in block.receipts)
    return {"block": shown, "issuance": _NO_REWARD, "totalFees": fees}


class PageSize(ParamField):
    """Number of transactions in a page, as a JSON number or a hex string."""

    json_type = "integer"
    in_json = typed("integer", "string")

    def from_json(self, value: Any) -> int:
        """Return the number; raise :exc:`ValueError` for one that is not from 1 to 100."""
        return read_page_size("pageSize", value, MAX_LIMIT)


@dataclass(frozen=True, slots=True)
class BlockTransactionsParams(NumberParams):
    """Parameters of ``ots_getBlockTransactions``."""

    page: Height = param(
        PlainBlockNumber(), doc="Page, counted from 0, which has the last transactions."
    )
    size: int = param(PageSize(), doc="Transactions in a page, at most 100.")


def block_transactions(ctx: Context, params: BlockTransactionsParams) -> dict[str, Any] | None:
    """A block with a page of its transactions, whose input is cut to the selector, and their
    receipts without logs."""
    block = reader(ctx).block(params.block)
    if block is None:
        return None
    if not isinstance(params.page, int):
        raise EvmError("pageNumber: expected a number, got a tag")
    end = max(0, len(block.transactions) - params.page * params.size)
    page = slice(max(0, end - params.size), end)
    shown = _plain(ctx, BlockView(block, False))
    shown["transactionCount"] = PlainNumber(len(shown["transactions"]))
    shown["transactions"] = tuple(_cut(_plain(ctx, each)) for each in block.transactions[page])
    receipts = tuple(
        _plain(ctx, each) | {"logs": None, "logsBloom": None} for each in block.receipts[page]
    )
    return {"fullblock": shown, "receipts": receipts}


def _cut(tx: dict[str, Any]) -> dict[str, Any]:
    return tx | {"input": tx["input"][: 2 + 2 * _SELECTOR_BYTES]}


def _plain(ctx: Context, value: object) -> dict[str, Any]:
    """Return a value as its schema shows it, to change members."""
    found: dict[str, Any] = jsoncodec.decode(ctx.encode(value))
    return found


# Searches.


@dataclass(frozen=True, slots=True)
class SearchParams(AddressParams):
    """Parameters of ``ots_searchTransactionsBefore`` and ``ots_searchTransactionsAfter``."""

    block: Height = param(
        PlainBlockNumber(),
        doc="Height of the block before or after which to search; 0 for an end of the chain.",
    )
    size: int = param(PageSize(), doc="Transactions to find, at most 100.")


def search_before(ctx: Context, params: SearchParams) -> dict[str, Any]:
    """The transactions of an address before a block, newest first; a page ends with a
    whole block."""
    chain = reader(ctx)
    below = chain.height(params.block)
    span = range(chain.first, below if below else chain.latest + 1)
    found, more = _page(ctx, params, span, newest_first=True)
    return _searched(ctx, found, first_page=not below, last_page=not more)


def search_after(ctx: Context, params: SearchParams) -> dict[str, Any]:
    """The transactions of an address after a block, newest first; a page ends with a whole
    block."""
    chain = reader(ctx)
    above = chain.height(params.block)
    span = range(above + 1 if above else chain.first, chain.latest + 1)
    found, more = _page(ctx, params, span, newest_first=False)
    return _searched(ctx, found[::-1], first_page=not more, last_page=not above)


def _page(
    ctx: Context, params: SearchParams, span: range, *, newest_first: bool
) -> tuple[list[Found], bool]:
    """Return a page of transactions, and true if there are more.

    All matching transactions of the last block are in the page, even if it becomes longer than
    its size.
    """
    found: list[Found] = []
    for each in transactions_of(ctx, params.address, span, newest_first=newest_first):
        if len(found) >= params.size and each.place.height != found[-1].place.height:
            return found, True
        found.append(each)
    return found, False


def _searched(
    ctx: Context, found: Iterable[Found], *, first_page: bool, last_page: bool
) -> dict[str, Any]:
    receipts = [each.receipt for each in found]
    return {
        "txs": tuple(each.in_block for each in receipts),
        "receipts": tuple(_stamped(ctx, each) for each in receipts),
        "firstPage": first_page,
        "lastPage": last_page,
    }


def _stamped(ctx: Context, receipt: Receipt) -> dict[str, Any]:
    return _plain(ctx, receipt) | {"timestamp": receipt.inclusion.block_time}
