"""web3, net and rpc: who answers here, and what it offers."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

from ..rpc.context import Context
from ..rpc.params import NoParams, Params, param
from .params import Data


def client_version(ctx: Context, params: NoParams) -> str:
    """The name and version of this server."""
    system = f"{platform.system().lower()}-{platform.machine()}"
    return (
        f"flask-noderpc/v{version('flask-noderpc')}/{system}/python{platform.python_version()}"
    )


@dataclass(frozen=True, slots=True)
class Bytes(Params):
    """Of ``web3_sha3``."""

    data: bytes = param(Data(), doc="The bytes to hash.")


def net_version(ctx: Context, params: NoParams) -> str:
    """The chain id, as a decimal text."""
    return str(ctx.settings.evm_chain_id)


def listening(ctx: Context, params: NoParams) -> bool:
    """Whether the node takes connections of peers."""
    return ctx.backend.net_info().listening


def peer_count(ctx: Context, params: NoParams) -> int:
    """How many peers the node has."""
    return len(ctx.backend.net_info().peers)


def modules(ctx: Context, params: NoParams) -> dict[str, str]:
    """The namespaces that are served, each with a version."""
    return dict.fromkeys(sorted({*ctx.settings.evm_api, "rpc"}), "1.0")


def chain_id(ctx: Context, params: NoParams) -> int:
    """The chain id that transactions are signed for."""
    return ctx.settings.evm_chain_id


def block_number(ctx: Context, params: NoParams) -> int:
    """The height of the latest block."""
    return ctx.backend.latest_height()
