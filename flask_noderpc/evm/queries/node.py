"""Handlers of client and network information: web3, net, rpc and parts of eth."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ...errors import NotSupported
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.comet.keys import address
from ...protocol.ethereum.crypto import keccak
from ..codec.params import Data, Tag
from ..errors import EvmError
from ..reader import reader

DEV_NAMESPACES = ("evm", "anvil", "hardhat", "personal")
"""Methods that development nodes have, served with NODERPC_DEV alone."""


def client_version(ctx: Context, params: NoParams) -> str:
    """The name and version of this server, or the configured text."""
    if ctx.settings.evm_client_version is not None:
        return ctx.settings.evm_client_version
    system = f"{platform.system().lower()}-{platform.machine()}"
    return (
        f"flask-noderpc/v{version('flask-noderpc')}/{system}/python{platform.python_version()}"
    )


@dataclass(frozen=True, slots=True)
class Bytes(Params):
    """Parameters of ``web3_sha3``."""

    data: bytes = param(Data(), doc="The bytes to hash.")


def sha3(ctx: Context, params: Bytes) -> bytes:
    """The Keccak-256 hash of bytes."""
    return keccak(params.data)


def net_version(ctx: Context, params: NoParams) -> str:
    """The chain id, as a decimal text."""
    return str(ctx.settings.evm_chain_id)


def listening(ctx: Context, params: NoParams) -> bool:
    """True if the node takes connections of peers."""
    return ctx.backend.network.net_info().listening


def peer_count(ctx: Context, params: NoParams) -> int:
    """Number of the node's peers."""
    return len(ctx.backend.network.net_info().peers)


def modules(ctx: Context, params: NoParams) -> dict[str, str]:
    """Enabled namespaces, with their versions."""
    served = {*ctx.settings.evm_api, "rpc", *(DEV_NAMESPACES if ctx.settings.dev else ())}
    return dict.fromkeys(sorted(served), "1.0")


def chain_id(ctx: Context, params: NoParams) -> int:
    """The chain id that transactions are signed for."""
    return ctx.settings.evm_chain_id


def block_number(ctx: Context, params: NoParams) -> int:
    """The height of the latest block."""
    return ctx.backend.latest_height()


def syncing(ctx: Context, params: NoParams) -> bool | dict[str, int]:
    """False, or the progress of the sync."""
    backend = ctx.backend
    if not backend.network.catching_up():
        return False
    latest = backend.latest_height()
    return {
        "startingBlock": backend.base_height(),
        "currentBlock": latest,
        "highestBlock": latest,
    }


def coinbase(ctx: Context, params: NoParams) -> bytes:
    """Address of the node's validator key."""
    return address(ctx.backend.network.validator_key())


def capabilities(ctx: Context, params: NoParams) -> dict[str, Any]:
    """Available data, with the first block of each kind."""
    chain = reader(ctx)
    head = chain.block(Tag.LATEST)
    if head is None:
        raise EvmError("header not found")
    stored = {"disabled": False, "oldestBlock": chain.height(Tag.EARLIEST)}
    try:
        _ = ctx.backend.evm_state
        state = stored
    except NotSupported:
        state = {"disabled": True}
    return {
        "head": {"number": head.header.number, "hash": head.header.hash},
        **dict.fromkeys(("blocks", "tx", "receipts", "logs"), stored),
        **dict.fromkeys(("state", "stateproofs"), state),
    }


def not_mining(ctx: Context, params: NoParams) -> bool:
    """Always false: there is no proof of work."""
    return False


def no_hashrate(ctx: Context, params: NoParams) -> int:
    """Always 0: there is no proof of work."""
    return 0


def protocol_version(ctx: Context, params: NoParams) -> int:
    """Version 65 of the wire protocol, as in Ethermint."""
    return 65
