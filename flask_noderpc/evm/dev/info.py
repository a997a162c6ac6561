"""Information methods of anvil and hardhat."""

from __future__ import annotations

from typing import Any

from ...domain.ethereum import Block
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ..codec.params import Tag
from ..codec.views import PlainNumber
from ..execution.state import block_of
from ..queries import fees, node
from ..reader import reader

_NO_FORK = {"forkUrl": None, "forkBlockNumber": None, "forkRetryBackoff": None}


def node_info(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The latest block, the fork, and what blocks are made with."""
    header = _latest(ctx).header
    return {
        "currentBlockNumber": header.number,
        "currentBlockTimestamp": header.timestamp,
        "currentBlockHash": header.hash,
        "hardFork": "prague",
        "transactionOrder": "fees",
        "environment": {
            "baseFee": fees.base_fee(ctx, params),
            "chainId": ctx.settings.evm_chain_id,
            "gasLimit": header.gas_limit,
            "gasPrice": fees.gas_price(ctx, params),
        },
        "forkConfig": _NO_FORK,
    }


def metadata(ctx: Context, params: NoParams) -> dict[str, Any]:
    """Return chain id and latest block; the hash of block 0 distinguishes chains."""
    header = _latest(ctx).header
    genesis = reader(ctx).at(0)
    return {
        "clientVersion": node.client_version(ctx, params),
        "chainId": PlainNumber(ctx.settings.evm_chain_id),
        "instanceId": genesis.header.hash if genesis else header.hash,
        "latestBlockNumber": PlainNumber(header.number),
        "latestBlockHash": header.hash,
    }


def _latest(ctx: Context) -> Block:
    return block_of(ctx, Tag.LATEST)
