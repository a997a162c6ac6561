"""Ethereum transactions, and commands of development chains, as lines of lists."""

from __future__ import annotations

from itertools import islice

from ...domain.abci import ExecTxResult
from ...domain.facts import Move, TxLine
from ...protocol.secp256k1eth import to_checksum
from ..application.patches import is_patch
from ..domain.records import Transaction
from ..engine.base import reason
from ..protocol import abi
from ..protocol.ethermint import Outcome, outcomes
from ..protocol.execution import created_address, ethereum_transactions
from .assignments import assignments, ether, short

_MAX_MESSAGES = 20
"""Maximum number of messages of a Cosmos SDK transaction to read for a line."""
_SHOWN = 3
_SELECTOR = 4


def tx_line(tx: bytes, result: ExecTxResult | None) -> TxLine | None:
    """Return the Ethereum transactions in a transaction: their accounts, value and method, and
    why they failed; ``None`` if it has none."""
    if is_patch(tx):
        return TxLine("; ".join(islice(map(str, assignments(tx)), _SHOWN)))
    found = ethereum_transactions(tx, most=_MAX_MESSAGES)
    if not found:
        return None
    text = "; ".join(map(_described, found[:_SHOWN]))
    if len(found) > _SHOWN:
        text += "; and more"
    digest = f"0x{found[0].hash.hex()}" if len(found) == 1 else ""
    if result is None or result.code:
        return TxLine(text, result.log if result else "", ethereum_hash=digest)
    # A foreign chain may emit fewer events.
    ends = [*outcomes(result.events), *(Outcome() for _ in found)]
    failures = [failure(end.error, end.revert_data or b"") for end in ends if end.failed]
    moves = tuple(
        Move(to_checksum(each.sender), to_checksum(recipient(each)), ether(each.value))
        for each, end in zip(found, ends, strict=False)
        if each.value and not end.failed
    )
    return TxLine(text, "; ".join(dict.fromkeys(failures)), moves, digest)


def _described(tx: Transaction) -> str:
    sender, to = short(to_checksum(tx.sender)), short(to_checksum(recipient(tx)))
    parts = [f"{sender} {'deploys' if tx.to is None else '→'} {to}"]
    if tx.to is not None and tx.data:
        parts.append(method(tx.data))
    if tx.value or (len(parts) == 1 and tx.to is not None):
        parts.append(ether(tx.value))
    return ", ".join(parts)


def recipient(tx: Transaction) -> bytes:
    """Return the account that a transaction calls or creates."""
    return created_address(tx.sender, tx.nonce) if tx.to is None else tx.to


def method(calldata: bytes) -> str:
    """Return the name of a well-known function, or the selector of another one."""
    called = abi.function(calldata)
    return called.name if called else f"0x{calldata[:_SELECTOR].hex()}"


def failure(error: str, output: bytes) -> str:
    """Return an error of the EVM, and the reason that a contract gave in its output."""
    why = reason(output)
    return f"{error}: {why}" if why and why not in error else error
