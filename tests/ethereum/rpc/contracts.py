"""Hand-assembled contracts, funded accounts, and the genesis of an EVM chain."""

from __future__ import annotations

from typing import Any

from tests.ethereum.protocol.signing import ACCOUNT, OTHER, sender

ETHER = 10**18
RICH = 1000 * ETHER
GWEI = 10**9


def at(number: int) -> str:
    """Return the address of a contract of the genesis."""
    return f"0x{number:040x}"


ECHO, REVERTS, LOOPS, COUNTER, CLEARS, HUNGRY, CAREFUL, BLOCK, INVALID, BEQUEST = (
    at(0xC0DE00 + n) for n in range(10)
)
_CODES = {
    # CALLDATACOPY all, then RETURN or REVERT.
    ECHO: "365f5f37365ff3",
    REVERTS: "365f5f37365ffd",
    LOOPS: "5b5f56",
    # Add 1 to slot 0, and return it.
    COUNTER: "5f54600101805f555f5260205ff3",
    # Set the slots 0 to 4 to 0.
    CLEARS: "5f5f555f6001555f6002555f6003555f600455",
    # Revert with less than 200,000 gas.
    HUNGRY: "62030d405a10600a57005b5f5ffd",
    # Call HUNGRY with all gas that is left, and revert if that fails.
    CAREFUL: f"5f5f5f5f5f73{HUNGRY[2:]}5af16022575f5ffd5b00",
    # NUMBER, TIMESTAMP, COINBASE, GASLIMIT, BASEFEE, PREVRANDAO, CHAINID, BLOBBASEFEE.
    BLOCK: "435f52426020524160405245606052486080524460a0524660c0524a60e0526101005ff3",
    INVALID: "fe",
    BEQUEST: "33ff",
}


def alloc() -> dict[str, Any]:
    """Return the accounts of the genesis."""
    codes: dict[str, Any] = {address: {"code": f"0x{code}"} for address, code in _CODES.items()}
    codes[CLEARS]["storage"] = {f"0x{slot:02x}": "0x07" for slot in range(5)}
    codes[BEQUEST]["balance"] = "0x5"
    rich = {f"0x{sender(own).hex()}": {"balance": hex(RICH)} for own in (ACCOUNT, OTHER)}
    return codes | rich
