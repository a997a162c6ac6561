"""Transactions that change accounts or later blocks by hand, for chains of tests.

Such a change is in a block like any other, so the node's surface has it too, and the state
after each block is that of its root.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from .... import jsoncodec
from ....domain.evm import AccountOverride, Overrides, StateChange
from ....domain.params import BlockParams, ConsensusParamsUpdate
from ....errors import ConfigurationError, InvalidTransaction
from ....protocol.ethereum.fees import fee_of_empty_block_before
from .genesis import accounts

# No type of a transaction, and no RLP.
_MARK = b"\x7fpatch"
# Of a state, unpacked.
_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change by hand; ``None`` leaves a part as it is."""

    overrides: Overrides = field(default_factory=dict)
    next_base_fee: int | None = None
    coinbase: bytes | None = None
    block: BlockParams | None = None
    dump: bytes | None = None
    """Of the whole state, which it replaces."""


class _BlockMembers(jsoncodec.Struct):
    """The members of a change beside accounts."""

    nextBaseFee: str | None = None  # noqa: N815  # as JSON has it
    coinbase: str | None = None
    block: BlockParams | None = None
    dump: bytes | None = None


def patch_tx(change: Change) -> bytes:
    """The transaction that makes a change; no two are the same."""
    shown: dict[str, object] = {
        "alloc": {f"0x{address.hex()}": _shown(o) for address, o in change.overrides.items()},
        "salt": secrets.token_hex(8),
    }
    if change.next_base_fee is not None:
        shown["nextBaseFee"] = f"{change.next_base_fee:#x}"
    if change.coinbase is not None:
        shown["coinbase"] = change.coinbase.hex()
    if change.block is not None:
        shown["block"] = change.block
    if change.dump is not None:
        shown["dump"] = change.dump
    return _MARK + jsoncodec.encode(shown)


def _shown(override: AccountOverride) -> dict[str, object]:
    shown: dict[str, object] = {}
    if override.balance is not None:
        shown["balance"] = f"{override.balance:#x}"
    if override.nonce is not None:
        shown["nonce"] = f"{override.nonce:#x}"
    if override.code is not None:
        shown["code"] = f"0x{override.code.hex()}"
    if override.state_diff:
        shown["storage"] = {
            f"0x{slot.hex()}": f"0x{word.hex()}" for slot, word in override.state_diff.items()
        }
    return shown


def is_patch(raw: bytes) -> bool:
    """Whether a transaction is one."""
    return raw.startswith(_MARK)


def change_of(raw: bytes) -> Change:
    """What a transaction changes; raise :exc:`~flask_noderpc.errors.InvalidTransaction`."""
    document = raw[len(_MARK) :]
    try:
        said = jsoncodec.decode(document, _BlockMembers)
        return Change(
            overrides=accounts(document),
            next_base_fee=None if said.nextBaseFee is None else int(said.nextBaseFee, 0),
            coinbase=None if said.coinbase is None else bytes.fromhex(said.coinbase),
            block=said.block,
            dump=said.dump,
        )
    except (ConfigurationError, jsoncodec.NotJSON, ValueError) as error:
        raise InvalidTransaction(str(error)) from None


class LaterBlockChanges:
    """The changes in a block that concern later blocks; the last counts."""

    def __init__(self, next_base_fee: int) -> None:
        self.base_fee = next_base_fee
        """That of the block itself."""
        self._next_base_fee = next_base_fee
        self.coinbase = b""
        self.block: BlockParams | None = None
        self.state: StateChange | None = None

    def add(self, change: Change) -> Overrides:
        """One more of them; the accounts that it changes."""
        if change.next_base_fee is not None:
            self._next_base_fee = change.next_base_fee
        # anvil makes no block of a change: the next block's fee, which follows from this one's
        # by EIP-1559, is as it was or as it is set.
        self.base_fee = fee_of_empty_block_before(self._next_base_fee)
        self.coinbase = change.coinbase or self.coinbase
        self.block = change.block or self.block
        if change.dump is not None:
            # Needs the extra, which chains of other applications do without.
            from ....protocol.ethereum import dump

            # It was checked before it was sent.
            self.state = dump.decode(change.dump, _MAX_BYTES)
        return change.overrides

    def updates(self) -> ConsensusParamsUpdate | None:
        """Of the parameters, from the next block on."""
        return None if self.block is None else ConsensusParamsUpdate(block=self.block)
