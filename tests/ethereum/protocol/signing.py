"""Transactions of every type, signed by eth-account."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import rlp
from eth_account import Account
from eth_account.signers.local import LocalAccount

from flask_noderpc.protocol.secp256k1eth import to_checksum

ACCOUNT: LocalAccount = Account.from_key(b"\x01" * 32)
OTHER: LocalAccount = Account.from_key(b"\x02" * 32)
CHAIN_ID = 9000
# eth-account accepts only addresses with a checksum.
TO = to_checksum(b"\x2b" * 20)

LISTED = [{"address": TO, "storageKeys": ["0x" + "11" * 32, "0x" + "00" * 32]}]
_CALL = {"nonce": 3, "gas": 90_000, "to": TO, "value": 7, "data": b"\x00call"}
_FEES = {"maxFeePerGas": 5 * 10**9, "maxPriorityFeePerGas": 10**9, "chainId": CHAIN_ID}


def _authorization() -> Any:
    return OTHER.sign_authorization({"chainId": CHAIN_ID, "address": TO, "nonce": 1})


def fields_by_type() -> dict[str, dict[str, Any]]:
    return {
        "unprotected": {**_CALL, "gasPrice": 10**9},
        "legacy": {**_CALL, "gasPrice": 10**9, "chainId": CHAIN_ID},
        "creation": {**_CALL, "to": "", "gasPrice": 10**9, "chainId": CHAIN_ID},
        "access list": {
            **_CALL,
            "type": 1,
            "gasPrice": 10**9,
            "chainId": CHAIN_ID,
            "accessList": LISTED,
        },
        "dynamic fee": {**_CALL, **_FEES, "type": 2, "accessList": LISTED},
        "dynamic creation": {**_CALL, **_FEES, "type": 2, "to": ""},
        "blob": {
            **_CALL,
            **_FEES,
            "type": 3,
            "maxFeePerBlobGas": 9,
            "blobVersionedHashes": ["0x01" + "22" * 31],
        },
        "set code": {**_CALL, **_FEES, "type": 4, "authorizationList": [_authorization()]},
    }


TYPES = tuple(fields_by_type())


def signed(fields: dict[str, Any], account: LocalAccount = ACCOUNT) -> bytes:
    """Return the raw bytes of a signed transaction."""
    return bytes(account.sign_transaction(fields).raw_transaction)


def sample(name: str) -> bytes:
    """Return a transaction of each type by its name."""
    return signed(fields_by_type()[name])


def transfer(nonce: int, account: LocalAccount = ACCOUNT, **fields: Any) -> bytes:
    """Return a transfer with a dynamic fee."""
    return signed({**_CALL, **_FEES, "type": 2, "nonce": nonce, "data": b"", **fields}, account)


BLOB = bytes(1 << 17)
# EIP-4844: the commitment to a blob of zeros, and each proof for it, is the point at infinity.
_INFINITY = b"\xc0" + bytes(47)
_CELLS = 128


def with_blob(fields: dict[str, Any], account: LocalAccount = ACCOUNT) -> bytes:
    """Return the raw bytes of a blob transaction with its blob, which eth-account would take
    seconds to compute."""
    versioned_hash = b"\x01" + sha256(_INFINITY).digest()[1:]
    raw = signed({**fields, "blobVersionedHashes": [versioned_hash]}, account)
    sidecar = [b"\x01", [BLOB], [_INFINITY], [_INFINITY] * _CELLS]
    return b"\x03" + bytes(rlp.encode([rlp.decode(raw[1:]), *sidecar]))


def sender(account: LocalAccount = ACCOUNT) -> bytes:
    return bytes.fromhex(account.address[2:])
