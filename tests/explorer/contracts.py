"""Small contracts for tests, as bytecode."""

from __future__ import annotations

from flask_noderpc.protocol.secp256k1eth import keccak

TRANSFER = keccak(b"Transfer(address,address,uint256)")

REVERTING = "0x60043603806004" + "5f375ffd"
"""Code of a contract that reverts with its calldata after the selector."""


def selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


def call(signature: str, *words: int | str) -> str:
    """Return calldata with words of 32 bytes, each a number or an address."""
    numbers = (int(each, 16) if isinstance(each, str) else each for each in words)
    return "0x" + (selector(signature) + b"".join(each.to_bytes(32) for each in numbers)).hex()


def text_error(text: str) -> str:
    """Return calldata that makes :data:`REVERTING` revert with ``Error(string)``."""
    body = selector("Error(string)") + (32).to_bytes(32) + len(text).to_bytes(32)
    return "0x00000000" + (body + text.encode().ljust(32, b"\0")).hex()


def token() -> str:
    """Return the code of a token "TKN" with 6 decimals. A call with a recipient and an amount
    emits a transfer, and passes the ether of the call on to the recipient."""
    log = bytes.fromhex("6024355f5260043533") + b"\x7f" + TRANSFER + bytes.fromhex("60205fa3")
    send = bytes.fromhex("5f5f5f5f346004355af15000")
    symbol = bytes.fromhex("5b60205f52600360205262544b4e60e81b60405260605ff3")
    decimals = bytes.fromhex("5b60065f5260205ff3")
    # The code begins with two comparisons of the selector, each followed by a jump.
    at = 5 + 10 + 9 + len(log) + len(send)
    code = bytes.fromhex("5f3560e01c80") + _jump("symbol()", at)
    code += _jump("decimals()", at + len(symbol))
    return "0x" + (code + log + send + symbol + decimals).hex()


def _jump(signature: str, to: int) -> bytes:
    return b"\x63" + selector(signature) + b"\x14\x60" + bytes((to,)) + b"\x57"
