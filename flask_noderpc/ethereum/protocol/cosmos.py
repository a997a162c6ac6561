"""Ethereum transactions inside Cosmos SDK transactions.

Cosmos SDK: a ``TxRaw`` has a ``TxBody``, which has messages, each an ``Any``: the name of its
type and its bytes. Field numbers are those of ``cosmos/tx/v1beta1/tx.proto`` and of
``ethermint/evm/v1/tx.proto``.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import InvalidTransaction
from ...protocol import protobuf
from ...protocol.protobuf import Message
from ..domain.records import ACCESS_LIST, DYNAMIC_FEE
from . import rlp
from .crypto import from_hex

# Forks of Ethermint keep the message's name and change the package's.
_MESSAGE = ".MsgEthereumTx"

# Digits of 2**256 - 1, which is the most that the SDK's Int has.
_MAX_DIGITS = 78

FIRST_BYTE = 0x0A
"""First byte of every ``TxRaw``, the tag of its body; no transaction type has it."""


def raw_transactions(tx: bytes) -> tuple[bytes, ...]:
    """The canonical bytes of each Ethereum transaction in a Cosmos SDK transaction, in order.

    Other messages are passed over. Raise :exc:`InvalidTransaction` where it can't be read.
    """
    try:
        body = Message(Message(tx).blob(1))
        parts = [Message(message) for message in body.blobs(1)]
        return tuple(_raw(part.blob(2)) for part in parts if part.text(1).endswith(_MESSAGE))
    except (protobuf.Malformed, ValueError) as error:
        raise InvalidTransaction(f"no Cosmos SDK transaction: {error}") from None


def _raw(message: bytes) -> bytes:
    fields = Message(message)
    # cosmos/evm: the bytes themselves, and nothing in fields 1 to 4.
    raw = fields.blob(6)
    if raw:
        return raw
    data = Message(fields.blob(1))
    name = data.text(1).rpartition(".")[2]
    form = _FORMS.get(name)
    if form is None:
        raise ValueError(f"unknown transaction data {name!r}")
    return form(Message(data.blob(2)))


def _legacy(tx: Message) -> bytes:
    return rlp.encode(
        [
            tx.integer(1),
            _amount(tx, 2),
            tx.integer(3),
            _recipient(tx, 4),
            _amount(tx, 5),
            tx.blob(6),
            *_signature(tx, 7),
        ]
    )


def _access_list(tx: Message) -> bytes:
    fees: list[rlp.Item] = [_amount(tx, 3)]
    return _typed(ACCESS_LIST, tx, fees, 4)


def _dynamic_fee(tx: Message) -> bytes:
    fees: list[rlp.Item] = [_amount(tx, 3), _amount(tx, 4)]
    return _typed(DYNAMIC_FEE, tx, fees, 5)


def _typed(kind: int, tx: Message, fees: list[rlp.Item], gas: int) -> bytes:
    """Fields that both types share; ``gas`` is the number of that field."""
    items: list[rlp.Item] = [
        _amount(tx, 1),
        tx.integer(2),
        *fees,
        tx.integer(gas),
        _recipient(tx, gas + 1),
        _amount(tx, gas + 2),
        tx.blob(gas + 3),
        [_access(entry) for entry in tx.blobs(gas + 4)],
        *_signature(tx, gas + 5),
    ]
    return bytes((kind,)) + rlp.encode(items)


_FORMS: dict[str, Callable[[Message], bytes]] = {
    "LegacyTx": _legacy,
    "AccessListTx": _access_list,
    "DynamicFeeTx": _dynamic_fee,
}


def _amount(tx: Message, number: int) -> int:
    """The SDK's Int: decimal digits; nothing is 0."""
    text = tx.text(number)
    if not text:
        return 0
    if len(text) > _MAX_DIGITS or not (text.isascii() and text.isdecimal()):
        raise ValueError(f"field {number} is no amount")
    return int(text)


def _recipient(tx: Message, number: int) -> bytes:
    text = tx.text(number)
    return from_hex(text, 20) if text else b""


def _access(entry: bytes) -> rlp.Item:
    fields = Message(entry)
    return [from_hex(fields.text(1), 20), [from_hex(key, 32) for key in fields.texts(2)]]


def _signature(tx: Message, number: int) -> list[int]:
    """V, R and S from this field on."""
    return [int.from_bytes(tx.blob(number + index)) for index in range(3)]
