"""Methods of anvil and hardhat that inform, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from ...domain.ethereum import Block, PlainNumber
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ..codec.params import Tag
from ..errors import NOT_SUPPORTED, EvmError
from ..execution.state import UnreadParams, block_of
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


_REASONS = (
    (
        ("setMinGasPrice",),
        "the base fee is the least (EIP-1559): setNextBlockBaseFeePerGas sets it",
    ),
    (("setPrevRandao",), "blocks have no randomness of a beacon chain"),
    (("setChainId",), "NODERPC_EVM_CHAIN_ID sets the chain id, before the chain begins"),
    (("setRpcUrl",), "the chain of another node can't be taken over here"),
    (("setLoggingEnabled",), "the host's logging decides what is logged"),
    (("reorg", "rollback"), "evm_snapshot and evm_revert take blocks back"),
)


def _reasons() -> Iterator[tuple[str, str]]:
    for names, reason in _REASONS:
        for name in names:
            yield f"anvil_{name}", reason
            yield f"hardhat_{name}", reason


REASONS: Mapping[str, str] = dict(_reasons())
"""Why each of them is not here."""


def refusing(name: str) -> Callable[[Context, UnreadParams], NoReturn]:
    """Return a handler that refuses a method."""

    def refuse(ctx: Context, params: UnreadParams) -> NoReturn:
        """Refused: it would make the chain another than its blocks say."""
        raise EvmError(f"{name} is not supported: {REASONS[name]}", code=NOT_SUPPORTED)

    return refuse
