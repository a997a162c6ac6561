"""Routes that change the node for all its callers, there where NODERPC_RPC_UNSAFE is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..domain.rpc_results import Empty, ResultDial
from ..errors import ValueNotAllowed
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..wire.params import Flag, Texts
from .addresses import check_address, check_ids, peer_ids

_ADDRESSES = "Nodes, each as ``id@host:port``."


@dataclass(frozen=True, slots=True)
class Seeds(Params):
    """Parameters of ``dial_seeds``."""

    seeds: tuple[str, ...] = param(Texts(), default=(), doc=_ADDRESSES)


@dataclass(frozen=True, slots=True)
class Peers(Params):
    """Parameters of ``dial_peers``."""

    peers: tuple[str, ...] = param(Texts(), default=(), doc=_ADDRESSES)
    persistent: bool = param(
        Flag(), default=False, doc="Whether to connect again whenever a connection is lost."
    )
    unconditional: bool = param(
        Flag(), default=False, doc="Whether they are let in however many there are."
    )
    private: bool = param(Flag(), default=False, doc="Do not announce them to other nodes.")


# CometBFT: rpc/core/net.go; its texts.


def dial_seeds(ctx: Context, params: Seeds) -> ResultDial:
    """Begin to ask other nodes for nodes."""
    if not params.seeds:
        raise ValueNotAllowed("no seeds provided")
    with _refused():
        for address in params.seeds:
            check_address(address)
    ctx.backend.network.dial_seeds(params.seeds)
    return ResultDial("Dialing seeds in progress. See /net_info for details")


def dial_peers(ctx: Context, params: Peers) -> ResultDial:
    """Begin to connect to other nodes."""
    if not params.peers:
        raise ValueNotAllowed("no peers provided")
    with _refused():
        ids = peer_ids(params.peers)
        # CometBFT: persistent peers are stored by their addresses, the others by their ids.
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
def _refused() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueNotAllowed(str(error)) from None


def unsafe_flush_mempool(ctx: Context, params: NoParams) -> Empty:
    """Forget every transaction that waits for a block, and those seen before."""
    ctx.backend.mempool.flush()
    return Empty()
