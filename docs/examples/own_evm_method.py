"""EVM methods of your own: one in a namespace of your own, one in ``eth``."""

from dataclasses import dataclass
from typing import Any

from flask import Flask

from flask_noderpc import Context, NodeRPC, NoParams, Route, param
from flask_noderpc.ethereum.rpc.codec.params import Quantity
from flask_noderpc.ethereum.settings import EthereumSettings


@dataclass(frozen=True)
class AtHeight:
    """The parameters, by position."""

    height: int = param(Quantity(), doc="Height of the block.")


def proposer(ctx: Context, params: AtHeight) -> dict[str, Any]:
    """Height, hash and proposer of a block."""
    meta = ctx.backend.reads.block_meta(params.height)
    # Integers are encoded as quantities, bytes as data.
    return {
        "number": meta.header.height,
        "hash": meta.block_id.hash,
        "proposer": meta.header.proposer_address,
    }


def pending_bytes(ctx: Context, params: NoParams) -> int:
    """Bytes of the mempool's transactions."""
    return ctx.backend.mempool.pending_count().total_bytes


node = NodeRPC(
    settings=[EthereumSettings(json_rpc_enable=True)],
    rows={
        "evm_routes": [
            # The namespace is served because it has a route.
            Route("acme_proposer", proposer, AtHeight, dict),
            # Served where NODERPC_EVM_API (--evm.rpc.api) has eth.
            Route("eth_pendingBytes", pending_bytes, NoParams, int),
        ]
    },
)


def create_app(instance_path: str | None = None) -> Flask:
    """Return an app with the EVM layer at ``/evm`` and ``/evm/ws``."""
    app = Flask(__name__, instance_path=instance_path)
    node.init_app(app)
    return app
