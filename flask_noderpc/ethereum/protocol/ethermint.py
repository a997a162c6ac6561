"""Outcomes of Ethereum transactions in Ethermint's events and cosmos/evm's message responses.

Ethermint: x/evm/keeper/msg_server.go emits the events, rpc/types/events.go reads them.
Malformed events are skipped, as a foreign chain may emit anything under the same type.

Cosmos SDK: a result's data is a ``TxMsgData``, with the response to each message. Field numbers
are from ``cosmos/base/abci/v1beta1/abci.proto`` and ``cosmos/evm/vm/v1``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest

from ... import jsoncodec
from ...domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from ...protocol import protobuf
from ...protocol.protobuf import Message
from ...protocol.secp256k1eth import to_checksum
from ..domain.execution import EmittedLog, InternalCalls, Operation
from ..domain.records import Transaction
from .crypto import from_hex

TX, LOGS, MESSAGE = "ethereum_tx", "tx_log", "message"
BLOOM, GAS = "block_bloom", "block_gas"
# Event types of this package's own chains; no module of a real chain uses them.
COINBASE, PREV_RANDAO = "block_coinbase", "block_prev_randao"
CALLS = "evm_calls"
# Event types of evmos: x/feemarket; version 20 changed the first to the second.
_FEE_MARKETS = ("fee_market", "evm_fee_market")

# Attribute of this package's own development chains; Ethermint has it in a result's data, which
# is a part of the hash of the results.
_REVERT_DATA = b"revertData"

_BLOCK_FULL = "out of gas in location: block gas meter; gasWanted:"
_NOT_WRITTEN = "failed to commit stateDB"

_UINT64 = 1 << 64
_UINT256 = 1 << 256

Attributes = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one transaction; hash and gas are ``None`` if no event contains them."""

    hash: bytes | None = None
    gas_used: int | None = None
    error: str = ""
    """Error of the EVM, empty on success."""
    revert_data: bytes | None = None
    """Output of a contract that reverted; only in the results of development chains."""

    @property
    def failed(self) -> bool:
        """True if the transaction was executed and failed."""
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class RawLog:
    """A log of an event or a response, with its transaction's hash if that is included; its
    indexes are dropped."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    transaction_hash: bytes | None


class _LogText(jsoncodec.Struct):
    """JSON of a log in an Ethermint event; its block number and indexes are ignored."""

    address: str
    topics: list[str] | None = None
    data: bytes | None = None
    transactionHash: str = ""  # noqa: N815 - Ethermint's name


def was_charged(result: ExecTxResult) -> bool:
    """Return true if the sender of a CometBFT transaction paid for it: it was executed, or it
    failed after the fee was deducted."""
    # Log texts of Ethermint: rpc/backend, TxExceedBlockGasLimit and TxStateDBCommitError.
    return result.code == 0 or _BLOCK_FULL in result.log or _NOT_WRITTEN in result.log


def outcomes(events: Iterable[Event]) -> list[Outcome]:
    """Return the outcome of each Ethereum transaction, in order.

    Ethermint until 0.20 emits one event for each transaction. Later versions emit two: one
    with hash and index before execution, and a complete one after it, whose hash takes
    precedence (ethermint issue 1175).
    """
    tx_events = [_attributes(event) for event in events if event.type == TX]
    if tx_events and len(tx_events[0]) > 2:
        return [_outcome(attributes) for attributes in tx_events]
    announced = [_outcome(attributes) for attributes in tx_events if len(attributes) == 2]
    full = [_outcome(attributes) for attributes in tx_events if len(attributes) != 2]
    return [
        replace(after, hash=after.hash or before.hash)
        # A transaction that did not fit into the block has only the first event.
        for before, after in zip_longest(announced, full, fillvalue=Outcome())
    ]


def _outcome(attributes: Attributes) -> Outcome:
    return Outcome(
        _hash(attributes.get(b"ethereumTxHash", b"")),
        number(attributes.get(b"txGasUsed", b""), _UINT64),
        attributes.get(b"ethereumTxFailed", b"").decode(errors="replace"),
        _data(attributes.get(_REVERT_DATA)),
    )


def _data(text: bytes | None) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None


def logs(events: Iterable[Event]) -> Iterator[list[RawLog]]:
    """Yield a list of logs, which may be empty, for each ``tx_log`` event. Each transaction
    emits one such event."""
    for event in events:
        if event.type == LOGS:
            values = (a.value for a in event.attributes if a.key == b"txLog")
            yield [log for log in map(_log, values) if log is not None]


def _log(value: bytes) -> RawLog | None:
    try:
        text = jsoncodec.decode(value, _LogText)
        return RawLog(
            from_hex(text.address, 20),
            tuple(from_hex(topic, 32) for topic in text.topics or ()),
            text.data or b"",
            _hash(text.transactionHash.encode()),
        )
    except ValueError:
        return None


def base_fee(results: BlockResults) -> int | None:
    """Return the block's base fee in wei; ``None`` without a fee market."""
    fees = (
        # evmos 20 emits a decimal fraction; the block's header has its integer part.
        number(_attributes(event).get(b"base_fee", b"").partition(b".")[0], _UINT256)
        for event in results.begin_block_events + results.end_block_events
        if event.type in _FEE_MARKETS
    )
    return next((fee for fee in fees if fee is not None), None)


def coinbase(results: BlockResults) -> bytes | None:
    """Return the account that received the block's tips; ``None`` means the proposer."""
    return _set_value(results, COINBASE, b"address", 20)


def prev_randao(results: BlockResults) -> bytes | None:
    """Return the value of PREVRANDAO that was set for a block; ``None`` means 0."""
    return _set_value(results, PREV_RANDAO, b"value", 32)


def _set_value(results: BlockResults, kind: str, key: bytes, size: int) -> bytes | None:
    for event in results.begin_block_events:
        if event.type == kind:
            # A foreign chain may emit anything under the same type.
            with suppress(ValueError):
                return from_hex(_attributes(event).get(key, b"").decode(), size)
    return None


def gas_used(results: BlockResults) -> int:
    """Return the gas used by a block's CometBFT transactions, up to the first one that did not
    fit into the block."""
    total = 0
    for result in results.tx_results:
        # Cosmos SDK: 11 is ErrOutOfGas; later transactions were not executed.
        if result.code == 11 and "no block gas left to run tx: out of gas" in result.log:
            break
        total += max(0, result.gas_used)
    return total


def number(text: bytes, limit: int) -> int | None:
    """Return a decimal number below a limit, or ``None`` for any other text."""
    # bytes.isdigit accepts only ASCII; the maximum length keeps int() fast.
    if not text.isdigit() or len(text) > 78:
        return None
    value = int(text)
    return value if value < limit else None


def _attributes(event: Event) -> Attributes:
    return {attribute.key: attribute.value for attribute in event.attributes}


def _hash(text: bytes) -> bytes | None:
    try:
        return from_hex(text.decode("ascii"), 32)
    except ValueError:
        return None


class Layout(Enum):
    """Layouts of Ethermint's transaction events."""

    SINGLE = "one event with everything"
    """Ethermint until 0.20."""
    SPLIT = "hash and index before execution, the rest after"


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """Result of an executed transaction; ``error`` is the EVM's error, empty on success."""

    tx: Transaction
    gas_used: int
    error: str = ""
    logs: tuple[EmittedLog, ...] = ()
    calls: InternalCalls = InternalCalls()
    revert_data: bytes | None = None
    """Output of a contract that reverted, to be stored."""


def tx_events(
    runs: Sequence[TransactionResult],
    layout: Layout,
    node_hash: bytes,
    first_index: int,
    height: int,
) -> tuple[Event, ...]:
    """Return the events of a CometBFT transaction.

    ``first_index`` is the index of its first Ethereum transaction in the whole block.
    """
    events: list[Event] = []
    if layout is Layout.SPLIT:
        for index, run in enumerate(runs, first_index):
            events.append(event("ethereum_tx", **_inclusion(run, index)))
    for index, run in enumerate(runs, first_index):
        sender = to_checksum(run.tx.sender)
        events += (
            _with_revert_data(event("ethereum_tx", **_full(run, index, node_hash)), run),
            Event("tx_log", tuple(_logs(run, index, height))),
            event("message", module="evm", sender=sender, txType=str(run.tx.type)),
        )
        if calls := tuple(_calls(run.calls)):
            events.append(Event(CALLS, calls))
    return tuple(events)


def _calls(calls: InternalCalls) -> Iterator[EventAttribute]:
    for key, addresses in ((b"account", calls.accounts), (b"created", calls.created)):
        for address in addresses:
            yield EventAttribute(key, to_checksum(address).encode())
    for made in calls.operations:
        text = {
            "type": made.kind,
            "from": _hex(made.sender),
            "to": _hex(made.to),
            "value": str(made.value),
        }
        yield EventAttribute(b"operation", jsoncodec.encode(text), index=False)


class _OperationText(jsoncodec.Struct, rename={"kind": "type", "sender": "from"}):
    """JSON of an operation in an event ``evm_calls``."""

    kind: str
    sender: str
    to: str
    value: str


def operations(events: Iterable[Event]) -> list[Operation]:
    """Return the operations in the events of a transaction, in order."""
    values = (
        attribute.value
        for event in events
        if event.type == CALLS
        for attribute in event.attributes
        if attribute.key == b"operation"
    )
    return [made for made in map(_operation, values) if made is not None]


def _operation(value: bytes) -> Operation | None:
    try:
        text = jsoncodec.decode(value, _OperationText)
        sender, to = from_hex(text.sender, 20), from_hex(text.to, 20)
    except ValueError:
        return None
    amount = number(text.value.encode(), _UINT256)
    return None if amount is None else Operation(text.kind, sender, to, amount)


def _with_revert_data(full: Event, run: TransactionResult) -> Event:
    if run.revert_data is None:
        return full
    # Searches don't need the attribute, which may have kilobytes.
    value = run.revert_data.hex().encode()
    return replace(
        full, attributes=(*full.attributes, EventAttribute(_REVERT_DATA, value, index=False))
    )


def event(kind: str, **attributes: str) -> Event:
    """Return an event with string attributes."""
    return Event(
        kind, tuple(EventAttribute(k.encode(), v.encode()) for k, v in attributes.items())
    )


def _inclusion(run: TransactionResult, index: int) -> dict[str, str]:
    return {"ethereumTxHash": _hex(run.tx.hash), "txIndex": str(index)}


def _full(run: TransactionResult, index: int, node_hash: bytes) -> dict[str, str]:
    tx_attributes = {
        "amount": str(run.tx.value),
        **_inclusion(run, index),
        "txGasUsed": str(run.gas_used),
        "txHash": node_hash.hex(),
        # This package adds the sender, which Ethermint only has in the event ``message``.
        "sender": to_checksum(run.tx.sender),
    }
    if run.tx.to is not None:
        tx_attributes["recipient"] = to_checksum(run.tx.to)
    if run.error:
        tx_attributes["ethereumTxFailed"] = run.error
    return tx_attributes


def _logs(run: TransactionResult, index: int, height: int) -> Iterator[EventAttribute]:
    for number, log in enumerate(run.logs):
        text = {
            "address": to_checksum(log.address),
            "topics": [_hex(topic) for topic in log.topics],
            "data": b64encode(log.data).decode(),
            "blockNumber": height,
            "transactionHash": _hex(run.tx.hash),
            "transactionIndex": index,
            "blockHash": _hex(bytes(32)),
            # Counts from 0 in each transaction, as in Ethermint until 0.6 (its issue 334).
            "logIndex": number,
        }
        yield EventAttribute(b"txLog", jsoncodec.encode(text))


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


# Forks of Ethermint keep the name of this protobuf message and change its package.
_RESPONSE = ".MsgEthereumTxResponse"


def response_logs(data: bytes) -> Iterator[list[RawLog]]:
    """Yield a list of logs, which may be empty, for each Ethereum message in a result's data;
    yield nothing if the data is not a ``TxMsgData``."""
    try:
        parts = [Message(part) for part in Message(data).blobs(2)]
        found = [
            [_response_log(log) for log in Message(part.blob(2)).blobs(2)]
            for part in parts
            if part.text(1).endswith(_RESPONSE)
        ]
    except (protobuf.Malformed, ValueError):
        return
    yield from found


def _response_log(message: bytes) -> RawLog:
    log = Message(message)
    return RawLog(
        from_hex(log.text(1), 20),
        tuple(from_hex(topic, 32) for topic in log.texts(2)),
        log.blob(3),
        from_hex(log.text(5), 32) if log.text(5) else None,
    )
