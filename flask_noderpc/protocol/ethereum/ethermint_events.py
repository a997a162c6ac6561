"""Ethermint's events for transactions that ran, in both of its layouts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ... import jsoncodec
from ...domain.abci import Event, EventAttribute
from ...domain.ethereum import Transaction
from ...domain.evm import EmittedLog
from .hexadecimal import to_checksum


class Layout(Enum):
    """The two formats of Ethermint's transaction events."""

    SINGLE = "one event with everything"
    """Ethermint until 0.20."""
    SPLIT = "hash and index before execution, the rest after"


@dataclass(frozen=True, slots=True)
class Run:
    """Result of an executed transaction; ``error`` is the EVM's, empty on success."""

    tx: Transaction
    gas_used: int
    error: str = ""
    logs: tuple[EmittedLog, ...] = ()


def tx_events(
    runs: Sequence[Run], layout: Layout, node_hash: bytes, first_index: int, height: int
) -> tuple[Event, ...]:
    """The events of a node transaction.

    ``first_index`` is the index of the first among all Ethereum transactions of the block.
    """
    events: list[Event] = []
    if layout is Layout.SPLIT:
        for index, run in enumerate(runs, first_index):
            events.append(event("ethereum_tx", **_place(run, index)))
    for index, run in enumerate(runs, first_index):
        sender = to_checksum(run.tx.sender)
        events += (
            event("ethereum_tx", **_full(run, index, node_hash)),
            Event("tx_log", tuple(_logs(run, index, height))),
            event("message", module="evm", sender=sender, txType=str(run.tx.type)),
        )
    return tuple(events)


def event(kind: str, **attributes: str) -> Event:
    """An event with texts."""
    return Event(
        kind, tuple(EventAttribute(k.encode(), v.encode()) for k, v in attributes.items())
    )


def _place(run: Run, index: int) -> dict[str, str]:
    return {"ethereumTxHash": _hex(run.tx.hash), "txIndex": str(index)}


def _full(run: Run, index: int, node_hash: bytes) -> dict[str, str]:
    tx_attributes = {
        "amount": str(run.tx.value),
        **_place(run, index),
        "txGasUsed": str(run.gas_used),
        "txHash": node_hash.hex(),
        # Ours: Ethermint has the sender in message alone.
        "sender": to_checksum(run.tx.sender),
    }
    if run.tx.to is not None:
        tx_attributes["recipient"] = to_checksum(run.tx.to)
    if run.error:
        tx_attributes["ethereumTxFailed"] = run.error
    return tx_attributes


def _logs(run: Run, index: int, height: int) -> Iterator[EventAttribute]:
    for number, log in enumerate(run.logs):
        text = {
            "address": to_checksum(log.address),
            "topics": [_hex(topic) for topic in log.topics],
            "data": b64encode(log.data).decode(),
            "blockNumber": height,
            "transactionHash": _hex(run.tx.hash),
            "transactionIndex": index,
            "blockHash": _hex(bytes(32)),
            # Counted from 0 in each transaction, as Ethermint did until 0.6 (its issue 334).
            "logIndex": number,
        }
        yield EventAttribute(b"txLog", jsoncodec.encode(text))


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
