"""Contracts of the Ethermint double: address and calldata of a call say what it does."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain import evm
from ..domain.ethereum import Transaction
from ..protocol.ethereum import rlp
from ..protocol.ethereum.ethermint import Run
from ..protocol.ethereum.forms import WORD
from ..protocol.ethereum.validity import intrinsic_gas

_LOGS, _FAILS = b"\x10\x95", b"\xfa\x11"

# The Yellow Paper's table of fees.
_GAS_LOG, _GAS_TOPIC, _GAS_LOG_BYTE = 375, 375, 8


@dataclass(frozen=True, slots=True)
class EmittedLog:
    """Data and topics of a log to emit; a topic has 32 bytes."""

    topics: tuple[bytes, ...] = ()
    data: bytes = b""


def log_contract(number: int = 0) -> bytes:
    """The address of a contract that emits the logs in its calldata; there are many."""
    return _LOGS + number.to_bytes(18)


def failing_contract(number: int = 0) -> bytes:
    """The address of a contract that reverts."""
    return _FAILS + number.to_bytes(18)


def log_calldata(*logs: EmittedLog) -> bytes:
    """The calldata that makes a :func:`log_contract` emit these."""
    return rlp.encode([[log.topics, log.data] for log in logs])


def run(tx: Transaction) -> Run:
    """Run a transaction; to any other address a call does nothing."""
    gas = intrinsic_gas(tx.data, tx.to is None)
    if tx.to is None or tx.to[:2] not in (_LOGS, _FAILS):
        return Run(tx, gas)
    if tx.to[:2] == _FAILS:
        return Run(tx, gas, "execution reverted")
    try:
        logs = _logs(tx.data)
    except rlp.Malformed:
        return Run(tx, gas, "execution reverted")
    gas += sum(_log_gas(log) for log in logs)
    if gas > tx.gas:
        return Run(tx, tx.gas, "out of gas")
    emitted = tuple(evm.EmittedLog(tx.to, log.topics, log.data) for log in logs)
    return Run(tx, gas, logs=emitted)


def _log_gas(log: EmittedLog) -> int:
    return _GAS_LOG + _GAS_TOPIC * len(log.topics) + _GAS_LOG_BYTE * len(log.data)


def _logs(data: bytes) -> tuple[EmittedLog, ...]:
    logs = []
    items = rlp.Reader(data).list("logs")
    while not items.done:
        log = items.list("a log")
        topics = log.list("topics")
        logs.append(EmittedLog(_topics(topics), log.string("data")))
    return tuple(logs)


def _topics(items: rlp.Reader) -> tuple[bytes, ...]:
    topics = []
    while not items.done:
        topics.append(items.string("a topic"))
    # The EVM has LOG0 to LOG4.
    if len(topics) > 4 or any(len(topic) != WORD for topic in topics):
        raise rlp.Malformed("no topics of a log")
    return tuple(topics)
