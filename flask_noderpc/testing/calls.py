"""Contracts that need no EVM: what a call of a test does is in its address and its calldata."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.ethereum import Transaction
from ..ethereum import rlp
from ..ethereum.forms import WORD

_LOGS, _FAILS = b"\x10\x95", b"\xfa\x11"

# EIP-2028 and the Yellow Paper's table of fees, as far as it goes without an EVM.
_GAS_TX, _GAS_CREATE, _GAS_ZERO, _GAS_BYTE = 21_000, 32_000, 4, 16
_GAS_LOG, _GAS_TOPIC, _GAS_LOG_BYTE = 375, 375, 8


@dataclass(frozen=True, slots=True)
class EmittedLog:
    """What a log is to say; a topic has 32 bytes."""

    topics: tuple[bytes, ...] = ()
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Run:
    """What running a transaction gave; ``error`` is the EVM's, and empty for success."""

    tx: Transaction
    gas_used: int
    error: str = ""
    logs: tuple[EmittedLog, ...] = ()


def log_contract(number: int = 0) -> bytes:
    """The address of a contract that emits the logs in its calldata; there are many."""
    return _LOGS + number.to_bytes(18)


def failing_contract(number: int = 0) -> bytes:
    """The address of a contract that reverts."""
    return _FAILS + number.to_bytes(18)


def log_calldata(*logs: EmittedLog) -> bytes:
    """The calldata that makes a :func:`log_contract` emit these."""
    return rlp.encode([[log.topics, log.data] for log in logs])


def intrinsic_gas(tx: Transaction) -> int:
    """What a transaction costs before anything runs."""
    zeros = tx.data.count(0)
    created = _GAS_CREATE if tx.to is None else 0
    return _GAS_TX + created + _GAS_ZERO * zeros + _GAS_BYTE * (len(tx.data) - zeros)


def run(tx: Transaction) -> Run:
    """Run a transaction; to any other address a call does nothing."""
    gas = intrinsic_gas(tx)
    if tx.to is None or tx.to[:2] not in (_LOGS, _FAILS):
        return Run(tx, gas)
    if tx.to[:2] == _FAILS:
        return Run(tx, gas, "execution reverted")
    try:
        logs = _logs(tx.data)
    except rlp.Malformed:
        return Run(tx, gas, "execution reverted")
    gas += sum(_log_gas(log) for log in logs)
    return Run(tx, tx.gas, "out of gas") if gas > tx.gas else Run(tx, gas, logs=logs)


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
