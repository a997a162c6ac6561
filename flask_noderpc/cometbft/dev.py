"""Handlers that control a development chain (NODERPC_DEV): blocks, clock, snapshots, mempool.

Only callers on this machine may use them, as those of the EVM layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..backends.base.capabilities import MAX_MINED
from ..domain.abci import ExecTxResult
from ..errors import ValueNotAllowed
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..wire.params import Flag, Int64, Text

_MAX_SECONDS = 1 << 31
_MAX_CODE = (1 << 32) - 1


class Number(Int64):
    """An integer in JSON's form, which the dialects would have as a text."""


@dataclass(frozen=True, slots=True)
class Mine(Params):
    """Parameters of ``dev_mine``."""

    blocks: int = param(Number(), default=1, doc="Number of blocks, at most 100,000.")
    time: int | None = param(
        Number(), default=None, doc="Time of the first, in seconds since 1970."
    )


@dataclass(frozen=True, slots=True)
class Seconds(Params):
    """Parameters of ``dev_increaseTime``."""

    seconds: int = param(Number(), doc="Seconds.")


@dataclass(frozen=True, slots=True)
class Snapshot(Params):
    """Parameters of ``dev_revert``."""

    id: int = param(Number(), doc="Id from dev_snapshot.")


@dataclass(frozen=True, slots=True)
class Failure(Params):
    """Parameters of ``dev_failNextTx``."""

    code: int = param(Number(), doc="Code of the result, at least 1.")
    codespace: str = param(Text(), default="sdk", doc="Codespace of the code.")
    log: str = param(Text(), default="", doc="Text of the error.")
    check: bool = param(
        Flag(), default=False, doc="Refuse it when it is sent; else it fails in its block."
    )


@dataclass(frozen=True, slots=True)
class Freeze(Params):
    """Parameters of ``dev_freezeMempool``."""

    on: bool = param(Flag(), default=True, doc="False lets blocks take transactions again.")


def _require(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ValueNotAllowed(f"{name} is from {lowest} to {highest}, not {value}")


def mine(ctx: Context, params: Mine) -> int:
    """Make blocks now; return the last height."""
    _require("blocks", params.blocks, 0, MAX_MINED)
    return ctx.backend.control.mine(params.blocks, params.time)


def increase_time(ctx: Context, params: Seconds) -> int:
    """Advance the chain's clock; return how many seconds it is ahead."""
    _require("seconds", params.seconds, 0, _MAX_SECONDS)
    return ctx.backend.control.shift(params.seconds)


def snapshot(ctx: Context, params: NoParams) -> int:
    """Take a snapshot of the chain; return its id."""
    return ctx.backend.control.snapshot()


def revert(ctx: Context, params: Snapshot) -> bool:
    """Revert the chain to a snapshot; return false if there is none."""
    return ctx.backend.control.revert(params.id)


def fail_next_tx(ctx: Context, params: Failure) -> bool:
    """Let the next transaction fail."""
    _require("code", params.code, 1, _MAX_CODE)
    result = ExecTxResult(code=params.code, log=params.log, codespace=params.codespace)
    ctx.backend.control.fail_next_tx(result, in_check=params.check)
    return True


def freeze_mempool(ctx: Context, params: Freeze) -> bool:
    """Let all transactions wait, and blocks be empty."""
    ctx.backend.control.freeze(params.on)
    return True
