"""Values that commands of a development chain, such as ``anvil_setBalance``, set, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...domain.facts import Fact, in_unit
from ...errors import InvalidTransaction
from ...protocol.secp256k1eth import to_checksum
from ..application.patches import Change, change_of
from ..domain.execution import Overrides

_GWEI = 10**9
"""Number of wei in a gwei."""
_MAX_BYTES = 65_536
"""Maximum size of a command that is decoded, more than one with the code of a contract has."""


class Assignment(NamedTuple):
    """A value that a command sets, and the account that has it, if it belongs to one."""

    name: str
    value: str
    account: str = ""

    def __str__(self) -> str:
        place = f" of {short(self.account)}" if self.account else ""
        return f"Set {self.name}{place} to {self.value}"

    def facts(self) -> Iterator[Fact]:
        """Yield the account and the value."""
        if self.account:
            yield Fact("Account", self.account, is_account=True)
        yield Fact(f"New {self.name}", self.value)


def assignments(tx: bytes) -> tuple[Assignment, ...]:
    """Return what a command sets; empty if it can't be decoded."""
    if len(tx) > _MAX_BYTES:
        return (Assignment("state", f"values of {len(tx):,} bytes"),)
    try:
        change = change_of(tx)
        return (*_of_accounts(change.overrides), *_of_blocks(change))
    except (InvalidTransaction, ValueError):
        # Python writes no integers of more than 4,300 digits.
        return ()


def _of_accounts(overrides: Overrides) -> Iterator[Assignment]:
    for raw, override in overrides.items():
        address = to_checksum(raw)
        if override.balance is not None:
            yield Assignment("balance", ether(override.balance), address)
        if override.nonce is not None:
            yield Assignment("nonce", str(override.nonce), address)
        if override.code is not None:
            yield Assignment("code", f"{len(override.code):,} bytes", address)
        for slot, word in (override.state_diff or override.state or {}).items():
            yield Assignment(f"slot {int.from_bytes(slot):#x}", f"0x{word.hex()}", address)


def _of_blocks(change: Change) -> Iterator[Assignment]:
    if change.next_base_fee is not None:
        yield Assignment("base fee", f"{change.next_base_fee:,} wei")
    if change.coinbase is not None:
        yield Assignment("coinbase", to_checksum(change.coinbase))
    if change.chain_id is not None:
        yield Assignment("chain ID", str(change.chain_id))
    if change.prev_randao is not None:
        yield Assignment("PREVRANDAO", f"0x{change.prev_randao.hex()}")
    if change.block is not None:
        yield Assignment("gas limit of blocks", f"{change.block.max_gas:,}")
    if change.dump is not None:
        yield Assignment("state", f"a dump of {len(change.dump):,} bytes")


def ether(wei: int) -> str:
    """Return an amount of wei as text in ether, without rounding; less than a gwei in wei."""
    return f"{wei:,} wei" if 0 < wei < _GWEI else in_unit(wei, 18, "ether")


def short(address: str) -> str:
    """Return the beginning and the end of an address, for lists."""
    return f"{address[:8]}…{address[-4:]}"
