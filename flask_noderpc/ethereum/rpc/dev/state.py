"""Handlers that change accounts, or dump and load the whole state.

Each change is made in a block of its own, so the state root of every block belongs to its
state.
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
from ..reader import SearchBudget
from .control import Number, change


@dataclass(frozen=True, slots=True)
class BalanceParams(Params):
    """Parameters of ``anvil_setBalance``."""

    address: bytes = param(Address(), doc="Address of the account.")
    balance: int = param(Number(), doc="Wei.")


@dataclass(frozen=True, slots=True)
class NonceParams(Params):
    """Parameters of ``anvil_setNonce``."""

    address: bytes = param(Address(), doc="Address of the account.")
    nonce: int = param(Number(), doc="The next nonce.")


@dataclass(frozen=True, slots=True)
class CodeParams(Params):
    """Parameters of ``anvil_setCode``."""

    address: bytes = param(Address(), doc="Address of the account.")
    code: bytes = param(Data(), doc="The code.")


@dataclass(frozen=True, slots=True)
class StorageWordParams(Params):
    """Parameters of ``anvil_setStorageAt``."""

    address: bytes = param(Address(), doc="Address of the account.")
    key: int = param(Number(), doc="Slot of its storage.")
    word: bytes = param(StorageKey(), doc="The word.")


def set_balance(ctx: Context, params: BalanceParams) -> None:
    """Set an account's balance."""
    change(ctx, Change(overrides={params.address: AccountOverride(balance=params.balance)}))


def add_balance(ctx: Context, params: BalanceParams) -> None:
    """Increase an account's balance."""
    before = state.balance(ctx, state.AccountParams(params.address, Tag.LATEST))
    if before + params.balance >= 1 << 256:
        raise EvmError("the balance would have more than 256 bits")
    change(
        ctx,
        Change(overrides={params.address: AccountOverride(balance=before + params.balance)}),
    )


def set_nonce(ctx: Context, params: NonceParams) -> None:
    """Set an account's next nonce."""
    if params.nonce > hex.MAX_UINT64:
        raise EvmError("nonce has more than 64 bits")
    change(ctx, Change(overrides={params.address: AccountOverride(nonce=params.nonce)}))


def set_code(ctx: Context, params: CodeParams) -> None:
    """Set the code at an address."""
    change(ctx, Change(overrides={params.address: AccountOverride(code=params.code)}))


def set_storage_at(ctx: Context, params: StorageWordParams) -> bool:
    """Set a word of an account's storage."""
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


# Maximum bytes around a dump in a client's call and in a transaction.
_CALL_BYTES = 256


@dataclass(frozen=True, slots=True)
class DumpParams(Params):
    """Parameters of ``anvil_loadState``."""

    dump: bytes = param(Data(), doc="Dump from anvil_dumpState, of this server or of anvil.")


# Bytes of an account and of a word in a dump, without code.
_ACCOUNT_BYTES, _WORD_BYTES = 250, 140


def dump(ctx: Context, params: NoParams) -> bytes:
    """All accounts with their code and storage, after the latest block, in anvil's format."""
    root = root_of(ctx, Tag.LATEST)
    try:
        found = dict(_accounts(ctx, evm_state(ctx).record, root))
    except NodeMissing:
        raise EvmError(
            "the state can't be dumped: this chain has blocks that were made without"
            " NODERPC_DEV, or by an earlier version, and does not know the addresses of all"
            " accounts; a new chain with NODERPC_DEV does"
        ) from None
    except SearchTooCostly:
        raise EvmError(
            "the state has too many accounts to be dumped within NODERPC_SEARCH_TIMEOUT;"
            " raise it"
        ) from None
    made = encode_dump(found)
    # A dump that can't be loaded again would be useless.
    for limit, hint in _limits(ctx):
        if len(made) > limit:
            raise EvmError(
                f"the state's dump has {len(made)} bytes,"
                f" anvil_loadState takes {limit} ({hint})"
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
                "the state is too large for one response (NODERPC_MAX_RESPONSE_BYTES)"
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
    """Yield the maximum bytes of a dump that can be loaded, and the reason for each limit."""
    # In hex.
    body = ctx.settings.of(EthereumSettings).evm_max_body_bytes - _CALL_BYTES
    yield body // 2, "NODERPC_EVM_MAX_BODY_BYTES raises it"
    height = ctx.backend.reads.latest_height() + 1
    members = len(ctx.backend.reads.validators(height).validators)
    # As base64.
    space = (
        max_data_bytes(ctx.backend.reads.consensus_params(height).block, members) - _CALL_BYTES
    )
    yield space * 3 // 4, "block.max_bytes of the genesis raises it"


def load(ctx: Context, params: DumpParams) -> bool:
    """Set the accounts of a dump, in one block."""
    limit = ctx.settings.max_response_bytes
    try:
        if is_anvil_dump(params.dump):
            dumped_accounts(params.dump, limit)
        else:
            accounts.decode_dump(params.dump, limit)
    except ValueError as error:
        raise EvmError(f"not a state of anvil_dumpState: {error}") from None
    change(ctx, Change(dump=params.dump))
    return True
