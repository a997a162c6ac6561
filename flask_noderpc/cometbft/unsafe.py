"""Handlers that change the node for all callers: the routes of NODERPC_RPC_UNSAFE, and the
routes that control a development chain (NODERPC_DEV).

CometBFT: the checks of addresses are from p2p/netaddress.go, with its error texts and Go's
``net`` error texts. Host names are not resolved: CometBFT ignores names that can't be
resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..backends.base.capabilities import MAX_MINED
from ..domain.abci import ExecTxResult
from ..domain.responses import Empty, ResultDial
from ..errors import ValueNotAllowed
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..wire.comet.gojson import hex_bytes
from ..wire.params import Flag, Int64, Text, Texts

ID_SIZE = 20

_DIGITS = re.compile(r"[0-9]+")
_LAST_PORT = 65535


def check_address(address: str) -> None:
    """Raise :exc:`ValueError` for an invalid node address, ``id@host:port``."""
    bare = address.split("://", 1)[-1]
    node_id, rest = _halves(address, bare)
    try:
        _check_id(node_id)
    except ValueError as error:
        raise ValueError(f"invalid address ({bare}): {error}") from None
    try:
        host, port = _host_and_port(rest)
    except ValueError as error:
        where = f"address {rest}: " if rest else ""
        raise ValueError(f"invalid address ({rest}): {where}{error}") from None
    if not host:
        raise ValueError(f"invalid address ({rest}): host is empty")
    _check_port(port)


def _check_port(port: str) -> None:
    is_number = _DIGITS.fullmatch(port) is not None
    if not is_number or len(port.lstrip("0")) > 5 or int(port) > _LAST_PORT:
        reason = "value out of range" if is_number else "invalid syntax"
        raise ValueError(
            f'invalid address ({port}): strconv.ParseUint: parsing "{port}": {reason}'
        )


def peer_ids(addresses: Sequence[str]) -> list[str]:
    """Return the node ID of each address, the text before ``@``; raise :exc:`ValueError` for
    an address without ``@``."""
    return [_halves(address, address)[0] for address in addresses]


def check_ids(ids: Sequence[str]) -> None:
    """Raise :exc:`ValueError` for the first invalid node ID."""
    for index, node_id in enumerate(ids):
        try:
            _check_id(node_id)
        except ValueError as error:
            raise ValueError(f"wrong ID #{index}: {error}") from None


def _halves(address: str, bare: str) -> tuple[str, str]:
    halves = bare.split("@")
    if len(halves) != 2:
        raise ValueError(f"address ({address}) does not contain ID")
    return halves[0], halves[1]


def _check_id(node_id: str) -> None:
    if not node_id:
        raise ValueError("no ID")
    size = len(hex_bytes(node_id.encode("utf-8", "replace")))
    if size != ID_SIZE:
        raise ValueError(f"invalid hex length - got {size}, expected {ID_SIZE}")


def _host_and_port(text: str) -> tuple[str, str]:
    # Go: net.SplitHostPort.
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError("missing port in address")
    if not host.startswith("["):
        if ":" in host:
            raise ValueError("too many colons in address")
        return _without_brackets(host), _without_brackets(port)
    inside, bracket, behind = text[1:].partition("]")
    if not bracket:
        raise ValueError("missing ']' in address")
    if behind != f":{port}":
        reason = "too many colons" if behind.startswith(":") else "missing port"
        raise ValueError(f"{reason} in address")
    if "[" in inside:
        raise ValueError("unexpected '[' in address")
    return inside, _without_brackets(port)


def _without_brackets(part: str) -> str:
    for bracket in "[]":
        if bracket in part:
            raise ValueError(f"unexpected '{bracket}' in address")
    return part


_ADDRESSES = "Addresses of nodes in the form ``id@host:port``."


@dataclass(frozen=True, slots=True)
class Seeds(Params):
    """Parameters of ``dial_seeds``."""

    seeds: tuple[str, ...] = param(Texts(), default=(), doc=_ADDRESSES)


@dataclass(frozen=True, slots=True)
class Peers(Params):
    """Parameters of ``dial_peers``."""

    peers: tuple[str, ...] = param(Texts(), default=(), doc=_ADDRESSES)
    persistent: bool = param(
        Flag(), default=False, doc="Reconnect whenever a connection is lost."
    )
    unconditional: bool = param(
        Flag(),
        default=False,
        doc="Connect to these nodes even if the maximum number of peers is reached.",
    )
    private: bool = param(
        Flag(), default=False, doc="Do not announce these nodes to other nodes."
    )


# CometBFT: rpc/core/net.go, with its texts.


def dial_seeds(ctx: Context, params: Seeds) -> ResultDial:
    """Ask other nodes for the addresses of peers."""
    if not params.seeds:
        raise ValueNotAllowed("no seeds provided")
    with _mapped_value_errors():
        for address in params.seeds:
            check_address(address)
    ctx.backend.network.dial_seeds(params.seeds)
    return ResultDial("Dialing seeds in progress. See /net_info for details")


def dial_peers(ctx: Context, params: Peers) -> ResultDial:
    """Connect to other nodes."""
    if not params.peers:
        raise ValueNotAllowed("no peers provided")
    with _mapped_value_errors():
        ids = peer_ids(params.peers)
        # CometBFT: persistent peers are stored by their addresses, other peers by their IDs.
        if not params.persistent and (params.private or params.unconditional):
            check_ids(ids)
        for address in params.peers:
            check_address(address)
    ctx.backend.network.dial_peers(
        params.peers,
        persistent=params.persistent,
        unconditional=params.unconditional,
        private=params.private,
    )
    return ResultDial("Dialing peers in progress. See /net_info for details")


@contextmanager
def _mapped_value_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueNotAllowed(str(error)) from None


def unsafe_flush_mempool(ctx: Context, params: NoParams) -> Empty:
    """Remove all pending transactions, and the cache of transactions that the mempool has
    already received."""
    ctx.backend.mempool.flush()
    return Empty()


_MAX_SECONDS = 1 << 31
_MAX_CODE = (1 << 32) - 1


# Only callers on this machine can use the routes below, as with the corresponding methods of
# the EVM layer.


class Number(Int64):
    """Integer as a JSON number in every dialect."""


@dataclass(frozen=True, slots=True)
class Mine(Params):
    """Parameters of ``dev_mine``."""

    blocks: int = param(Number(), default=1, doc="Number of blocks, at most 100,000.")
    time: int | None = param(
        Number(), default=None, doc="Time of the first block, in seconds since 1970."
    )


@dataclass(frozen=True, slots=True)
class Seconds(Params):
    """Parameters of ``dev_increaseTime``."""

    seconds: int = param(Number(), doc="Seconds to advance the clock by.")


@dataclass(frozen=True, slots=True)
class Snapshot(Params):
    """Parameters of ``dev_revert``."""

    id: int = param(Number(), doc="Snapshot ID that ``dev_snapshot`` returned.")


@dataclass(frozen=True, slots=True)
class Failure(Params):
    """Parameters of ``dev_failNextTx``."""

    code: int = param(Number(), doc="Code of the failed result, at least 1.")
    codespace: str = param(Text(), default="sdk", doc="Codespace of the code.")
    log: str = param(Text(), default="", doc="Text of the error.")
    check: bool = param(
        Flag(),
        default=False,
        doc="Reject the transaction when it is sent; by default it fails in its block.",
    )


@dataclass(frozen=True, slots=True)
class Freeze(Params):
    """Parameters of ``dev_freezeMempool``."""

    on: bool = param(Flag(), default=True, doc="False to include transactions in blocks again.")


def _require(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ValueNotAllowed(f"{name}: expected {lowest} to {highest}, got {value}")


def mine(ctx: Context, params: Mine) -> int:
    """Produce blocks now; return the last height."""
    _require("blocks", params.blocks, 0, MAX_MINED)
    return ctx.backend.control.mine(params.blocks, params.time)


def increase_time(ctx: Context, params: Seconds) -> int:
    """Advance the chain's clock; return the seconds by which it is ahead of the real time."""
    _require("seconds", params.seconds, 0, _MAX_SECONDS)
    return ctx.backend.control.shift(params.seconds)


def snapshot(ctx: Context, params: NoParams) -> int:
    """Take a snapshot of the chain; return its ID."""
    return ctx.backend.control.snapshot()


def revert(ctx: Context, params: Snapshot) -> bool:
    """Revert the chain to a snapshot; return false if the snapshot does not exist."""
    return ctx.backend.control.revert(params.id)


def fail_next_tx(ctx: Context, params: Failure) -> bool:
    """Make the next transaction fail; return true."""
    _require("code", params.code, 1, _MAX_CODE)
    result = ExecTxResult(code=params.code, log=params.log, codespace=params.codespace)
    ctx.backend.control.fail_next_tx(result, in_check=params.check)
    return True


def freeze_mempool(ctx: Context, params: Freeze) -> bool:
    """Keep all transactions pending and all blocks empty, or end this state; return true."""
    ctx.backend.control.freeze(params.on)
    return True
