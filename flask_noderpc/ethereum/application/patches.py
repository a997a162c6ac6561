"""Accounts in the format of geth's genesis documents, and patches: transactions of development
chains that set accounts or block parameters.

A patch is part of a block like any other transaction, so the CometBFT API shows it, and the
app hash after each block is the state root.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ... import jsoncodec
from ...domain.genesis import BlockParams, ConsensusParamsUpdate
from ...errors import ConfigurationError, InvalidTransaction
from ..domain.execution import AccountOverride, Overrides, StateChange
from ..protocol.alloc import dumped_accounts, genesis_accounts, is_anvil_dump
from ..protocol.validity import fee_of_empty_block_before

_NO_CODES: Mapping[bytes, bytes] = MappingProxyType({})


def accounts(app_state: bytes) -> Overrides:
    """Parse the accounts in ``alloc`` of a genesis state; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    if not app_state:
        return {}
    try:
        return genesis_accounts(app_state)
    except (ValueError, jsoncodec.NotJSON) as error:
        raise ConfigurationError(f"accounts in alloc: {error}") from None


def app_state(balances: Mapping[bytes, int], codes: Mapping[bytes, bytes] = _NO_CODES) -> bytes:
    """Return the JSON of a genesis state with these balances, in wei, and contract codes."""
    alloc: dict[str, Any] = {
        f"0x{address.hex()}": {"balance": f"{balance:#x}"}
        for address, balance in balances.items()
    }
    alloc |= {
        f"0x{address.hex()}": {"code": f"0x{code.hex()}"} for address, code in codes.items()
    }
    return jsoncodec.encode({"alloc": alloc})


# Prefix of a patch. No Ethereum transaction begins with its first byte.
_MARK = b"\x7fpatch"
# Maximum size of a decompressed state dump.
_MAX_DUMP_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Content of a patch; a value that is ``None`` is left unchanged."""

    overrides: Overrides = field(default_factory=dict)
    next_base_fee: int | None = None
    coinbase: bytes | None = None
    chain_id: int | None = None
    prev_randao: bytes | None = None
    block: BlockParams | None = None
    dump: bytes | None = None
    """State dump. A dump of anvil sets the accounts in it; a dump of an earlier version of
    this package replaces the whole state."""


class _BlockMembers(jsoncodec.Struct):
    """JSON members of a patch other than ``alloc``."""

    nextBaseFee: str | None = None  # noqa: N815  # as JSON has it
    coinbase: str | None = None
    chainId: str | None = None  # noqa: N815
    prevRandao: str | None = None  # noqa: N815
    block: BlockParams | None = None
    dump: bytes | None = None


def patch_tx(change: Change) -> bytes:
    """Encode a change as a patch; a random salt makes each transaction unique."""
    members: dict[str, object] = {
        "alloc": {
            f"0x{address.hex()}": _account_json(o) for address, o in change.overrides.items()
        },
        "salt": secrets.token_hex(8),
    }
    if change.next_base_fee is not None:
        members["nextBaseFee"] = f"{change.next_base_fee:#x}"
    if change.coinbase is not None:
        members["coinbase"] = change.coinbase.hex()
    if change.chain_id is not None:
        members["chainId"] = f"{change.chain_id:#x}"
    if change.prev_randao is not None:
        members["prevRandao"] = change.prev_randao.hex()
    if change.block is not None:
        members["block"] = change.block
    if change.dump is not None:
        members["dump"] = change.dump
    return _MARK + jsoncodec.encode(members)


def _account_json(override: AccountOverride) -> dict[str, object]:
    members: dict[str, object] = {}
    if override.balance is not None:
        members["balance"] = f"{override.balance:#x}"
    if override.nonce is not None:
        members["nonce"] = f"{override.nonce:#x}"
    if override.code is not None:
        members["code"] = f"0x{override.code.hex()}"
    if override.state_diff:
        members["storage"] = {
            f"0x{slot.hex()}": f"0x{word.hex()}" for slot, word in override.state_diff.items()
        }
    return members


def is_patch(raw: bytes) -> bool:
    """Return true if a transaction is a patch."""
    return raw.startswith(_MARK)


def change_of(raw: bytes) -> Change:
    """Decode a patch; raise :exc:`~flask_noderpc.errors.InvalidTransaction`."""
    document = raw[len(_MARK) :]
    try:
        members = jsoncodec.decode(document, _BlockMembers)
        return Change(
            overrides=accounts(document),
            next_base_fee=None if members.nextBaseFee is None else int(members.nextBaseFee, 0),
            coinbase=None if members.coinbase is None else bytes.fromhex(members.coinbase),
            chain_id=None if members.chainId is None else int(members.chainId, 0),
            prev_randao=(
                None if members.prevRandao is None else bytes.fromhex(members.prevRandao)
            ),
            block=members.block,
            dump=members.dump,
        )
    except (ConfigurationError, jsoncodec.NotJSON, ValueError) as error:
        raise InvalidTransaction(str(error)) from None


class LaterBlockChanges:
    """Changes of block parameters by the patches of one block; the last patch wins."""

    def __init__(self, next_base_fee: int, prev_randao: bytes) -> None:
        self.base_fee = next_base_fee
        """Base fee of the block that contains the patches."""
        self._next_base_fee = next_base_fee
        self.prev_randao = self._next_prev_randao = prev_randao
        """Value of PREVRANDAO in the block that contains the patches; empty if it is 0."""
        self.next_prev_randao = b""
        """Value of PREVRANDAO in the next block; empty if it is 0."""
        self.coinbase = b""
        self.chain_id = 0
        self.block: BlockParams | None = None
        self.state: StateChange | None = None

    def add(self, change: Change) -> Overrides:
        """Add a patch, and return the account overrides that it contains."""
        if change.next_base_fee is not None:
            self._next_base_fee = change.next_base_fee
        # anvil makes no block for a patch. The base fee of this block is chosen so that the
        # next one gets, by EIP-1559, the fee set by a patch, or the fee of this block without
        # patches.
        self.base_fee = fee_of_empty_block_before(self._next_base_fee)
        # The value is meant for a block of transactions, so a block of patches passes it on.
        if change.prev_randao is not None:
            self._next_prev_randao = change.prev_randao
        self.prev_randao, self.next_prev_randao = b"", self._next_prev_randao
        self.coinbase = change.coinbase or self.coinbase
        self.chain_id = change.chain_id or self.chain_id
        self.block = change.block or self.block
        if change.dump is not None and is_anvil_dump(change.dump):
            return dumped_accounts(change.dump, _MAX_DUMP_BYTES)
        if change.dump is not None:
            # Imported here, as the module needs the packages of the extra ``evm``.
            from ..protocol.accounts import decode_dump

            # The dump was validated before the patch was submitted.
            self.state = decode_dump(change.dump, _MAX_DUMP_BYTES)
        return change.overrides

    def updates(self) -> ConsensusParamsUpdate | None:
        """Return the update of the consensus parameters from the next block on."""
        return None if self.block is None else ConsensusParamsUpdate(block=self.block)
