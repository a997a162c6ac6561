"""Handlers of accounts at a block: balance, nonce, code, storage, proof; and ``eth_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from zlib import crc32

from ....errors import NotSupported, ResultNotFound
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....wire.params import ParamField
from ...domain.execution import PRECOMPILES, AccountProof, SlotProof
from ...domain.records import Header, PlainNumber
from ...protocol import accounts
from ...protocol.blocks import Block
from ...settings import EthereumSettings
from ...state import EVM_STATE, EvmState
from ..codec import hex
from ..codec.params import Address, Anything, BlockId, ByHash, Height, Tag, mismatch
from ..errors import NOT_SUPPORTED, EvmError, not_supported
from ..reader import reader

# geth: internal/ethapi, maxGetStorageSlots.
_MAX_SLOTS = 1_024
_MAX_PENDING = 10_000


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
    """Return a block's header and the state root after it, both of the same block even if new
    blocks arrive."""
    evm = evm_state(ctx)
    header = block_of(ctx, number_or_hash).header
    return header, _root_at(evm, header.number - (number_or_hash is Tag.PENDING))


def _root_at(evm: EvmState, height: int) -> bytes:
    try:
        return evm.root(height)
    except ResultNotFound:
        raise EvmError("header not found") from None


def state_block() -> Any:
    """Declare the parameter of the block whose state is read."""
    doc = "Block of the state; the latest when omitted."
    return param(BlockId(), default=Tag.LATEST, doc=doc)


@dataclass(frozen=True, slots=True)
class AccountParams(Params):
    """Parameters of methods about an account at a block."""

    address: bytes = param(Address(), doc="Address of the account.")
    block: Height | ByHash = state_block()


def is_settled(ctx: Context, params: AccountParams | SlotParams | ProofParams) -> bool:
    """Return true if the state is the state after a stored block."""
    return params.block is not Tag.PENDING


def balance(ctx: Context, params: AccountParams) -> int:
    """Balance of an account, in wei."""
    root = root_of(ctx, params.block)
    return accounts.account(evm_state(ctx).record, root, params.address).balance


def transaction_count(ctx: Context, params: AccountParams) -> int:
    """The account's next nonce; at the pending block it includes pending transactions."""
    evm = evm_state(ctx)
    waiting: tuple[bytes, ...] = ()
    if params.block is Tag.PENDING:
        # Read before the state: if a block includes them meanwhile, the state counts them.
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
    """A storage key: hex of any length up to a word, with or without leading zeros."""

    def from_json(self, value: Any) -> bytes:
        """Return the word."""
        return read_key(value)


def read_key(value: Any) -> bytes:
    """Return the word of a storage key; raise :exc:`ValueError` with geth's text."""
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
    key: bytes = param(StorageKey(), doc="Slot of its storage.")
    block: Height | ByHash = state_block()


def storage_at(ctx: Context, params: SlotParams) -> bytes:
    """A word of an account's storage."""
    root = root_of(ctx, params.block)
    return _word(evm_state(ctx), root, params.address, params.key)


def _word(evm: EvmState, root: bytes, address: bytes, key: bytes) -> bytes:
    found = accounts.account(evm.record, root, address)
    return accounts.storage(evm.record, found.storage_root, key).to_bytes(32)


class SlotsByAddress(ParamField):
    """Storage slots, by the addresses of their accounts."""

    json_type = "object"

    def from_json(self, value: Any) -> dict[bytes, tuple[bytes, ...]]:
        """Return the words by address."""
        if not isinstance(value, dict):
            raise mismatch(value, "map[common.Address][]common.Hash")
        lists = [keys for keys in value.values() if isinstance(keys, list)]
        # Checked before they are read: an account without slots needs work, too.
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
    """Words of the storage of several accounts."""
    root, evm = root_of(ctx, params.block), evm_state(ctx)
    return {
        hex.data(address): tuple(_word(evm, root, address, key) for key in keys)
        for address, keys in params.slots.items()
    }


class StorageKeys(ParamField):
    """Storage slots, each returned as the client wrote it."""

    json_type = "array"

    def from_json(self, value: Any) -> tuple[tuple[str, bytes], ...]:
        """Return each key as it was written, with its word."""
        if not isinstance(value, list):
            raise mismatch(value, "[]string")
        if len(value) > _MAX_SLOTS:
            raise ValueError(
                f"too many storage keys requested (max {_MAX_SLOTS}, got {len(value)})"
            )
        return tuple((_echoed_key(each), read_key(each)) for each in value)


def _echoed_key(key: Any) -> str:
    """Return the key as geth does: a whole word unchanged, and anything else as a number."""
    word = read_key(key)
    return hex.data(word) if len(key) == 66 else hex.quantity(int.from_bytes(word))


@dataclass(frozen=True, slots=True)
class ProofParams(Params):
    """Parameters of ``eth_getProof``."""

    address: bytes = param(Address(), doc="Address of the account.")
    keys: tuple[tuple[str, bytes], ...] = param(StorageKeys(), doc="Slots of its storage.")
    block: Height | ByHash = state_block()


def proof(ctx: Context, params: ProofParams) -> dict[str, Any]:
    """An account and words of its storage, with the nodes that prove them (EIP-1186)."""
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


# Names from EIP-7910, in the order of the addresses.
_NAMES = (
    "ECREC",
    "SHA256",
    "RIPEMD160",
    "ID",
    "MODEXP",
    "BN254_ADD",
    "BN254_MUL",
    "BN254_PAIRING",
    "BLAKE2F",
    "KZG_POINT_EVALUATION",
    "BLS12_G1ADD",
    "BLS12_G1MSM",
    "BLS12_G2ADD",
    "BLS12_G2MSM",
    "BLS12_PAIRING_CHECK",
    "BLS12_MAP_FP_TO_G1",
    "BLS12_MAP_FP2_TO_G2",
)


def config(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The fork rules since the genesis; no other forks are scheduled."""
    evm_state(ctx)
    genesis = block_of(ctx, 0).header.hash or b""
    current = {
        "activationTime": PlainNumber(0),
        # Headers count no blob gas, and there are no system contracts.
        "blobSchedule": None,
        "chainId": ctx.settings.of(EthereumSettings).evm_chain_id,
        # EIP-6122: all forks are active from the genesis.
        "forkId": crc32(genesis).to_bytes(4),
        "precompiles": dict(zip(_NAMES, sorted(PRECOMPILES), strict=True)),
        "systemContracts": {},
    }
    return {"current": current, "next": None, "last": None}


@dataclass(frozen=True, slots=True)
class UnreadParams(Params):
    """Ignored parameters, up to the number that any such method has."""

    first: Any = param(Anything(), default=None, doc="Ignored.")
    second: Any = param(Anything(), default=None, doc="Ignored.")
    third: Any = param(Anything(), default=None, doc="Ignored.")
    fourth: Any = param(Anything(), default=None, doc="Ignored.")


def needs_state(ctx: Context, params: UnreadParams) -> NoReturn:
    """Refused: the engine does not provide block access lists."""
    evm_state(ctx)
    raise EvmError("the engine provides no block access lists", code=NOT_SUPPORTED)
