"""Transactions of every kind, whose traces two nodes are to agree on."""

from __future__ import annotations

from typing import Any

from flask_noderpc.ethereum.engine.base import OPCODES
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.protocol.secp256k1eth import to_checksum
from tests.ethereum.protocol.signing import (
    CHAIN_ID,
    LISTED,
    OTHER,
    sender,
    signed,
    with_blob,
)

Fields = dict[str, Any]

_NEW = (0xBEEF).to_bytes(20)


def code(*words: str | int | bytes) -> bytes:
    """Return EVM code: instructions by their names, and PUSH of numbers and bytes."""
    return b"".join(map(_assembled, words))


def _assembled(item: str | int | bytes) -> bytes:
    if isinstance(item, str):
        return bytes(OPCODES[name] for name in item.split())
    data = item if isinstance(item, bytes) else item.to_bytes((item.bit_length() + 7) // 8)
    return bytes((OPCODES["PUSH0"] + len(data),)) + data


def creating(runtime: bytes) -> bytes:
    """Return code that creates a contract with the code ``runtime``."""
    prefix = code(len(runtime).to_bytes(2), "DUP1", 10, 0, "CODECOPY", 0, "RETURN")
    return prefix + runtime


def calling(kind: str, to: bytes, *, value: int = 0, size: int = 4, gas: int = 60_000) -> bytes:
    """Return code that calls an account with ``size`` bytes of zeros, and takes 32 bytes."""
    paid = (value,) if kind in ("CALL", "CALLCODE") else ()
    return code(32, 0, size, 0, *paid, to, gas, kind)


def _stored(data: bytes) -> bytes:
    """Return code that writes up to 32 bytes to the start of the memory."""
    return code(data.ljust(32, b"\0"), 0, "MSTORE")


_WORD = code(42, 0, "MSTORE")
_INNER = creating(code("STOP"))
ACTIONS = {
    "stop": code("STOP"),
    "return": _WORD + code(32, 0, "RETURN"),
    "revert": code(0, 0, "REVERT"),
    "revert with data": _WORD + code(32, 0, "REVERT"),
    "invalid": code("INVALID"),
    "undefined": b"\x0c",
    "bad jump": code(1, "JUMP"),
    "good jump": code(3, "JUMP", "JUMPDEST"),
    "underflow": code("ADD"),
    "overflow": code("JUMPDEST", 0, 0, "JUMP"),
    "much memory": code(0xFFFFFFFF, "MLOAD"),
    "too much memory": code(b"\xff" * 32, "MLOAD"),
    "sstore": code(42, 0, "SSTORE"),
    "sstore and clear": code(42, 0, "SSTORE", 0, 0, "SSTORE"),
    "sload": code(7, "SLOAD", "POP"),
    "transient": code(42, 0, "TSTORE", 0, "TLOAD", "POP"),
    "log0": code(0, 0, "LOG0"),
    "log4": _WORD + code(4, 3, 2, 1, 32, 0, "LOG4"),
    "log and revert": code(0, 0, "LOG0", 0, 0, "REVERT"),
    "hash": code(32, 0, "KECCAK256", "POP"),
    "accounts": code(_NEW, "BALANCE", _NEW, "EXTCODEHASH", _NEW, "EXTCODESIZE", "SELFBALANCE"),
    "swaps": code(1, 2, 3, "DUP2", "SWAP2", "SWAP1", "DUP1"),
    "memory": _WORD
    + code(7, 40, "MSTORE8", 8, 0, 64, "MCOPY", 4, 0, 0, "CALLDATACOPY")
    + code(4, 0, 0, "CODECOPY", 4, 0, 0, _NEW, "EXTCODECOPY"),
    "data out of bounds": code(32, 0, 0, "RETURNDATACOPY"),
    "ends for the caller": code("CALLER", "SELFDESTRUCT"),
    "ends for itself": code("ADDRESS", "SELFDESTRUCT"),
    "ends for a new account": code(_NEW, "SELFDESTRUCT"),
    "creates": _stored(_INNER) + code(len(_INNER), 0, 0, "CREATE"),
    "creates by salt": _stored(_INNER) + code(5, len(_INNER), 0, 0, "CREATE2"),
    "creates what fails": _stored(code(0, 0, "REVERT")) + code(3, 0, 0, "CREATE"),
    "creates invalid": _stored(code("INVALID")) + code(1, 0, 0, "CREATE"),
    "creates what ends": _stored(code("CALLER", "SELFDESTRUCT")) + code(2, 0, 0, "CREATE"),
    "creates without funds": code(0, 0, 1 << 80, "CREATE"),
    "calls without funds": calling("CALL", _NEW, value=1 << 80),
    "pays a new account": calling("CALL", _NEW, value=1),
    "pays a precompile": calling("CALL", (4).to_bytes(20), value=1),
    "precompiles": b"".join(calling("STATICCALL", at.to_bytes(20)) for at in range(1, 11)),
    "delegates to a precompile": calling("DELEGATECALL", (2).to_bytes(20)),
    "failing precompile": calling("CALL", (9).to_bytes(20)),
    "failing precompile by delegate": calling("DELEGATECALL", (9).to_bytes(20)),
    "poor precompile": calling("CALL", (2).to_bytes(20), gas=3),
}
CREATIONS = {
    "empty": b"",
    "reserved code": code(b"\xef", 0, "MSTORE8", 1, 0, "RETURN"),
    "large code": code(24_577, 0, "RETURN"),
    "code without gas": code(2_000, 0, "RETURN"),
    "ends": code("CALLER", "SELFDESTRUCT"),
    "ends after sstore": code(1, 0, "SSTORE", "CALLER", "SELFDESTRUCT"),
    **{f"creation: {name}": action for name, action in ACTIONS.items()},
}
CALL_KINDS = "CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"


_FEES = {"type": 2, "maxFeePerGas": 5 * 10**9, "maxPriorityFeePerGas": 10**9}
_TRANSFERS: tuple[Fields, ...] = (
    {"to": sender(OTHER), "value": 5},
    {"to": sender(OTHER), "value": 0},
    {"to": sender(OTHER), "value": 5, "data": b"text"},
    {"to": sender(), "value": 5},
    {"to": b"\x77" * 20, "value": 0},
    {"to": b"\x78" * 20, "value": 9, "gasPrice": 5 * 10**9},
    {"to": b"\x79" * 20, "value": 9, "accessList": LISTED},
    {"to": b"\x79" * 20, "type": 1, "gasPrice": 5 * 10**9, "accessList": LISTED},
    {"to": b"\x7a" * 20, "value": 9, "type": 3, "maxFeePerBlobGas": 10**9},
)


class Story:
    """Raw transactions of one account in order, by unique names."""

    def __init__(self, nonce: int) -> None:
        self._nonce = nonce
        self.transactions: dict[str, bytes] = {}

    def add(self, name: str, **fields: Any) -> bytes:
        """Add a transaction; return the address of the contract that it would create."""
        if isinstance(fields.get("to"), bytes):
            fields["to"] = to_checksum(fields["to"])
        fees = {"gasPrice": 5 * 10**9} if "gasPrice" in fields else _FEES
        fields = {"gas": 400_000, "value": 0, "chainId": CHAIN_ID, **fees, **fields}
        assert name not in self.transactions
        sign = with_blob if fields.get("type") == 3 else signed
        self.transactions[name] = sign({**fields, "nonce": self._nonce})
        self._nonce += 1
        return created_address(sender(), self._nonce - 1)


def story(nonce: int) -> Story:
    """Return the transactions of an account with this nonce."""
    made = Story(nonce)
    for number, fields in enumerate(_TRANSFERS):
        made.add(f"transfer {number}", **fields)
    for name, init in CREATIONS.items():
        gas = (
            60_000 if name == "code without gas" else 5_500_000 if "large" in name else 400_000
        )
        made.add(name, data=init, gas=gas)
    contracts = {}
    for name, action in ACTIONS.items():
        contracts[name] = made.add(f"contract: {name}", data=creating(action), gas=1_000_000)
    for name, address in contracts.items():
        made.add(f"to: {name}", to=address)
        made.add(f"to: {name}, paid", to=address, value=3, data=b"\1\2\3\4")
    for kind in CALL_KINDS:
        for name, address in contracts.items():
            made.add(f"{kind}: {name}", data=calling(kind, address))
    for name in ("return", "revert with data", "invalid", "sstore", "ends for the caller"):
        for kind in CALL_KINDS:
            inner = calling(kind, contracts[name], gas=100_000)
            ignores = made.add(f"ignoring {kind} of {name}", data=creating(inner))
            reverts = made.add(
                f"reverting {kind} of {name}",
                data=creating(inner + code("RETURNDATASIZE", 0, "REVERT")),
            )
            outer = calling("CALL", ignores, gas=200_000), calling("CALL", reverts, gas=200_000)
            made.add(f"deep {kind} of {name}", data=b"".join(outer), gas=700_000)
    for at in range(1, 18):
        made.add(f"precompile {at}", to=at.to_bytes(20), data=b"\1" * 96, gas=1_000_000)
    for own_nonce, name in enumerate(("sstore", "ends for the caller", "failing precompile")):
        delegate = to_checksum(contracts[name])
        own = {"chainId": CHAIN_ID, "address": delegate, "nonce": own_nonce}
        listed = [OTHER.sign_authorization(own)]
        made.add(f"delegation to {name}", type=4, to=sender(OTHER), authorizationList=listed)
        made.add(f"delegated {name}", to=sender(OTHER), value=1)
        made.add(f"call of delegated {name}", data=calling("CALL", sender(OTHER)))
    made.add("poor", to=contracts["sstore"], gas=22_000)
    made.add("poor creation", data=CREATIONS["creation: return"], gas=53_500)
    return made
