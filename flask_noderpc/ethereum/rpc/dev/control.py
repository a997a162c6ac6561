"""Handlers that control a development chain: blocks, clock, snapshots, mempool.

https://getfoundry.sh/anvil/reference and https://hardhat.org/hardhat-network/docs/reference.

Each change of the state is made in its own block; later blocks follow the chain's rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ....backends.base.capabilities import Control
from ....errors import NotSupported, TxRejected, ValueNotAllowed, short_repr
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....wire.json_schema import typed
from ....wire.params import ParamField
from ...application.patches import Change, patch_tx
from ...domain.forks import fork_at
from ...domain.records import PlainNumber
from ...protocol.blocks import BlockView
from ..codec.params import Address, Bool, Hash
from ..errors import EvmError, not_supported
from ..execution.state import evm_state
from ..reader import reader

# Maximum number of blocks that a call may mine and return: each takes milliseconds.
MAX_BLOCKS = 10_000

# Maximum number of pending transactions to search for the transactions to remove.
_ALL_PENDING = 10_000

# evm_setTime takes a greater number as milliseconds.
_LAST_SECOND = 10_000_000_000
_LONGEST_INTERVAL = 1 << 31
# Lowest number that evm_setIntervalMining takes as milliseconds, as in hardhat; a lower number
# means seconds, as in anvil.
_MIN_MILLISECONDS = 100


# Numbers in JSON strings: hex, which may have leading zeros, or decimal.
_HEX, _DECIMAL = re.compile(r"0[xX][0-9a-fA-F]{0,66}"), re.compile(r"[0-9]{1,80}", re.ASCII)


class Number(ParamField):
    """A number as clients of anvil and hardhat send it: a JSON number, or a string in hex or
    decimal."""

    json_type = "integer"
    in_json = typed("integer", "string")

    def from_json(self, value: Any) -> int:
        """Return the number, of at most 256 bits."""
        number = _number(value)
        if number is None or number >> 256:
            raise ValueError(
                "expected a number of at most 256 bits, as a JSON number, a decimal string or a"
                f" hex string with 0x, got {short_repr(value)}"
            )
        return number


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        # anvil takes "" and "0x" as zero.
        if not value:
            return 0
        if _HEX.fullmatch(value):
            return int(value[2:] or "0", 16)
        return int(value) if _DECIMAL.fullmatch(value) else None
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_number else None


class MineOptions(ParamField):
    """The time of a block, or anvil's object of ``timestamp`` and ``blocks``."""

    in_json = typed("integer", "string", "object")

    def from_json(self, value: Any) -> tuple[int | None, int]:
        """Return the time in seconds, ``None`` for the clock's, and the number of blocks."""
        if not isinstance(value, dict):
            return Number().from_json(value), 1
        time, blocks = value.get("timestamp"), value.get("blocks")
        return (
            None if time is None else Number().from_json(time),
            1 if blocks is None else Number().from_json(blocks),
        )


@dataclass(frozen=True, slots=True)
class MineParams(Params):
    """Parameters of ``evm_mine``."""

    options: tuple[int | None, int] = param(
        MineOptions(),
        default=(None, 1),
        doc="Time of the block in seconds, or an object of timestamp and blocks.",
    )


@dataclass(frozen=True, slots=True)
class MineManyParams(Params):
    """Parameters of ``hardhat_mine`` and ``anvil_mine``."""

    count: int = param(Number(), default=1, doc="Number of blocks.")
    interval: int | None = param(Number(), default=None, doc="Seconds between the blocks.")


class ResetOptions(ParamField):
    """Options of a reset, which may name the fork with which the chain began."""

    json_type = "object"

    def from_json(self, value: Any) -> int | str | None:
        """Return the block of the fork: its height, or ``latest`` if only a URL is given;
        ``None`` without a fork."""
        fork = value.get("forking") if isinstance(value, dict) else None
        # viem sends an object whose members are null if no fork is wanted.
        if not isinstance(fork, dict) or all(each is None for each in fork.values()):
            return None
        number = fork.get("blockNumber")
        return "latest" if number is None else Number().from_json(number)


@dataclass(frozen=True, slots=True)
class Reset(Params):
    """Parameters of ``hardhat_reset``."""

    fork: int | str | None = param(
        ResetOptions(), default=None, doc="Options; another fork is refused."
    )


@dataclass(frozen=True, slots=True)
class SecondsParams(Params):
    """Parameters of methods that take a number of seconds."""

    seconds: int = param(Number(), doc="Number of seconds, or a time as a Unix timestamp.")


@dataclass(frozen=True, slots=True)
class SwitchParams(Params):
    """Parameters of ``evm_setAutomine``."""

    on: bool = param(Bool(), doc="True to mine each transaction at once.")


@dataclass(frozen=True, slots=True)
class SnapshotParams(Params):
    """Parameters of ``evm_revert``."""

    number: int = param(Number(), doc="ID that evm_snapshot returned.")


@dataclass(frozen=True, slots=True)
class TransactionHashParams(Params):
    """Parameters of ``anvil_dropTransaction``."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")


def control(ctx: Context) -> Control:
    """Return the backend's development control; raise :exc:`.errors.EvmError` if it has
    none."""
    try:
        return ctx.backend.control
    except NotSupported as error:
        raise not_supported(error) from None


@contextmanager
def checked_control(ctx: Context) -> Iterator[Control]:
    """Yield the development control; raise its refusals as :exc:`.errors.EvmError`."""
    try:
        yield control(ctx)
    except (TxRejected, ValueNotAllowed) as error:
        raise EvmError(error.text_with_hint) from None


def change(ctx: Context, made: Change) -> None:
    """Make a block that changes the state; raise :exc:`.errors.EvmError` if it is refused."""
    with checked_control(ctx) as chain_control:
        chain_control.include(patch_tx(made))


def mine(ctx: Context, params: MineParams) -> str:
    """Mine blocks; return ``0x0``."""
    time, count = params.options
    _mine(ctx, count, time, None)
    return "0x0"


def mine_detailed(ctx: Context, params: MineParams) -> tuple[BlockView, ...]:
    """Mine blocks; return them with their transactions."""
    time, count = params.options
    check_blocks(count)
    last = _mine(ctx, count, time, None)
    found = map(reader(ctx).block_at, range(last - count + 1, last + 1))
    return tuple(BlockView(block, True) for block in found if block is not None)


def check_blocks(count: int) -> None:
    """Raise :exc:`.errors.EvmError` for more blocks than one call may mine."""
    if count > MAX_BLOCKS:
        raise EvmError(f"blocks: expected at most {MAX_BLOCKS} in one call, got {count}")


def mine_many(ctx: Context, params: MineManyParams) -> None:
    """Mine a number of blocks."""
    _mine(ctx, params.count, None, params.interval)


def _mine(ctx: Context, count: int, time: int | None, step: int | None) -> int:
    """Mine blocks, the first at a time and the others ``step`` seconds apart; return the last
    height."""
    with checked_control(ctx) as chain_control:
        return chain_control.mine(count, time, step)


def snapshot(ctx: Context, params: NoParams) -> int:
    """Take a snapshot of the chain; return its ID."""
    return control(ctx).snapshot()


def revert(ctx: Context, params: SnapshotParams) -> bool:
    """Revert the chain to a snapshot, in all APIs of the node; return true if it existed."""
    return control(ctx).revert(params.number)


def reset(ctx: Context, params: Reset) -> None:
    """Revert the chain to its genesis, or to the block after which it was forked."""
    fork = evm_state(ctx).fork
    number = fork.block.header.number if fork else None
    if params.fork is not None and (fork is None or params.fork not in (number, "latest")):
        began = "without a fork" if number is None else f"with a fork of block {number}"
        raise EvmError(
            f"forking: expected null, as this chain began {began}, got block {params.fork};"
            " start a node with --fork-url and --fork-block-number (NODERPC_FORK_URL,"
            " NODERPC_FORK_BLOCK_NUMBER)"
        )
    control(ctx).reset()


def increase_time(ctx: Context, params: SecondsParams) -> PlainNumber:
    """Advance the chain's clock; return the seconds by which it is ahead of the real time."""
    with checked_control(ctx) as chain_control:
        return PlainNumber(chain_control.shift(params.seconds))


def set_time(ctx: Context, params: SecondsParams) -> PlainNumber:
    """Set the chain's clock; return the seconds by which it is ahead of the real time."""
    # Clients written for ganache send milliseconds: a number that is too large for a time in
    # seconds is taken as milliseconds.
    time = params.seconds
    seconds = time // 1000 if time > _LAST_SECOND else time
    with checked_control(ctx) as chain_control:
        return PlainNumber(max(0, chain_control.set_time(seconds)))


def set_next_time(ctx: Context, params: SecondsParams) -> None:
    """Set the time of the next block."""
    with checked_control(ctx) as chain_control:
        chain_control.set_next_time(params.seconds)


def set_automine(ctx: Context, params: SwitchParams) -> None:
    """Mine a block immediately for each transaction, or mine only on request."""
    control(ctx).set_automine(params.on)


def automine(ctx: Context, params: NoParams) -> bool:
    """True if a block is mined for each transaction."""
    return control(ctx).automines()


def set_interval(ctx: Context, params: SecondsParams) -> None:
    """Mine at an interval in milliseconds, or in seconds if below 100; 0 stops it."""
    number = params.seconds
    _set_interval(ctx, number if number < _MIN_MILLISECONDS else number / 1000)


def set_interval_s(ctx: Context, params: SecondsParams) -> None:
    """Mine at an interval in seconds; 0 stops it."""
    _set_interval(ctx, params.seconds)


def _set_interval(ctx: Context, seconds: float) -> None:
    if seconds > _LONGEST_INTERVAL:
        raise EvmError(f"seconds: expected at most {_LONGEST_INTERVAL}, got {seconds}")
    with checked_control(ctx) as chain_control:
        chain_control.set_interval(seconds or None)


def interval(ctx: Context, params: NoParams) -> PlainNumber | None:
    """Seconds between blocks if they are mined at an interval; null in other modes."""
    seconds = control(ctx).interval()
    return None if seconds is None else PlainNumber(max(1, round(seconds)))


def set_step(ctx: Context, params: SecondsParams) -> None:
    """Set a fixed number of seconds between the times of blocks; 0 removes it."""
    if params.seconds > _LONGEST_INTERVAL:
        raise EvmError(f"seconds: expected at most {_LONGEST_INTERVAL}, got {params.seconds}")
    with checked_control(ctx) as chain_control:
        chain_control.set_step(params.seconds or None)


def remove_step(ctx: Context, params: NoParams) -> bool:
    """Remove the fixed number of seconds between the times of blocks; return true if it was
    set."""
    with checked_control(ctx) as chain_control:
        return chain_control.set_step(None)


def was_dropped(ctx: Context, params: TransactionHashParams) -> bool:
    """Remove a pending transaction; return true if it was pending."""
    return drop(ctx, params) is not None


def drop(ctx: Context, params: TransactionHashParams) -> bytes | None:
    """Remove a pending transaction; return its hash, or null if it is not pending."""
    for raw in ctx.backend.mempool.pending(_ALL_PENDING).txs:
        if any(tx.hash == params.hash for tx in reader(ctx).decode_pending(raw)):
            control(ctx).drop((raw,))
            return params.hash
    return None


def drop_all(ctx: Context, params: NoParams) -> None:
    """Remove all pending transactions."""
    control(ctx).drop(ctx.backend.mempool.pending(_ALL_PENDING).txs)


@dataclass(frozen=True, slots=True)
class SenderParams(Params):
    """Parameters of ``anvil_removePoolTransactions``."""

    address: bytes = param(Address(), doc="Address of the sender.")


def drop_by_sender(ctx: Context, params: SenderParams) -> None:
    """Remove the pending transactions of a sender."""
    control(ctx).drop(ctx.backend.mempool.pending_by_sender(params.address, _ALL_PENDING))


# CometBFT stores gas as a signed 64-bit number.
_MAX_GAS = (1 << 63) - 1
_MIN_GAS = 21_000
# The base fee is set by changing the parent's, which is up to 8/7 of it (EIP-1559) and must
# fit into 256 bits.
_HIGHEST_FEE = 1 << 255


@dataclass(frozen=True, slots=True)
class FeeParams(Params):
    """Parameters of ``anvil_setNextBlockBaseFeePerGas``."""

    fee: int = param(Number(), doc="Wei per unit of gas.")


@dataclass(frozen=True, slots=True)
class CoinbaseParams(Params):
    """Parameters of ``anvil_setCoinbase``."""

    address: bytes = param(Address(), doc="Recipient of the tips.")


@dataclass(frozen=True, slots=True)
class GasLimitParams(Params):
    """Parameters of ``evm_setBlockGasLimit``."""

    limit: int = param(Number(), doc="Units of gas.")


def set_base_fee(ctx: Context, params: FeeParams) -> None:
    """Set the next block's base fee."""
    if params.fee >= _HIGHEST_FEE:
        raise EvmError("fee: expected a base fee of at most 255 bits")
    change(ctx, Change(next_base_fee=params.fee))


def set_coinbase(ctx: Context, params: CoinbaseParams) -> None:
    """Set the recipient of tips from the next block on."""
    change(ctx, Change(coinbase=params.address))


# geth, anvil and wallets take a chain ID as an unsigned 64-bit number, and JavaScript clients
# lose digits above 53 bits.
_MAX_CHAIN_ID = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class ChainIdParams(Params):
    """Parameters of ``anvil_setChainId``."""

    chain_id: int = param(Number(), doc="Chain ID of later transactions.")


def set_chain_id(ctx: Context, params: ChainIdParams) -> None:
    """Set the chain ID from the next block on; pending transactions of another one are
    removed."""
    if not 1 <= params.chain_id <= _MAX_CHAIN_ID:
        raise EvmError(
            f"chain_id: expected a chain ID from 1 to {_MAX_CHAIN_ID}, got {params.chain_id}"
        )
    change(ctx, Change(chain_id=params.chain_id))


@dataclass(frozen=True, slots=True)
class RandaoParams(Params):
    """Parameters of ``hardhat_setPrevRandao``."""

    prev_randao: bytes = param(Hash(), doc="The 32 bytes that PREVRANDAO returns.")


def set_prev_randao(ctx: Context, params: RandaoParams) -> None:
    """Set the value of PREVRANDAO, and ``mixHash``, of the next block; later blocks have 0."""
    fork = fork_at(evm_state(ctx).forks(), reader(ctx).latest + 1)
    if not fork.has_randao:
        raise EvmError(f"PREVRANDAO begins with the fork Paris, and this chain has {fork.name}")
    change(ctx, Change(prev_randao=params.prev_randao))


def set_gas_limit(ctx: Context, params: GasLimitParams) -> bool:
    """Set the gas limit from the next block on."""
    if not _MIN_GAS <= params.limit <= _MAX_GAS:
        raise EvmError(
            f"limit: expected a gas limit from {_MIN_GAS} to {_MAX_GAS}, got {params.limit}"
        )
    before = ctx.backend.reads.consensus_params(reader(ctx).latest + 1).block
    change(ctx, Change(block=replace(before, max_gas=params.limit)))
    return True
