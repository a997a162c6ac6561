"""Outcomes of the Ethereum transactions in one node transaction, from Ethermint's events.

Ethermint: x/evm/keeper/msg_server.go emits them, rpc/types/events.go reads them. What can't
be read is passed over: events are whatever a foreign chain wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from ... import jsoncodec
from ...domain.abci import BlockResults, Event, TxResult
from .hexadecimal import from_hex

TX, LOGS, MESSAGE = "ethereum_tx", "tx_log", "message"
BLOOM, GAS = "block_bloom", "block_gas"
# Of our own chains of tests; no module of a chain has it.
COINBASE = "block_coinbase"
# evmos: x/feemarket; the second name since version 20.
_FEE_MARKETS = ("fee_market", "evm_fee_market")

_BLOCK_FULL = "out of gas in location: block gas meter; gasWanted:"
_NOT_WRITTEN = "failed to commit stateDB"

_UINT64 = 1 << 64
_UINT256 = 1 << 256

Attributes = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one transaction; a field is ``None`` if no event has it."""

    hash: bytes | None = None
    gas_used: int | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class RawLog:
    """A log without its numbers, and the transaction that it says it is of."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    transaction_hash: bytes | None


class _LogText(jsoncodec.Struct):
    """A log as Ethermint writes it into an attribute; its numbers are not read."""

    address: str
    topics: list[str] | None = None
    data: bytes | None = None
    transactionHash: str = ""  # noqa: N815 - Ethermint's name


def was_charged(result: TxResult) -> bool:
    """True if a node transaction counts: it ran, or it paid its fee without running."""
    # Ethermint: rpc/backend, TxExceedBlockGasLimit and TxStateDBCommitError.
    return result.code == 0 or _BLOCK_FULL in result.log or _NOT_WRITTEN in result.log


def outcomes(events: Iterable[Event]) -> list[Outcome]:
    """Return the outcome of each transaction, in order.

    Ethermint until 0.20 emits one event each. Later ones emit an event of hash and index for
    each before execution, and a full one after, whose hash counts (ethermint issue 1175).
    """
    tx_events = [_attributes(event) for event in events if event.type == TX]
    if tx_events and len(tx_events[0]) > 2:
        return [_outcome(attributes) for attributes in tx_events]
    announced = [_outcome(attributes) for attributes in tx_events if len(attributes) == 2]
    full = [_outcome(attributes) for attributes in tx_events if len(attributes) != 2]
    return [
        replace(after, hash=after.hash or before.hash)
        # One that did not fit the block was announced alone.
        for before, after in zip_longest(announced, full, fillvalue=Outcome())
    ]


def _outcome(attributes: Attributes) -> Outcome:
    return Outcome(
        _hash(attributes.get(b"ethereumTxHash", b"")),
        number(attributes.get(b"txGasUsed", b""), _UINT64),
        bool(attributes.get(b"ethereumTxFailed")),
    )


def logs(events: Iterable[Event]) -> Iterator[list[RawLog]]:
    """The logs of each ``tx_log`` event: one for each transaction, which may have none."""
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
    """The block's base fee in wei; ``None`` without a fee market."""
    fees = (
        # evmos 20: a decimal fraction, of which the block's header has the whole wei.
        number(_attributes(event).get(b"base_fee", b"").partition(b".")[0], _UINT256)
        for event in results.begin_block_events + results.end_block_events
        if event.type in _FEE_MARKETS
    )
    return next((fee for fee in fees if fee is not None), None)


def coinbase(results: BlockResults) -> bytes | None:
    """The account that the block's tips went to, where that is not its proposer's."""
    for event in results.begin_block_events:
        if event.type == COINBASE:
            return from_hex(_attributes(event).get(b"address", b"").decode(), 20)
    return None


def gas_used(results: BlockResults) -> int:
    """Gas of all node transactions, up to the one that no longer fitted the block."""
    total = 0
    for result in results.tx_results:
        # Cosmos SDK: 11 is ErrOutOfGas; what comes after was not run.
        if result.code == 11 and "no block gas left to run tx: out of gas" in result.log:
            break
        total += max(0, result.gas_used)
    return total


def number(text: bytes, limit: int) -> int | None:
    """A decimal below a limit; ``None`` for anything else."""
    # isdigit of bytes knows ASCII alone; the length keeps int() from long work.
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
