"""Methods of anvil and hardhat that drive a chain of tests: its blocks, clock and accounts.

https://getfoundry.sh/anvil/reference and https://hardhat.org/hardhat-network/docs/reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..backend.control import Control
from ..domain.evm import AccountOverride
from ..errors import NotSupported
from ..rpc.context import Context
from ..rpc.params import NoParams, Params, param
from ..wire.params import ParamField
from . import hexes
from .call_objects import Big
from .errors import NOT_SUPPORTED, EvmError
from .params import Address, Bool, Data, Hash, mismatch
from .reader import reader
from .state import StorageKey

# A block takes milliseconds, and whoever asks waits.
_MOST_BLOCKS = 10_000
# hardhat and ganache count milliseconds here, which are more than any time in seconds.
_LEAST_MS = 10_000_000_000


class Number(ParamField):
    """A number, as hex or as JSON has numbers; these tools send both."""

    json_type = "integer"

    def from_json(self, value: Any) -> int:
        """The number."""
        if isinstance(value, str):
            return hexes.read_quantity(value, 256)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 256:
            raise mismatch(value, "uint64")
        return value


class MineOptions(ParamField):
    """The time of a block, or anvil's object with that and a number of blocks."""

    def from_json(self, value: Any) -> tuple[int | None, int]:
        """Time and number."""
        if not isinstance(value, dict):
            return Number().from_json(value), 1
        time, blocks = value.get("timestamp"), value.get("blocks")
        return (
            None if time is None else Number().from_json(time),
            1 if blocks is None else Number().from_json(blocks),
        )


@dataclass(frozen=True, slots=True)
class Mine(Params):
    """Of ``evm_mine``."""

    options: tuple[int | None, int] = param(
        MineOptions(), default=(None, 1), doc="The block's time, or how many and when."
    )


@dataclass(frozen=True, slots=True)
class MineMany(Params):
    """Of ``hardhat_mine`` and ``anvil_mine``."""

    count: int = param(Number(), default=1, doc="How many blocks.")
    interval: int | None = param(Number(), default=None, doc="Seconds from one to the next.")


@dataclass(frozen=True, slots=True)
class Seconds(Params):
    """For methods about a time."""

    seconds: int = param(Number(), doc="Seconds.")


@dataclass(frozen=True, slots=True)
class Switch(Params):
    """Of ``evm_setAutomine``."""

    on: bool = param(Bool(), doc="Whether.")


@dataclass(frozen=True, slots=True)
class OfSnapshot(Params):
    """Of ``evm_revert``."""

    number: int = param(Number(), doc="What evm_snapshot gave.")


@dataclass(frozen=True, slots=True)
class OfBalance(Params):
    """Of ``anvil_setBalance``."""

    address: bytes = param(Address(), doc="Address of the account.")
    balance: int = param(Big(), doc="Wei.")


@dataclass(frozen=True, slots=True)
class OfNonce(Params):
    """Of ``anvil_setNonce``."""

    address: bytes = param(Address(), doc="Address of the account.")
    nonce: int = param(Number(), doc="The next.")


@dataclass(frozen=True, slots=True)
class OfCode(Params):
    """Of ``anvil_setCode``."""

    address: bytes = param(Address(), doc="Address of the account.")
    code: bytes = param(Data(), doc="What runs there.")


@dataclass(frozen=True, slots=True)
class OfWord(Params):
    """Of ``anvil_setStorageAt``."""

    address: bytes = param(Address(), doc="Address of the account.")
    key: bytes = param(StorageKey(), doc="Place in its storage.")
    word: bytes = param(StorageKey(), doc="What is to be there.")


@dataclass(frozen=True, slots=True)
class OfWaiting(Params):
    """Of ``anvil_dropTransaction``."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")


def _control(ctx: Context) -> Control:
    try:
        return ctx.backend.control()
    except NotSupported as error:
        raise EvmError(error.said, code=NOT_SUPPORTED) from None


def mine(ctx: Context, params: Mine) -> str:
    """Make a block now."""
    time, count = params.options
    _mine(ctx, count, time, None)
    return "0x0"


def mine_many(ctx: Context, params: MineMany) -> bool:
    """Make blocks now."""
    _mine(ctx, params.count, None, params.interval)
    return True


def _mine(ctx: Context, count: int, time: int | None, step: int | None) -> None:
    if count > _MOST_BLOCKS:
        raise EvmError(f"{count} blocks are too many for one call, it makes {_MOST_BLOCKS}")
    _control(ctx).mine(count, time, step)


def snapshot(ctx: Context, params: NoParams) -> int:
    """Remember where the chain stands."""
    return _control(ctx).snapshot()


def revert(ctx: Context, params: OfSnapshot) -> bool:
    """Take the chain back to a snapshot, on all its surfaces."""
    return _control(ctx).revert(params.number)


def reset(ctx: Context, params: Mine) -> bool:
    """Take the chain back to its genesis."""
    _control(ctx).reset()
    return True


def increase_time(ctx: Context, params: Seconds) -> int:
    """Let time pass; how far the chain's clock is ahead."""
    return _control(ctx).shift(params.seconds)


def set_time(ctx: Context, params: Seconds) -> int:
    """Let it be some time; how far the chain's clock is ahead."""
    time = params.seconds
    seconds = time // 1000 if time >= _LEAST_MS else time
    return max(0, _control(ctx).set_time(seconds))


def set_next_time(ctx: Context, params: Seconds) -> str:
    """Give the next block a time."""
    _control(ctx).set_next_time(params.seconds)
    return hexes.quantity(params.seconds)


def set_automine(ctx: Context, params: Switch) -> bool:
    """Make a block for each transaction, or none by itself."""
    _control(ctx).set_automine(params.on)
    return True


def automine(ctx: Context, params: NoParams) -> bool:
    """Whether a block is made for each transaction."""
    return _control(ctx).automines()


def set_interval_ms(ctx: Context, params: Seconds) -> bool:
    """Make a block every so many milliseconds; 0 makes none."""
    _control(ctx).set_interval(params.seconds / 1000 or None)
    return True


def set_interval_s(ctx: Context, params: Seconds) -> bool:
    """Make a block every so many seconds; 0 makes none."""
    _control(ctx).set_interval(float(params.seconds) or None)
    return True


def _patch(ctx: Context, address: bytes, override: AccountOverride) -> bool:
    _control(ctx).patch({address: override})
    return True


def set_balance(ctx: Context, params: OfBalance) -> bool:
    """Give an account its balance."""
    return _patch(ctx, params.address, AccountOverride(balance=params.balance))


def set_nonce(ctx: Context, params: OfNonce) -> bool:
    """Give an account its next nonce."""
    if params.nonce > hexes.MAX_UINT64:
        raise EvmError("nonce has more than 64 bits")
    return _patch(ctx, params.address, AccountOverride(nonce=params.nonce))


def set_code(ctx: Context, params: OfCode) -> bool:
    """Put code at an address."""
    return _patch(ctx, params.address, AccountOverride(code=params.code))


def set_storage_at(ctx: Context, params: OfWord) -> bool:
    """Put a word into an account's storage."""
    return _patch(ctx, params.address, AccountOverride(state_diff={params.key: params.word}))


def drop(ctx: Context, params: OfWaiting) -> bytes | None:
    """Forget a waiting transaction; its hash, null where there is none."""
    for raw in ctx.backend.pending(_MOST_BLOCKS).txs:
        if any(tx.hash == params.hash for tx in reader(ctx).decoded(raw)):
            _control(ctx).drop((raw,))
            return params.hash
    return None


def drop_all(ctx: Context, params: NoParams) -> bool:
    """Forget all waiting transactions."""
    _control(ctx).drop(ctx.backend.pending(_MOST_BLOCKS).txs)
    return True
