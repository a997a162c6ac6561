"""Route table of the node: one row per route, in the order of the interface document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Any

from ..domain import abci, genesis, network, responses
from ..errors import InvalidParams, ValueNotAllowed
from ..feature import features, load
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams
from ..jsonrpc.route import ALWAYS, AT_HEIGHT, OF_RESULTS, Cache, Route, RouteTable, tagged
from ..settings import Settings
from . import blocks, consensus, events, info, search, txs, unsafe
from .blocks import AtHeight

# Cache a commit only if the next block contains it: the commit that a node has for the latest
# height may still change.
CANONICAL_COMMIT = Cache(immutable_with="height", final=lambda result: result.canonical)
# Cache a response only if it has a block: a block with an unknown hash may be produced later.
KNOWN_BLOCK = Cache(always=True, final=lambda result: result.block is not None)
KNOWN_HEADER = Cache(always=True, final=lambda result: result.header is not None)

# CometBFT: rpc/core/routes.go has the same cache policy, except that abci_info, blockchain and
# tx are always cacheable there. Their results can change, so they are not always cacheable
# here.
COMETBFT_ROUTES = RouteTable(
    (
        Route("health", info.health, NoParams, responses.Empty, is_immutable=True, tag="Node"),
        Route(
            "status", info.status, NoParams, responses.ResultStatus, chain_only=True, tag="Node"
        ),
        Route("net_info", info.net_info, NoParams, network.NetInfo, tag="Node"),
        Route(
            "blockchain",
            blocks.blockchain,
            blocks.HeightRange,
            responses.ResultBlockchainInfo,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "block",
            blocks.block,
            AtHeight,
            responses.ResultBlock,
            AT_HEIGHT,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "block_by_hash",
            blocks.block_by_hash,
            blocks.ByHash,
            responses.ResultBlock,
            KNOWN_BLOCK,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "block_results",
            blocks.block_results,
            AtHeight,
            abci.BlockResults,
            OF_RESULTS,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "commit",
            blocks.commit,
            AtHeight,
            responses.ResultCommit,
            CANONICAL_COMMIT,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "validators",
            consensus.validators,
            consensus.PageAtHeight,
            responses.ResultValidators,
            AT_HEIGHT,
            chain_only=True,
            tag="Consensus",
        ),
        Route(
            "genesis",
            info.genesis,
            NoParams,
            responses.ResultGenesis,
            ALWAYS,
            chain_only=True,
            tag="Node",
        ),
        Route(
            "genesis_chunked",
            info.genesis_chunked,
            info.ChunkParams,
            genesis.GenesisChunk,
            ALWAYS,
            chain_only=True,
            tag="Node",
        ),
        Route(
            "consensus_params",
            consensus.consensus_params,
            AtHeight,
            responses.ResultConsensusParams,
            OF_RESULTS,
            chain_only=True,
            tag="Consensus",
        ),
        Route(
            "unconfirmed_txs",
            txs.unconfirmed_txs,
            txs.Limit,
            responses.PendingTxs,
            tag="Transactions",
        ),
        Route(
            "num_unconfirmed_txs",
            txs.num_unconfirmed_txs,
            NoParams,
            responses.PendingCount,
            tag="Transactions",
        ),
        Route(
            "tx", txs.tx, txs.TxByHash, responses.ResultTx, chain_only=True, tag="Transactions"
        ),
        Route(
            "broadcast_tx_sync",
            txs.broadcast_tx_sync,
            txs.TxParams,
            responses.ResultBroadcastTx,
            writes=True,
            waits=True,
            tag="Transactions",
        ),
        Route(
            "broadcast_tx_async",
            txs.broadcast_tx_async,
            txs.TxParams,
            responses.ResultBroadcastTx,
            writes=True,
            waits=True,
            tag="Transactions",
        ),
        Route("check_tx", txs.check_tx, txs.TxParams, abci.ExecTxResult, tag="Application"),
        Route(
            "abci_info",
            info.abci_info,
            NoParams,
            responses.ResultABCIInfo,
            chain_only=info.is_chain_only,
            tag="Application",
        ),
        Route(
            "abci_query",
            info.abci_query,
            info.Query,
            responses.ResultABCIQuery,
            chain_only=info.is_chain_only,
            tag="Application",
        ),
        # These routes are not in the interface document, but every real node has them.
        Route(
            "header",
            blocks.header,
            AtHeight,
            responses.ResultHeader,
            AT_HEIGHT,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "header_by_hash",
            blocks.header_by_hash,
            blocks.HeaderByHash,
            responses.ResultHeader,
            KNOWN_HEADER,
            chain_only=True,
            tag="Blocks",
        ),
        Route(
            "broadcast_tx_commit",
            txs.broadcast_tx_commit,
            txs.TxParams,
            responses.ResultBroadcastTxCommit,
            writes=True,
            tag="Transactions",
        ),
        Route(
            "broadcast_evidence",
            consensus.broadcast_evidence,
            consensus.EvidenceParams,
            responses.ResultBroadcastEvidence,
            writes=True,
            tag="Consensus",
        ),
        Route(
            "consensus_state",
            consensus.consensus_state,
            NoParams,
            responses.ResultConsensusState,
            tag="Consensus",
        ),
        Route(
            "dump_consensus_state",
            consensus.dump_consensus_state,
            NoParams,
            responses.ResultDumpConsensusState,
            tag="Consensus",
        ),
        Route(
            "tx_search",
            search.tx_search,
            search.TxQuery,
            responses.ResultTxSearch,
            chain_only=True,
            reads_index=True,
            tag="Search",
        ),
        Route(
            "block_search",
            search.block_search,
            search.BlockQuery,
            responses.ResultBlockSearch,
            chain_only=True,
            reads_index=True,
            tag="Search",
        ),
        Route(
            "events", events.events, events.EventsParams, responses.ResultEvents, tag="Search"
        ),
    )
)

# Mounts have these routes only with NODERPC_RPC_UNSAFE.
UNSAFE_ROUTES = RouteTable(
    tagged(
        "Unsafe",
        (
            Route(
                "dial_seeds", unsafe.dial_seeds, unsafe.Seeds, responses.ResultDial, writes=True
            ),
            Route(
                "dial_peers", unsafe.dial_peers, unsafe.Peers, responses.ResultDial, writes=True
            ),
            Route(
                "unsafe_flush_mempool",
                unsafe.unsafe_flush_mempool,
                NoParams,
                responses.Empty,
                writes=True,
            ),
        ),
    )
)

_DEV_ROUTES = (
    Route("dev_mine", unsafe.mine, unsafe.Mine, int),
    Route("dev_increaseTime", unsafe.increase_time, unsafe.Seconds, int),
    Route("dev_snapshot", unsafe.snapshot, NoParams, int),
    Route("dev_revert", unsafe.revert, unsafe.Snapshot, bool),
    Route("dev_failNextTx", unsafe.fail_next_tx, unsafe.Failure, bool),
    Route("dev_freezeMempool", unsafe.freeze_mempool, unsafe.Freeze, bool),
)


@cache
def dev_routes() -> RouteTable:
    """Return the routes of development chains: the node's own, and the ones that features add.

    Mounts with the EVM layer don't have these routes, as that layer has its own methods.
    """
    more = (row for each in features() if each.dev_routes for row in load(each.dev_routes))
    return RouteTable(
        replace(
            route,
            call=_refusing_params(route.call),
            writes=True,
            signs=True,
            tag="Development",
        )
        for route in (*_DEV_ROUTES, *more)
    )


def _refusing_params(handler: Callable[[Context, Any], Any]) -> Callable[[Context, Any], Any]:
    """Return a handler that refuses values as invalid parameters: CometBFT's code for them,
    an internal error, is only kept for its own methods."""

    @wraps(handler)
    def call(ctx: Context, params: Any) -> Any:
        try:
            return handler(ctx, params)
        except ValueNotAllowed as error:
            raise InvalidParams(error.text, error.hint) from None

    return call


def feature_routes(settings: Settings) -> RouteTable:
    """Return the routes that features add to the node's routes under these settings."""
    names = (
        each.routes
        for each in features()
        if each.routes and (not each.routes_setting or settings.value(each.routes_setting))
    )
    return RouteTable(row for name in names for row in load(name))
