"""Why a contract gave up, where it says so as Solidity does."""

from __future__ import annotations

# Solidity: Error(string) and Panic(uint256).
_ERROR, _PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")

# geth: accounts/abi, of Solidity's table of panics.
_PANICS = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def reason(output: bytes) -> str:
    """The sentence in what a reverted call returned; empty for other data."""
    kind, body = output[:4], output[4:]
    if kind == _PANIC and len(body) >= 32:
        code = int.from_bytes(body[:32])
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    if kind == _ERROR and len(body) >= 64:
        start = int.from_bytes(body[:32])
        size = int.from_bytes(body[start : start + 32])
        text = body[start + 32 : start + 32 + size]
        if len(text) == size:
            return text.decode("utf-8", "replace")
    return ""
