"""Handlers for an account's state at a block: balance, nonce, code, storage and proofs; and
for ``eth_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from zlib import crc32

from ....errors import NotSupported, ResultNotFound
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....wire.params import ParamField
from ...domain.execution import AccountProof, SlotProof
from ...domain.forks import HISTORY_ADDRESS, Schedule
from ...domain.records import Header, PlainNumber
from ...protocol import accounts
from ...protocol.blocks import Block
from ...state import EVM_STATE, EvmState
from ..codec import hex
from ..codec.params import Address, Anything, BlockId, ByHash, Height, Tag, mismatch
from ..errors import NOT_SUPPORTED, EvmError, not_supported
from ..reader import chain_id_of, reader

# geth: internal/ethapi, maxGetStorageSlots.
_MAX_SLOTS = 1_024
_MAX_PENDING = 10_000
# Blocks whose intervals the time of a later block is estimated by.
_SAMPLED_BLOCKS = 100


def evm_state(ctx: Context) -> EvmState:
    """Return the EVM state; raise :exc:`.errors.EvmError` if the backend has none."""
    try:
        return EVM_STATE.of(ctx.backend)
    except NotSupported as error:
        raise not_supported(error) from None


def block_of(ctx: Context, number_or_hash: Height | ByHash) -> Block:
    """Return the block; raise :exc:`.errors.EvmError` if it does not exist."""
    found = reader(ctx).block(number_or_hash)
    if found is None:
        # geth: eth/api_backend.go.
        by_hash = isinstance(number_or_hash, ByHash)
        raise EvmError("header for hash not found" if by_hash else "header not found")
    return found


def root_of(ctx: Context, number_or_hash: Height | ByHash) -> bytes:
    """Return the state root after a block; pending transactions are not applied."""
    evm = evm_state(ctx)
    if isinstance(number_or_hash, ByHash):
        return _root_at(evm, block_of(ctx, number_or_hash).header.number)
    return _root_at(evm, reader(ctx).height(number_or_hash))


def header_and_root(ctx: Context, number_or_hash: Height | ByHash) -> tuple[Header, bytes]:
    """Return a block's header and the state root after that block.

    Reading both at once ensures that a new block can't come between them.
    """
    evm = evm_state(ctx)
    header = block_of(ctx, number_or_hash).header
    return header, _root_at(evm, header.number - (number_or_hash is Tag.PENDING))


def _root_at(evm: EvmState, height: int) -> bytes:
    try:
        return evm.root(height)
    except ResultNotFound:
        raise EvmError("header not found") from None


def state_block() -> Any:
    """Return the dataclass field of a ``block`` parameter: the block whose state is read."""
    doc = "Block whose state is read; the latest when omitted."
    return param(BlockId(), default=Tag.LATEST, doc=doc)


@dataclass(frozen=True, slots=True)
class AccountParams(Params):
    """Parameters of methods that take an account and a block."""

    address: bytes = param(Address(), doc="Address of the account.")
    block: Height | ByHash = state_block()


def is_settled(ctx: Context, params: AccountParams | SlotParams | ProofParams) -> bool:
    """Return true unless the parameters select the pending block."""
    return params.block is not Tag.PENDING


def balance(ctx: Context, params: AccountParams) -> int:
    """Balance of an account, in wei."""
    root = root_of(ctx, params.block)
    return accounts.account(evm_state(ctx).record, root, params.address).balance


def transaction_count(ctx: Context, params: AccountParams) -> int:
    """The account's next nonce; for the pending block, after its pending transactions."""
    evm = evm_state(ctx)
    waiting: tuple[bytes, ...] = ()
    if params.block is Tag.PENDING:
        # Read pending transactions before the state: if a block includes them in between, the
        # state's nonce is after them.
        waiting = ctx.backend.mempool.pending_by_sender(params.address, _MAX_PENDING)
    nonce = accounts.account(evm.record, root_of(ctx, params.block), params.address).nonce
    for raw in waiting:
        for tx in reader(ctx).decode_pending(raw):
            nonce += tx.nonce == nonce
    return nonce


def code(ctx: Context, params: AccountParams) -> bytes:
    """The code at an address; empty for an account without a contract."""
    return accounts.code(evm_state(ctx).record, root_of(ctx, params.block), params.address)


class StorageKey(ParamField):
    """A storage key: a hex string of up to 32 bytes, with or without leading zeros."""

    def from_json(self, value: Any) -> bytes:
        """Return the key as a word of 32 bytes."""
        return read_key(value)


def read_key(value: Any) -> bytes:
    """Return a storage key as a word of 32 bytes; raise :exc:`ValueError` with geth's text."""
    if not isinstance(value, str):
        raise mismatch(value, "string")
    # geth: internal/ethapi, decodeStorageKey.
    digits = value[2:] if value[:2] in ("0x", "0X") else value
    digits = "0" * (len(digits) % 2) + digits
    if len(digits) > 64:
        raise ValueError(f'storage key too long (want at most 32 bytes): "{value[:100]}"')
    try:
        return hex.read_data("0x" + digits).rjust(32, b"\0")
    except ValueError:
        raise ValueError(f'invalid hex in storage key: "{value}"') from None


@dataclass(frozen=True, slots=True)
class SlotParams(Params):
    """Parameters of ``eth_getStorageAt``."""

    address: bytes = param(Address(), doc="Address of the account.")
    key: bytes = param(StorageKey(), doc="Storage slot.")
    block: Height | ByHash = state_block()


def storage_at(ctx: Context, params: SlotParams) -> bytes:
    """The value of an account's storage slot."""
    root = root_of(ctx, params.block)
    return _word(evm_state(ctx), root, params.address, params.key)


def _word(evm: EvmState, root: bytes, address: bytes, key: bytes) -> bytes:
    found = accounts.account(evm.record, root, address)
    return accounts.storage(evm.record, found.storage_root, key).to_bytes(32)


class SlotsByAddress(ParamField):
    """An object of lists of storage slots by account address."""

    json_type = "object"

    def from_json(self, value: Any) -> dict[bytes, tuple[bytes, ...]]:
        """Return the slots by address; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, dict):
            raise mismatch(value, "map[common.Address][]common.Hash")
        lists = [keys for keys in value.values() if isinstance(keys, list)]
        # Check the counts before parsing. Limit the accounts and not only the slots, as each
        # account takes time even without slots.
        if max(len(value), sum(map(len, lists))) > _MAX_SLOTS:
            raise ValueError(f"too many slots (max {_MAX_SLOTS})")
        slots = {
            Address().from_json(address): tuple(map(read_key, keys))
            for address, keys in value.items()
        }
        count = sum(map(len, slots.values()))
        if not count:
            raise ValueError("empty request")
        return slots


@dataclass(frozen=True, slots=True)
class SlotsParams(Params):
    """Parameters of ``eth_getStorageValues``."""

    slots: Mapping[bytes, tuple[bytes, ...]] = param(SlotsByAddress(), doc="Slots by account.")
    block: Height | ByHash = state_block()


def storage_values(ctx: Context, params: SlotsParams) -> dict[str, Any]:
    """The values of storage slots of several accounts."""
    root, evm = root_of(ctx, params.block), evm_state(ctx)
    return {
        hex.data(address): tuple(_word(evm, root, address, key) for key in keys)
        for address, keys in params.slots.items()
    }


class StorageKeys(ParamField):
    """A list of storage slots; the response repeats each key as the client wrote it."""

    json_type = "array"

    def from_json(self, value: Any) -> tuple[tuple[str, bytes], ...]:
        """Return each key as text for the response, and as a word of 32 bytes."""
        if not isinstance(value, list):
            raise mismatch(value, "[]string")
        if len(value) > _MAX_SLOTS:
            raise ValueError(
                f"too many storage keys requested (max {_MAX_SLOTS}, got {len(value)})"
            )
        return tuple((_echoed_key(each), read_key(each)) for each in value)


def _echoed_key(key: Any) -> str:
    """Return the key as geth's response has it: 32 bytes as DATA, a shorter key as
    QUANTITY."""
    word = read_key(key)
    return hex.data(word) if len(key) == 66 else hex.quantity(int.from_bytes(word))


@dataclass(frozen=True, slots=True)
class ProofParams(Params):
    """Parameters of ``eth_getProof``."""

    address: bytes = param(Address(), doc="Address of the account.")
    keys: tuple[tuple[str, bytes], ...] = param(StorageKeys(), doc="Storage slots.")
    block: Height | ByHash = state_block()


def proof(ctx: Context, params: ProofParams) -> dict[str, Any]:
    """An account and values of storage slots, with the trie nodes that prove them
    (EIP-1186)."""
    if evm_state(ctx).fork is not None:
        raise EvmError(
            "a forked chain has no proofs, as it only has the values that were read; ask the"
            " node of NODERPC_FORK_URL for proofs of its blocks",
            code=NOT_SUPPORTED,
        )
    root = root_of(ctx, params.block)
    slots = [word for _, word in params.keys]
    found = accounts.prove(evm_state(ctx).record, root, params.address, slots)
    return _proof(found, [name for name, _ in params.keys])


def _proof(found: AccountProof, names: list[str]) -> dict[str, Any]:
    account = found.account
    pairs = zip(names, found.slots, strict=True)
    return {
        "address": found.address,
        "accountProof": found.proof,
        "balance": account.balance,
        "codeHash": account.code_hash,
        "nonce": account.nonce,
        "storageHash": account.storage_root,
        "storageProof": tuple(_slot_proof(name, slot) for name, slot in pairs),
    }


def _slot_proof(name: str, slot: SlotProof) -> dict[str, Any]:
    return {"key": name, "value": slot.value, "proof": slot.proof}


def config(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The rules of the current fork, of the next one and of the last one (EIP-7910)."""
    evm, latest = evm_state(ctx), block_of(ctx, Tag.LATEST).header
    forks = evm.forks()
    current = max(at for at, each in enumerate(forks) if each.height <= latest.number)
    later = range(current + 1, len(forks))

    def shown(count: int) -> dict[str, Any]:
        return _fork_config(ctx, latest, forks[: count + 1])

    return {
        "current": shown(current),
        "next": shown(later[0]) if later else None,
        "last": shown(later[-1]) if later else None,
    }


def _fork_config(ctx: Context, latest: Header, forks: Schedule) -> dict[str, Any]:
    """Return the rules of the last of some forks."""
    height, fork = forks[-1].height, forks[-1].fork
    first = reader(ctx).genesis()
    genesis = (first and first.header.hash) or b""
    # EIP-2124: the genesis and the heights of the later forks.
    passed = b"".join(each.height.to_bytes(8) for each in forks[1:])
    evm, root = evm_state(ctx), root_of(ctx, Tag.LATEST)
    contracts = {}
    if accounts.code(evm.record, root, HISTORY_ADDRESS):
        contracts["HISTORY_STORAGE_ADDRESS"] = HISTORY_ADDRESS
    blobs = fork.blobs and {
        "target": PlainNumber(fork.blobs.target),
        "max": PlainNumber(fork.blobs.max),
        "baseFeeUpdateFraction": PlainNumber(fork.blobs.base_fee_update_fraction),
    }
    return {
        "activationTime": PlainNumber(_activation_time(ctx, latest, height)),
        "blobSchedule": blobs,
        "chainId": chain_id_of(ctx),
        "forkId": crc32(genesis + passed).to_bytes(4),
        "precompiles": {
            name: number.to_bytes(20) for number, name in sorted(fork.precompiles.items())
        },
        "systemContracts": contracts,
    }


def _activation_time(ctx: Context, latest: Header, height: int) -> int:
    """Return the time of a fork's first block in seconds, 0 for the genesis.

    The time of a block that is still to come is estimated by the latest blocks' intervals.
    """
    if height == 0:
        return 0
    if height <= latest.number:
        found = reader(ctx).block_at(height)
        return found.header.timestamp if found is not None else 0
    # The genesis has a time of its own.
    count = min(_SAMPLED_BLOCKS, latest.number - 1)
    earlier = reader(ctx).block_at(latest.number - count) if count > 0 else None
    if earlier is None:
        return latest.timestamp
    seconds = latest.timestamp - earlier.header.timestamp
    return latest.timestamp + (height - latest.number) * seconds // count


@dataclass(frozen=True, slots=True)
class UnreadParams(Params):
    """Up to four parameters of a method that is refused, which are ignored."""

    first: Any = param(Anything(), default=None, doc="Ignored.")
    second: Any = param(Anything(), default=None, doc="Ignored.")
    third: Any = param(Anything(), default=None, doc="Ignored.")
    fourth: Any = param(Anything(), default=None, doc="Ignored.")


def needs_state(ctx: Context, params: UnreadParams) -> NoReturn:
    """Refused: the engine does not provide block access lists."""
    evm_state(ctx)
    raise EvmError("block access lists are not supported", code=NOT_SUPPORTED)
