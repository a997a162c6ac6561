"""Ethereum transactions inside Cosmos SDK transactions.

Cosmos SDK: a ``TxRaw`` contains a ``TxBody`` with messages, each an ``Any``: the name of its
type and its bytes. Field numbers are from ``cosmos/tx/v1beta1/tx.proto`` and
``ethermint/evm/v1/tx.proto``.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import InvalidTransaction
from ...protocol import protobuf
from ...protocol.protobuf import Message, Messages
from ..domain.records import ACCESS_LIST, DYNAMIC_FEE
from . import rlp
from .crypto import from_hex

# Forks of Ethermint keep the message's name and change its package.
_MESSAGE = ".MsgEthereumTx"

# Digits of 2**256 - 1, the maximum of the SDK's Int.
_MAX_DIGITS = 78

FIRST_BYTE = 0x0A
"""First byte of every ``TxRaw``, the tag of its body; no Ethereum transaction begins with
it."""


def raw_transactions(tx: bytes, most: int | None = None) -> tuple[bytes, ...]:
    """Return the canonical bytes of each Ethereum transaction in a Cosmos SDK transaction, in
    order; if ``most`` is given, only those in as many fields of the transaction's body.

    Messages of other types are skipped. Raise :exc:`InvalidTransaction` if the bytes are
    malformed.
    """
    try:
        body = Message(Message(tx, most).blob(1), most)
        parts = [Message(message) for message in body.blobs(1)]
        return tuple(_raw(part.blob(2)) for part in parts if part.text(1).endswith(_MESSAGE))
    except (protobuf.Malformed, ValueError) as error:
        raise InvalidTransaction(f"expected a Cosmos SDK transaction: {error}") from None


def _raw(message: bytes) -> bytes:
    fields = Message(message)
    # cosmos/evm: field 6 has the transaction's bytes, and fields 1 to 4 are empty.
    raw = fields.blob(6)
    if raw:
        return raw
    data = Message(fields.blob(1))
    name = data.text(1).rpartition(".")[2]
    if name not in _TYPES:
        raise ValueError(f"data: expected one of {', '.join(_TYPES)}, got {name[:100]!r}")
    tx = Message(data.blob(2))
    return _TYPES[name] + rlp.encode([_READ[f.type](tx, f.number) for f in _MESSAGES[name]])


def _amount(tx: Message, number: int) -> int:
    """Parse an ``Int`` of the SDK: decimal digits, or an empty string for 0."""
    text = tx.text(number)
    if not text:
        return 0
    if len(text) > _MAX_DIGITS or not (text.isascii() and text.isdecimal()):
        raise ValueError(
            f"field {number}: expected at most {_MAX_DIGITS} digits, got {text[:100]!r}"
        )
    return int(text)


def _recipient(tx: Message, number: int) -> bytes:
    text = tx.text(number)
    return from_hex(text, 20) if text else b""


def _access(entry: bytes) -> rlp.Item:
    fields = Message(entry)
    return [from_hex(fields.text(1), 20), [from_hex(key, 32) for key in fields.texts(2)]]


# Field numbers have the order of the fields in an Ethereum transaction's RLP.
_MESSAGES = Messages(
    """
message LegacyTx {
  uint64 nonce = 1; Int gas_price = 2; uint64 gas = 3; Address to = 4; Int value = 5;
  bytes data = 6; Number v = 7; Number r = 8; Number s = 9;
}
message AccessListTx {
  Int chain_id = 1; uint64 nonce = 2; Int gas_price = 3; uint64 gas = 4; Address to = 5;
  Int value = 6; bytes data = 7; AccessList accesses = 8; Number v = 9; Number r = 10;
  Number s = 11;
}
message DynamicFeeTx {
  Int chain_id = 1; uint64 nonce = 2; Int gas_tip_cap = 3; Int gas_fee_cap = 4; uint64 gas = 5;
  Address to = 6; Int value = 7; bytes data = 8; AccessList accesses = 9; Number v = 10;
  Number r = 11; Number s = 12;
}
"""
)
_TYPES = {
    "LegacyTx": b"",
    "AccessListTx": bytes((ACCESS_LIST,)),
    "DynamicFeeTx": bytes((DYNAMIC_FEE,)),
}
_READ: dict[str, Callable[[Message, int], rlp.Item]] = {
    "AccessList": lambda tx, number: [_access(entry) for entry in tx.blobs(number)],
    "Address": _recipient,
    "Int": _amount,
    "Number": lambda tx, number: int.from_bytes(tx.blob(number)),
    "bytes": Message.blob,
    "uint64": Message.integer,
}
