"""Seconds of work that a block's gas can buy: ``python -m benchmarks.worst``.

An ``eth_call`` of each kind of loop uses 30 million gas in ``noderpc start``, on the first
core. Prints seconds, the slowest first: instructions, then precompiled contracts with inputs
that are valid and large.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import click

from .evm import chain, reply
from .peers.ours import START_COMMAND
from .process import Server

GAS, LIMIT_S = 30_000_000, 50
_ADDRESS = "0x" + "33" * 20
# CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY; the loop begins at 4.
_START, _AGAIN = "365f5f375b", "600456"

# Each loop leaves the stack unchanged; some read a counter in memory.
_LOOPS = {
    "JUMP": "",
    "ADD": "60015f0150" * 20,
    "MULMOD": "5f195f195f190950" * 20,
    "EXP": "5f195f190a50",
    "KECCAK256, 32 bytes": "60205f2050" * 20,
    "KECCAK256, 8 KiB": "6120005f2050",
    "MLOAD, MSTORE": "5f515f52" * 20,
    "MCOPY, 8 KiB": "6120005f6120005e",
    "CALLDATACOPY, 8 KiB": "6120005f5f37",
    "LOG0": "5f5fa0",
    # The counter: 5f51 (MLOAD 0) 6001 01 80 5f52.
    "SLOAD, cold": "5f5160010180" + "5f52" + "5450",
    "SSTORE, new": "5f5160010180" + "5f52" + "5f1990" + "55",
    "BALANCE, cold": "5f5160010180" + "5f52" + "3150",
    "EXTCODECOPY, cold": "5f5160010180" + "5f52" + "60205f5f92" + "3c",
    "CALL, cold": "5f5160010180" + "5f52" + "5f5f5f5f5f94" + "5af150",
    "CALL, own": "5f5f5f5f30" + "6064fa50",
    "CREATE": "5f5f5ff050",
    "TSTORE": "5f5160010180" + "5f52" + "5f1990" + "5d",
}


def _precompile(number: int) -> str:
    """Return code that passes the call's data to a precompiled contract, and drops the
    result."""
    return f"5f5f365f60{number:02x}5afa50"


def _words(*numbers: int, size: int = 32) -> bytes:
    return b"".join(number.to_bytes(size) for number in numbers)


_BN_P = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
_BN_G2 = (
    0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
    0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
    0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
    0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
)
_BN_PAIR = _words(1, 2, *_BN_G2) + _words(1, _BN_P - 2, *_BN_G2)


def _bls_inputs() -> Iterator[tuple[str, int, bytes]]:
    from py_ecc.optimized_bls12_381.optimized_curve import G1, G2, neg, normalize

    g1, minus, g2 = normalize(G1), normalize(neg(G1)), normalize(G2)
    one = _words(int(g1[0]), int(g1[1]), size=64)
    other = _words(int(minus[0]), int(minus[1]), size=64)
    two = _words(*(int(part) for coordinate in g2 for part in coordinate.coeffs), size=64)
    scalar = b"\xff" * 32
    yield "BLS12 G1ADD", 0x0B, one * 2
    yield "BLS12 G1MSM, 1", 0x0C, one + scalar
    yield "BLS12 G1MSM, 128", 0x0C, (one + scalar) * 128
    yield "BLS12 G2ADD", 0x0D, two * 2
    yield "BLS12 G2MSM, 1", 0x0E, two + scalar
    yield "BLS12 G2MSM, 128", 0x0E, (two + scalar) * 128
    yield "BLS12 pairing, 2", 0x0F, one + two + other + two
    yield "BLS12 pairing, 32", 0x0F, (one + two + other + two) * 16
    yield "BLS12 map to G1", 0x10, _words(12345, size=64)
    yield "BLS12 map to G2", 0x11, _words(12345, 54321, size=64)


def _modexp(base: int, exponent: int, modulus: int, last: int = 0xFF) -> bytes:
    """Return an input of EIP-198 with all bits set; ``last`` makes the modulus odd or even."""
    ones = b"\xff" * (base + exponent + modulus - 1)
    return _words(base, exponent, modulus) + ones + bytes([last])


def _inputs() -> Iterator[tuple[str, int, bytes]]:
    from eth_keys.datatypes import PrivateKey

    signature = PrivateKey(b"\x01" * 32).sign_msg_hash(b"\x02" * 32)
    yield (
        "ecrecover",
        0x01,
        b"\x02" * 32 + _words(27 + signature.v, signature.r, signature.s),
    )
    yield "sha256, 32 bytes", 0x02, b"\xff" * 32
    yield "sha256, 8 KiB", 0x02, b"\xff" * 8192
    yield "ripemd160, 8 KiB", 0x03, b"\xff" * 8192
    yield "identity, 8 KiB", 0x04, b"\xff" * 8192
    # Sizes for which the gas of EIP-2565 is low for the work.
    for sizes in ((32, 32, 32), (200, 2, 200), (512, 64, 512), (1024, 1, 1024), (8, 512, 8)):
        yield f"modexp, {sizes}", 0x05, _modexp(*sizes)
    yield "modexp, even", 0x05, _modexp(200, 32, 200, 0xFE)
    yield "bn254 add", 0x06, _words(1, 2) * 2
    yield "bn254 multiply", 0x07, _words(1, 2) + b"\xff" * 32
    yield "bn254 pairing, 2", 0x08, _BN_PAIR
    yield "bn254 pairing, 20", 0x08, _BN_PAIR * 10
    yield "blake2f, 1 round", 0x09, _words(1, size=4) + b"\xff" * 208 + b"\x01"
    yield "blake2f, 10^6 rounds", 0x09, _words(10**6, size=4) + b"\xff" * 208 + b"\x01"
    yield from _bls_inputs()


def _seconds(server: Server, body: str, data: bytes) -> float:
    code = f"0x{_START}{body}{_AGAIN}"
    call = {"to": _ADDRESS, "gas": hex(GAS), "data": f"0x{data.hex()}"}
    began = time.perf_counter()
    answer: dict[str, Any] = reply(
        server, "eth_call", call, "latest", {_ADDRESS: {"code": code}}
    )
    took = time.perf_counter() - began
    message = answer.get("error", {}).get("message", "")
    if message.startswith("execution aborted"):
        return inf
    if message != "out of gas":
        raise click.ClickException(f"{code[:80]}: {str(answer)[:300]}")
    return took


@click.command()
@click.option("--only", default="", help="Part of a name.")
def main(only: str) -> None:
    """Print the table."""
    os.sched_setaffinity(0, {1})
    kinds = [(name, body, b"") for name, body in _LOOPS.items()]
    kinds += [(name, _precompile(number), data) for name, number, data in _inputs()]
    settings = {"evm_timeout": LIMIT_S, "evm_gas_cap": GAS}
    found: list[tuple[float, str]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        chain(START_COMMAND, Path(folder), **settings) as server,
        server.awake(),
    ):
        # Executors start when calls come.
        _seconds(server, "", b"")
        for name, body, data in kinds:
            if only in name:
                found.append((_seconds(server, body, data), name))
    for took, name in sorted(found, reverse=True):
        click.echo(f"{took:8.2f} s  {name}" if took < inf else f"    > {LIMIT_S} s  {name}")


if __name__ == "__main__":
    main()
