"""Record what geth's ``erc7562Tracer`` reports for transactions of all kinds.

``python -m tests.clients.record_traces`` builds the program in tests/clients/geth, which takes
a minute, and runs the transactions in geth's EVM. The recording is gzipped JSON:

``transactions``
    Signed transactions in their order. The first two create the contracts of
    :func:`~tests.ethereum.rpc.trace_chain.machine`.
``configs``
    Options of the tracer.
``traces``
    For each transaction a list of traces, one for each of ``configs``.
``errors``
    Pairs of invalid options and their error.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask_noderpc.ethereum.engine.base import OPCODES
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.protocol.secp256k1eth import to_checksum

from ..ethereum.protocol.signing import ACCOUNT, CHAIN_ID, OTHER, TO, sender
from ..ethereum.rpc.contract import CODE, calling
from ..ethereum.rpc.trace_chain import FIRST, RICH, SECOND, transaction
from ..helpers.require import require_program

RECORDING = Path(__file__).parent.parent / "golden" / "erc7562_1.17.10.json.gz"
CONFIGS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"withLog": True, "stackTopItemsSize": 1},
    {"ignoredOpcodes": []},
    {"IgnoredOpcodes": ["0x54", "0x1f1", "0x5a"], "ignored": 1},
)
INVALID: tuple[Any, ...] = (
    [],
    3,
    "x",
    {"stackTopItemsSize": "1"},
    {"stackTopItemsSize": 1.5},
    {"stackTopItemsSize": 1 << 63},
    {"withLog": 1},
    {"ignoredOpcodes": "0x1"},
    {"ignoredOpcodes": {}},
    {"ignoredOpcodes": [1]},
    {"ignoredOpcodes": [None]},
    {"ignoredOpcodes": ["1"]},
    {"ignoredOpcodes": ["0x"]},
    {"ignoredOpcodes": ["0x01"]},
    {"ignoredOpcodes": ["0xzz"]},
    {"ignoredOpcodes": ["0x1" + 16 * "0"]},
)
UNUSED, SHA256 = b"\x77" * 20, 2
DIRTY = b"\xff" * 12 + FIRST
"""Word with an address that has more bytes than an address."""


def program(*parts: str | int | bytes) -> bytes:
    """Return code made of instructions, and of numbers and bytes to push."""
    code = b""
    for part in parts:
        if isinstance(part, str):
            code += bytes(OPCODES[name] for name in part.split())
        elif part == 0:
            code += program("PUSH0")
        else:
            pushed = (
                part if isinstance(part, bytes) else part.to_bytes(-(-part.bit_length() // 8))
            )
            code += bytes((OPCODES["PUSH0"] + len(pushed),)) + pushed
    return code


def creating(code: bytes) -> bytes:
    """Return code that creates a contract with this code."""
    head = program(len(code), "DUP1", 9 if len(code) < 256 else 10, 0, "CODECOPY", 0, "RETURN")
    return head + code


def call(
    to: bytes | int,
    gas: int | str = 20_000,
    kind: str = "CALL",
    value: int = 0,
    then: str = "POP",
) -> bytes:
    """Return code that calls an account without data, and the instructions after the call."""
    paid = (value,) if kind in ("CALL", "CALLCODE") else ()
    return program(0, 0, 0, 0, *paid, to, gas, kind, then)


# Contracts that the transactions create, in the order of their nonces.
CONTRACTS = {
    "slots": program(
        *(1, "SLOAD POP", 7, 1, "SSTORE", 1, "SLOAD POP", 8, 1, "SSTORE"),
        *(9, 2, "SSTORE", 2, "SLOAD POP", 3, "SLOAD POP", 3, "SLOAD POP"),
        *(
            5,
            3,
            "TSTORE",
            3,
            "TLOAD POP",
            3,
            "TLOAD POP",
            4,
            "TLOAD POP",
            1 << 255,
            "SLOAD POP",
        ),
        *(0xABCD, 0, "MSTORE", 77, 32, 0, "LOG1"),
    ),
    "reverts": program(1, "SLOAD POP", 66, 0, 0, "LOG1", 5, 1, "SSTORE", 0, 0, "REVERT"),
    "stores briefly": program(2, "SLOAD POP", 5, 3, "TSTORE"),
    "reads hash": program(FIRST, "EXTCODEHASH"),
    "reads size": program(FIRST, "EXTCODESIZE STOP"),
    "reads gas": program("GAS STOP"),
    "destroys": program("CALLER SELFDESTRUCT"),
    "undefined": b"\x0c",
    "invalid": program("INVALID"),
    "jumps": program(1, "JUMP"),
    "short call": program(0, FIRST, 1, "CALL"),
    "short store": program(4, "SSTORE"),
    "overflows": program("JUMPDEST", 0, 0, "JUMP"),
    "hashes far": program(1 << 16, 32, "KECCAK256"),
    "hashes too far": program(1 << 21, 0, "KECCAK256"),
    "hashes at the end": program(32, (1 << 64) - 1, "KECCAK256"),
    "hashes above 64 bits": program(32, 1 << 64, "KECCAK256"),
}
OWN = {name: created_address(sender(), nonce) for nonce, name in enumerate(CONTRACTS, start=2)}
LONG_CODE = program(9_000, 0, "RETURN")

# Code of transactions that create a contract, with 20 wei.
PROGRAMS = {
    "codes": program(
        *(FIRST, "EXTCODESIZE ISZERO POP", FIRST, "EXTCODESIZE POP", FIRST, "EXTCODEHASH POP"),
        *(UNUSED, "EXTCODEHASH ISZERO POP", 4, "EXTCODESIZE DUP1 POP POP"),
        *(8, 0, 0, SECOND, "EXTCODECOPY", DIRTY, "EXTCODEHASH POP", UNUSED, "BALANCE POP"),
        *(OWN["reverts"], "EXTCODESIZE"),
    ),
    "size and return": program(0, FIRST, "EXTCODESIZE RETURN"),
    "size and revert": program(0, FIRST, "EXTCODESIZE REVERT"),
    "gas": program("GAS POP GAS GAS POP POP")
    + call(FIRST, "GAS")
    + call(FIRST, "GAS", "DELEGATECALL")
    + call(UNUSED, "GAS", "STATICCALL")
    + call(UNUSED, "GAS", "CALLCODE")
    + program(0, "GAS"),
    "gas and return": program(0, "GAS RETURN"),
    "gas and revert": program(0, "GAS REVERT"),
    "gas and create": program(0, 0, "GAS CREATE"),
    "sizes": call(FIRST)
    + call(FIRST, kind="STATICCALL")
    + call(SECOND, kind="DELEGATECALL")
    + call(OWN["slots"], kind="CALLCODE", value=1)
    + call(SHA256)
    + call(SHA256, gas=1)
    + call(UNUSED, value=1)
    + call(UNUSED, value=1 << 100)
    + call(DIRTY)
    + program("ADDRESS EXTCODESIZE POP"),
    "slots": call(OWN["slots"], 200_000)
    + call(OWN["slots"], 200_000, "DELEGATECALL")
    + call(OWN["stores briefly"], 200_000, "STATICCALL")
    + call(OWN["reverts"], 100_000)
    + program(99, 88, 3, 1, "LOG2"),
    "hashes": program(
        *(0, 0, "KECCAK256 POP", 32, 0, "KECCAK256 POP", 0xAA, 0, "MSTORE"),
        *(32, 0, "KECCAK256 POP", 64, 16, "KECCAK256 POP", 64, 16, "KECCAK256 POP"),
        *(1, 0, "KECCAK256 POP", 33, 700, "KECCAK256 POP", 0, 1 << 40, "KECCAK256 POP"),
        *(0, 1 << 63, "KECCAK256 POP", 0, 1 << 255, "KECCAK256 POP"),
    ),
    "subcalls": b"".join(map(call, OWN.values())),
    "subcalls before ISZERO": b"".join(call(each, then="ISZERO POP") for each in OWN.values()),
    "subcalls without gas": call(OWN["reads hash"], 100)
    + call(OWN["reads hash"], 2)
    + call(OWN["reads size"], 100)
    + call(OWN["reads size"], 100, then="ISZERO POP")
    + call(OWN["reads gas"], 1)
    + call(OWN["reads gas"], 2)
    + call(OWN["slots"], 2_400),
    "destroys": call(OWN["destroys"], value=9) + call(OWN["destroys"]),
    "long code": program(
        *(len(LONG_CODE), "DUP1 CODESIZE SUB", len(LONG_CODE), "SWAP1", 0, "CODECOPY"),
        *(0, 0, "CREATE POP STOP"),
    )
    + LONG_CODE,
    "collision": program(0, 0, 0, 0, "CREATE2", 0, 0, 0, 0, "CREATE2 ISZERO"),
    "no value": program(0, 0, 1 << 100, "CREATE"),
    "too long code": program(1 << 64, 0, 0, "CREATE"),
    "long code far away": program(1 << 20, 1 << 63, 0, "CREATE"),
    "block": program(
        "ORIGIN NUMBER TIMESTAMP COINBASE BASEFEE SELFBALANCE GASPRICE GASLIMIT DIFFICULTY"
        " CHAINID BLOBBASEFEE",
        1,
        "BLOCKHASH",
        0,
        "BLOBHASH",
    ),
    "delegated": call(sender(OTHER), 100_000) + program(sender(OTHER), "EXTCODESIZE POP"),
    "undefined": CONTRACTS["undefined"],
    "short call": CONTRACTS["short call"],
    "out of gas": program(1 << 40, 0, "KECCAK256"),
}


def to_first(name: str, *words: int | bytes) -> dict[str, Any]:
    return {"to": FIRST, "data": calling(name, *words)}


def transactions() -> list[bytes]:
    """Return the signed transactions."""
    authorization = OTHER.sign_authorization(
        {"chainId": CHAIN_ID, "address": to_checksum(FIRST), "nonce": 0}
    )
    bump = calling("bump", 5)
    delegating = {"type": 4, "to": OTHER.address, "authorizationList": [authorization]}
    calls: tuple[dict[str, Any], ...] = (
        to_first("bump", 7),
        to_first("relay", SECOND, 3),
        to_first("attempt", SECOND, 3),
        to_first("spawn", SECOND),
        to_first("fail", 9),
        to_first("clear"),
        {"to": TO, "value": 5},
        {"to": OTHER.address, "data": bump},
        {"to": OWN["slots"]},
        {"to": OWN["reverts"]},
        {"to": OWN["destroys"], "value": 3},
        {**to_first("bump", 1), "gas": 40_000},
    )
    # All but the first two must fit into one block.
    fields: list[dict[str, Any]] = [
        {"data": CODE},
        {"data": CODE},
        *({"data": creating(code), "gas": 150_000} for code in CONTRACTS.values()),
        {**delegating, "data": bump, "gas": 150_000},
        *({"data": code, "value": 20, "gas": 400_000} for code in PROGRAMS.values()),
        *({"gas": 150_000, **each} for each in calls),
    ]
    return [transaction(nonce, **each) for nonce, each in enumerate(fields)]


def geth_traces(tracers: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return what the program of tests/clients/geth reports: for each transaction a list of
    outcomes, with a result or an error of each tracer."""
    asked = {
        "chainId": CHAIN_ID,
        "alloc": {ACCOUNT.address: {"balance": hex(RICH)}},
        "transactions": [f"0x{raw.hex()}" for raw in transactions()],
        "tracers": tracers,
    }
    command = [require_program("go"), "run", "-buildvcs=false", "."]
    folder = Path(__file__).parent / "geth"
    printed = subprocess.run(
        command,
        check=True,
        cwd=folder,
        input=json.dumps(asked).encode(),
        stdout=subprocess.PIPE,
    ).stdout
    found: list[list[dict[str, Any]]] = json.loads(printed)
    return found


def write(path: Path, recording: dict[str, Any]) -> None:
    """Write a recording with its transactions."""
    txs = [f"0x{raw.hex()}" for raw in transactions()]
    text = json.dumps({"transactions": txs, **recording})
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(txs)} transactions: {path.stat().st_size} bytes")


def main() -> None:
    """Write the recording."""
    configs = (*CONFIGS, *INVALID)
    tracers = [{"tracer": "erc7562Tracer", "tracerConfig": config} for config in configs]
    found, valid = geth_traces(tracers), len(CONFIGS)
    errors = [outcome["error"] for outcome in found[0][valid:]]
    made = {
        "configs": CONFIGS,
        "traces": [[outcome["result"] for outcome in each[:valid]] for each in found],
        "errors": list(zip(INVALID, errors, strict=True)),
    }
    write(RECORDING, made)


if __name__ == "__main__":
    main()
