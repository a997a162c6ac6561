"""Build Ethereum transactions that are wrapped in Cosmos SDK transactions."""

from __future__ import annotations

from flask_noderpc.ethereum.domain.records import LEGACY, Transaction
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.protocol.protobuf import blob, integer, message, string

ETHERMINT = "/ethermint.evm.v1.MsgEthereumTx"
COSMOS_EVM = "/cosmos.evm.vm.v1.MsgEthereumTx"

_DATA = ("LegacyTx", "AccessListTx", "DynamicFeeTx")


def any_of(type_url: str, body: bytes) -> bytes:
    return string(1, type_url) + blob(2, body)


def wrapped(*messages: bytes) -> bytes:
    """Return a TxRaw whose body has these ``Any``s, with a fee and no signature, like
    Ethermint's."""
    extension = any_of("/ethermint.evm.v1.ExtensionOptionsEthereumTx", b"")
    body = b"".join(message(1, each) for each in messages) + message(1023, extension)
    return blob(1, body) + blob(2, blob(2, integer(2, 90_000)))


def ethermint_message(raw: bytes) -> bytes:
    """Return the older form, which has a field for each member."""
    tx = decode(raw)
    data = any_of(f"/ethermint.evm.v1.{_DATA[tx.type]}", _fields(tx))
    # Field 2 is a double that is not read, and field 3 is the hash.
    body = message(1, data) + b"\x11" + bytes(8) + string(3, "0x" + tx.hash.hex())
    return any_of(ETHERMINT, body)


def cosmos_evm_message(raw: bytes) -> bytes:
    """Return the newer form, which has the raw bytes."""
    return any_of(COSMOS_EVM, blob(5, decode(raw).sender) + blob(6, raw))


def bank_message() -> bytes:
    return any_of("/cosmos.bank.v1beta1.MsgSend", string(1, "ethm1from") + string(2, "ethm1to"))


def _fields(tx: Transaction) -> bytes:
    fees = (tx.gas_price,) if tx.type < 2 else (tx.max_priority_fee_per_gas, tx.max_fee_per_gas)
    body, number = b"", 1
    if tx.type != LEGACY:
        body, number = string(1, str(tx.chain_id)), 2
    body += integer(number, tx.nonce)
    for fee in fees:
        number += 1
        body += string(number, str(fee))
    body += integer(number + 1, tx.gas)
    body += string(number + 2, "0x" + tx.to.hex() if tx.to else "")
    body += string(number + 3, str(tx.value)) + blob(number + 4, tx.data)
    number += 5
    if tx.type != LEGACY:
        for entry in tx.access_list:
            keys = b"".join(string(2, "0x" + key.hex()) for key in entry.storage_keys)
            body += message(number, string(1, "0x" + entry.address.hex()) + keys)
        number += 1
    for place, value in enumerate((tx.v, tx.r, tx.s)):
        body += blob(number + place, value.to_bytes(32).lstrip(b"\0"))
    return body
