"""Topics of ``eth_subscribe``: what a subscriber receives, by kind and parameters.

geth: eth/filters/api.go. Subscribers with equal topics share an event buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .... import jsoncodec
from ....errors import InvalidParams, MethodNotFound
from ....events.history import Place
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ...domain.records import HeadView, Log, Transaction
from ...protocol.blocks import Block, pending_transaction
from ...protocol.consensus import may_have
from ...protocol.execution import Receipt
from ..codec import hex
from ..codec.log_filter import LogFilter, LogQuery, LogQueryObject, ReceiptFilter
from ..codec.params import Anything, Bool, Tag, positional
from ..errors import PrunedHistory
from ..reader import reader

# Clients of Ethermint send an empty object with every kind of subscription.
_NO_EFFECT = "Ignored."


class BoolOrNoOptions(Bool):
    """A boolean, or an empty object of options, which means false."""

    def from_json(self, value: Any) -> bool:
        """Return the boolean."""
        return False if value == {} else super().from_json(value)


class EncodedBlock:
    """A block whose header, logs and receipts are encoded once for all subscribers."""

    def __init__(self, ctx: Context, block: Block) -> None:
        self.block = block
        self._encode = ctx.encode
        self._head = b""
        self._logs: dict[int, bytes] = {}
        self._receipts: dict[int, bytes] = {}

    @property
    def number(self) -> int:
        """Height of the block."""
        return self.block.partial_header.number

    def head(self) -> bytes:
        """Return the JSON of the block's header."""
        self._head = self._head or self._encode(HeadView(self.block.header))
        return self._head

    def log(self, log: Log) -> bytes:
        """Return the JSON of one of the block's logs."""
        if log.index not in self._logs:
            self._logs[log.index] = self._encode(log)
        return self._logs[log.index]

    def removed_log(self, log: Log) -> bytes:
        """Return the JSON of one of the logs, if the chain no longer has the block."""
        return self.log(log).replace(b'"removed":false', b'"removed":true')

    def receipt(self, receipt: Receipt) -> bytes:
        """Return the JSON of one of the block's receipts."""
        index = receipt.inclusion.index
        if index not in self._receipts:
            self._receipts[index] = self._encode(receipt)
        return self._receipts[index]


class BlockTopic:
    """A topic whose messages are made from new blocks."""

    __slots__ = ()

    def messages(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield the JSON of each message that a block causes."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class NewHeads(BlockTopic):
    """The header of each block."""

    def messages(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield the JSON of the header."""
        yield encoded.head()


@dataclass(frozen=True, slots=True)
class Logs(BlockTopic):
    """The logs of new blocks, up to a height, that match a filter."""

    log_filter: LogFilter
    last: int | None = None

    def messages(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield the JSON of each log that matches."""
        return map(encoded.log, self._matching(encoded.block))

    def removals(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield the JSON of each log that matches in a block that was removed, last first."""
        return map(encoded.removed_log, reversed(self._matching(encoded.block)))

    def _matching(self, block: Block) -> list[Log]:
        log_filter, number = self.log_filter, block.partial_header.number
        if self.last is not None and number > self.last:
            return []
        if not may_have(block.bloom, log_filter.addresses, log_filter.topics):
            return []
        return list(filter(log_filter.matches, block.logs))


@dataclass(frozen=True, slots=True)
class Receipts(BlockTopic):
    """The receipts of the transactions with these hashes, or of all if there are no hashes;
    one list per block."""

    hashes: frozenset[bytes]

    def messages(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield the JSON of the block's list, unless it is empty."""
        found = [
            encoded.receipt(receipt)
            for receipt in encoded.block.receipts
            if not self.hashes or receipt.encoded.hash in self.hashes
        ]
        if found:
            yield b"[" + b",".join(found) + b"]"


@dataclass(frozen=True, slots=True)
class Syncing(BlockTopic):
    """Sync state of the node: sent when a client subscribes, and when it changes."""

    def messages(self, encoded: EncodedBlock) -> Iterator[bytes]:
        """Yield nothing: the hub publishes the sync state, which does not depend on a
        block."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Pending:
    """Each new pending transaction, complete or by its hash."""

    full_transactions: bool

    def message(self, ctx: Context, tx: Transaction) -> bytes:
        """Return the JSON of the transaction or of its hash."""
        if self.full_transactions:
            return ctx.encode(pending_transaction(tx))
        return jsoncodec.encode(hex.data(tx.hash))


Topic = BlockTopic | Pending


@dataclass(frozen=True, slots=True)
class SubscriptionParams(Params):
    """Parameters of ``eth_subscribe``: the kind of subscription, and the kind's parameters."""

    kind: str = param(Anything(), doc="Kind of subscription.")

    def topic(self) -> Topic:
        """Return the topic that the parameters select."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class HeadsSubscriptionParams(SubscriptionParams):
    """Parameters of ``newHeads``."""

    options: object = param(Anything(), doc=_NO_EFFECT, default=None)

    def topic(self) -> Topic:
        """Return the topic, which is the same for all subscribers."""
        return NewHeads()


@dataclass(frozen=True, slots=True)
class Beginning:
    """First block of a replay, and the last log that the client already has."""

    height: int
    after: Place | None = None
    """Last log of the first block that the client has, with its index."""


@dataclass(frozen=True, slots=True)
class LogsSubscriptionParams(SubscriptionParams):
    """Parameters of ``logs``."""

    query: LogQuery = param(
        LogQueryObject(),
        doc="Addresses, topics, and blocks: ``fromBlock`` or ``cursor`` replays earlier logs.",
    )

    def topic(self) -> Topic:
        """Return the filter's topic; raise :exc:`~flask_noderpc.errors.InvalidParams` for a
        range of blocks that can't be subscribed to."""
        if self.query.limit is not None or self.query.newest_first:
            raise InvalidParams("limit and order are options of eth_getLogs")
        _, last = _heights(self.query.filter)
        return Logs(replace(self.query.filter, first=Tag.LATEST, last=Tag.LATEST), last)

    def replay(self, ctx: Context) -> Beginning | None:
        """Return the place from which logs of stored blocks are sent; ``None`` to send only
        new logs."""
        after, (first, _) = self.query.cursor, _heights(self.query.filter)
        if first is None:
            return None
        if after is not None:
            first = max(first, after.height)
        chain = reader(ctx)
        if self.query.filter.first is Tag.EARLIEST:
            first = max(chain.height(Tag.EARLIEST), chain.first)
        first = max(first, chain.first)
        if first < ctx.backend.reads.lowest_readable():
            raise PrunedHistory
        return Beginning(first, after)


@dataclass(frozen=True, slots=True)
class ReceiptsSubscriptionParams(SubscriptionParams):
    """Parameters of ``transactionReceipts``."""

    hashes: frozenset[bytes] = param(
        ReceiptFilter(),
        doc="Hashes of transactions; all transactions when omitted.",
        default=frozenset(),
    )

    def topic(self) -> Topic:
        """Return the topic of the transactions with these hashes."""
        return Receipts(self.hashes)


@dataclass(frozen=True, slots=True)
class PendingSubscriptionParams(SubscriptionParams):
    """Parameters of ``newPendingTransactions``."""

    full_transactions: bool = param(
        BoolOrNoOptions(), doc="Send complete transactions instead of hashes.", default=False
    )

    def topic(self) -> Topic:
        """Return the topic of complete transactions or of hashes."""
        return Pending(self.full_transactions)


@dataclass(frozen=True, slots=True)
class SyncingSubscriptionParams(SubscriptionParams):
    """Parameters of ``syncing``."""

    options: object = param(Anything(), doc=_NO_EFFECT, default=None)

    def topic(self) -> Topic:
        """Return the topic, which is the same for all subscribers."""
        return Syncing()


KINDS: dict[str, type[SubscriptionParams]] = {
    "newHeads": HeadsSubscriptionParams,
    "logs": LogsSubscriptionParams,
    "newPendingTransactions": PendingSubscriptionParams,
    "syncing": SyncingSubscriptionParams,
    "transactionReceipts": ReceiptsSubscriptionParams,
}


def kind_of(raw: bytes) -> type[SubscriptionParams]:
    """Return the type of the parameters ``raw``, whose first value names the kind; raise
    ``InvalidParams`` or ``MethodNotFound``."""
    try:
        values = positional(raw or b"null")
    except ValueError as error:
        raise InvalidParams(str(error)) from None
    name = values[0] if values else None
    if not isinstance(name, str):
        raise InvalidParams("expected subscription name as first argument")
    if name not in KINDS:
        raise MethodNotFound(f'no "{name}" subscription in eth namespace')
    return KINDS[name]


def _heights(log_filter: LogFilter) -> tuple[int | None, int | None]:
    """Return the first height, ``None`` for new blocks only, and the last, ``None`` if open.

    geth: a subscription starts at the latest block or has its own range of heights.
    """
    if Tag.PENDING in (log_filter.first, log_filter.last):
        raise InvalidParams("pending logs are not supported")
    first = 0 if log_filter.first is Tag.EARLIEST else log_filter.first
    match first, log_filter.last:
        case (Tag.LATEST, Tag.LATEST):
            return None, None
        case (int(), Tag.LATEST):
            return first, None
        case (int(), int() as last) if first <= last:
            return first, last
        case _:
            raise InvalidParams("invalid block range params")
