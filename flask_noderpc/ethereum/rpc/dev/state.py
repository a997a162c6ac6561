"""Handlers that change accounts, or dump and load the whole state.

Each change is made in its own block, so that every block's state root matches its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....errors import SearchTooCostly
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....protocol.comet.chain_state import max_data_bytes
from ...application.patches import Change
from ...domain.execution import AccountOverride
from ...protocol import accounts
from ...protocol.alloc import dumped_accounts, encode_dump, is_anvil_dump
from ...protocol.trie import NodeMissing, Record
from ...settings import EthereumSettings
from ..codec import hex
from ..codec.params import Address, Data, Tag
from ..errors import EvmError
from ..execution import state
from ..execution.state import StorageKey, evm_state, root_of
from ..reader import SearchBudget, reader
from .control import Number, change


@dataclass(frozen=True, slots=True)
class BalanceParams(Params):
    """Parameters of ``anvil_setBalance``."""

    address: bytes = param(Address(), doc="Address of the account.")
    balance: int = param(Number(), doc="Amount in wei: the new balance, or what to add to it.")


@dataclass(frozen=True, slots=True)
class NonceParams(Params):
    """Parameters of ``anvil_setNonce``."""

    address: bytes = param(Address(), doc="Address of the account.")
    nonce: int = param(Number(), doc="Nonce of the account's next transaction.")


@dataclass(frozen=True, slots=True)
class CodeParams(Params):
    """Parameters of ``anvil_setCode``."""

    address: bytes = param(Address(), doc="Address of the account.")
    code: bytes = param(Data(), doc="New code of the account.")


@dataclass(frozen=True, slots=True)
class StorageWordParams(Params):
    """Parameters of ``anvil_setStorageAt``."""

    address: bytes = param(Address(), doc="Address of the account.")
    key: int = param(Number(), doc="Storage slot.")
    word: bytes = param(StorageKey(), doc="New value of the slot.")


def set_balance(ctx: Context, params: BalanceParams) -> None:
    """Set an account's balance."""
    change(ctx, Change(overrides={params.address: AccountOverride(balance=params.balance)}))


def add_balance(ctx: Context, params: BalanceParams) -> None:
    """Increase an account's balance."""
    before = state.balance(ctx, state.AccountParams(params.address, Tag.LATEST))
    if before + params.balance >= 1 << 256:
        raise EvmError("balance: expected a sum of at most 256 bits; add less")
    change(
        ctx,
        Change(overrides={params.address: AccountOverride(balance=before + params.balance)}),
    )


def set_nonce(ctx: Context, params: NonceParams) -> None:
    """Set an account's next nonce."""
    if params.nonce > hex.MAX_UINT64:
        raise EvmError("nonce: expected a number of at most 64 bits")
    change(ctx, Change(overrides={params.address: AccountOverride(nonce=params.nonce)}))


def set_code(ctx: Context, params: CodeParams) -> None:
    """Set the code at an address."""
    change(ctx, Change(overrides={params.address: AccountOverride(code=params.code)}))


def set_storage_at(ctx: Context, params: StorageWordParams) -> bool:
    """Set the value of an account's storage slot."""
    change(
        ctx,
        Change(
            overrides={
                params.address: AccountOverride(
                    state_diff={params.key.to_bytes(32): params.word}
                )
            }
        ),
    )
    return True


# Maximum bytes that a client's call and a transaction have in addition to the dump.
_CALL_BYTES = 256


@dataclass(frozen=True, slots=True)
class DumpParams(Params):
    """Parameters of ``anvil_loadState``."""

    dump: bytes = param(Data(), doc="Result of anvil_dumpState, of this server or of anvil.")


# Approximate bytes of an account without its code, and of a storage slot, in a dump.
_ACCOUNT_BYTES, _WORD_BYTES = 250, 140


def dump(ctx: Context, params: NoParams) -> bytes:
    """All accounts with their code and storage, after the latest block, in anvil's format."""
    if evm_state(ctx).fork is not None:
        raise EvmError(
            "the state of a forked chain can't be dumped, as this node only has the values that"
            " were read; use evm_snapshot and evm_revert"
        )
    root = root_of(ctx, Tag.LATEST)
    try:
        found = dict(_accounts(ctx, evm_state(ctx).record, root))
    except NodeMissing:
        raise EvmError(
            "the state can't be dumped: some blocks were made without NODERPC_DEV, or by an"
            " earlier version, so the addresses of their accounts are not stored; start a new"
            " chain with NODERPC_DEV"
        ) from None
    except SearchTooCostly:
        raise EvmError(
            "the state has too many accounts to be dumped in time; raise NODERPC_SEARCH_TIMEOUT"
        ) from None
    made = encode_dump(found)
    # Refuse to return a dump that anvil_loadState would not accept.
    for limit, hint in _limits(ctx):
        if len(made) > limit:
            raise EvmError(
                f"the state's dump has {len(made)} bytes, and anvil_loadState accepts at most"
                f" {limit}; {hint}"
            )
    return made


def _accounts(ctx: Context, record: Record, root: bytes) -> Iterator[tuple[str, object]]:
    budget = SearchBudget(ctx.settings)
    left = ctx.settings.max_response_bytes

    def spend(size: int) -> None:
        nonlocal left
        budget.spend(1)
        left -= size
        if left < 0:
            raise EvmError(
                "the state is too large for one response; raise NODERPC_MAX_RESPONSE_BYTES"
            )

    for address, account in accounts.by_address(record, root):
        code = accounts.code_of(record, account)
        spend(_ACCOUNT_BYTES + 2 * len(code))
        storage = {}
        for slot, word in accounts.words(record, account.storage_root):
            spend(_WORD_BYTES)
            storage[f"0x{slot.hex()}"] = f"{word:#066x}"
        yield (
            f"0x{address.hex()}",
            {
                "nonce": account.nonce,
                "balance": f"{account.balance:#x}",
                "code": f"0x{code.hex()}",
                "storage": storage,
            },
        )


def _limits(ctx: Context) -> Iterator[tuple[int, str]]:
    """Yield each limit on the bytes of a dump that can be loaded, and how to raise it."""
    # A request contains the dump in hex: two characters for a byte.
    body = ctx.settings.of(EthereumSettings).evm_max_body_bytes - _CALL_BYTES
    yield body // 2, "raise NODERPC_EVM_MAX_BODY_BYTES"
    height = reader(ctx).latest + 1
    members = len(ctx.backend.reads.validators(height).validators)
    # A block contains the dump as base64: four characters for three bytes.
    space = (
        max_data_bytes(ctx.backend.reads.consensus_params(height).block, members) - _CALL_BYTES
    )
    yield space * 3 // 4, "raise block.max_bytes in the genesis"


def load(ctx: Context, params: DumpParams) -> bool:
    """Set the accounts of a dump, in one block."""
    limit = ctx.settings.max_response_bytes
    try:
        if is_anvil_dump(params.dump):
            dumped_accounts(params.dump, limit)
        else:
            accounts.decode_dump(params.dump, limit)
    except ValueError as error:
        raise EvmError(f"dump: expected the result of anvil_dumpState: {error}") from None
    change(ctx, Change(dump=params.dump))
    return True
