"""Route table of the EVM layer: one route for each method, by namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import jsoncodec
from ...errors import ConfigurationError, InvalidSetting, short_repr
from ...jsonrpc.params import NoParams
from ...jsonrpc.route import WHEN_FOUND, Route, RouteTable, tagged
from ..api import DEV_NAMESPACES, NAMESPACES
from ..domain import records
from ..domain.records import PlainNumber
from ..protocol.blocks import BlockView
from ..protocol.execution import Receipt
from .dev import signing
from .dev.routes import DEV_ROUTES
from .execution import account, calls, debug, parity, sending, simulate, state
from .execution.state import UnreadParams, needs_state
from .queries import blocks, fees, history, logs, node, otterscan
from .subscriptions import filters

SESSION_METHODS = frozenset({"eth_subscribe", "eth_unsubscribe"})
"""Methods that a websocket session handles itself, so they are not routes."""


_NEED_STATE = (
    "eth_getBlockAccessList",
    "debug_getRawBlockAccessList",
)

_NODE = (
    Route("rpc_modules", node.modules, NoParams, dict),
    Route("web3_clientVersion", node.client_version, NoParams, str),
    Route("web3_sha3", node.sha3, node.Bytes, bytes),
    Route("net_version", node.net_version, NoParams, str),
    Route("eth_networkId", node.net_version, NoParams, str),
    Route("net_listening", node.listening, NoParams, bool),
    Route("net_peerCount", node.peer_count, NoParams, int),
    Route("eth_chainId", node.chain_id, NoParams, int),
    Route("eth_blockNumber", node.block_number, NoParams, int, chain_only=True),
    Route("eth_syncing", node.syncing, NoParams, object),
    Route("eth_capabilities", node.capabilities, NoParams, dict),
    Route("eth_config", state.config, NoParams, dict),
    Route("eth_coinbase", node.coinbase, NoParams, bytes),
    Route("eth_accounts", signing.accounts, NoParams, tuple),
    Route("eth_mining", node.is_mining, NoParams, bool),
    Route("eth_hashrate", node.no_hashrate, NoParams, int),
    Route("eth_protocolVersion", node.protocol_version, NoParams, int),
)

_BLOCKS = (
    Route(
        "eth_getBlockByNumber",
        blocks.by_number,
        blocks.BlockByNumberParams,
        BlockView,
        chain_only=blocks.is_committed,
    ),
    Route(
        "eth_getBlockByHash",
        blocks.by_hash,
        blocks.BlockByHashParams,
        BlockView,
        WHEN_FOUND,
        chain_only=True,
    ),
    Route(
        "eth_getHeaderByNumber",
        blocks.header_by_number,
        blocks.AtNumberParams,
        records.Header,
        chain_only=blocks.is_committed,
    ),
    Route(
        "eth_getHeaderByHash",
        blocks.header_by_hash,
        blocks.BlockHashParams,
        records.Header,
        WHEN_FOUND,
        chain_only=True,
    ),
    Route(
        "eth_getBlockTransactionCountByNumber",
        blocks.count_by_number,
        blocks.AtNumberParams,
        int,
    ),
    Route(
        "eth_getBlockTransactionCountByHash", blocks.count_by_hash, blocks.BlockHashParams, int
    ),
    Route(
        "eth_getBlockReceipts",
        blocks.receipts,
        blocks.BlockParams,
        tuple,
        chain_only=blocks.is_committed,
    ),
    Route(
        "eth_getUncleCountByBlockNumber", blocks.uncles_by_number, blocks.AtNumberParams, int
    ),
    Route("eth_getUncleCountByBlockHash", blocks.uncles_by_hash, blocks.BlockHashParams, int),
    Route(
        "eth_getUncleByBlockNumberAndIndex",
        blocks.uncle_by_number,
        blocks.NumberAndIndexParams,
        BlockView,
    ),
    Route(
        "eth_getUncleByBlockHashAndIndex",
        blocks.uncle_by_hash,
        blocks.HashAndIndexParams,
        BlockView,
    ),
)

_TRANSACTIONS = (
    Route(
        "eth_getTransactionByHash",
        blocks.transaction_by_hash,
        blocks.TransactionParams,
        records.RPCTransaction,
    ),
    Route(
        "eth_getTransactionByBlockNumberAndIndex",
        blocks.transaction_by_number_and_index,
        blocks.NumberAndIndexParams,
        records.RPCTransaction,
        chain_only=blocks.is_committed,
    ),
    Route(
        "eth_getTransactionByBlockHashAndIndex",
        blocks.transaction_by_hash_and_index,
        blocks.HashAndIndexParams,
        records.RPCTransaction,
        WHEN_FOUND,
        chain_only=True,
    ),
    Route(
        "eth_getTransactionReceipt",
        blocks.receipt,
        blocks.TransactionParams,
        Receipt,
        chain_only=True,
    ),
    Route("eth_getTransactionLogs", blocks.transaction_logs, blocks.TransactionParams, tuple),
    Route(
        "eth_getRawTransactionByHash",
        blocks.raw_transaction_by_hash,
        blocks.TransactionParams,
        bytes,
    ),
    Route(
        "eth_getRawTransactionByBlockNumberAndIndex",
        blocks.raw_transaction_by_number_and_index,
        blocks.NumberAndIndexParams,
        bytes,
    ),
    Route(
        "eth_getRawTransactionByBlockHashAndIndex",
        blocks.raw_transaction_by_hash_and_index,
        blocks.HashAndIndexParams,
        bytes,
    ),
    Route(
        "eth_getTransactionBySenderAndNonce",
        account.by_sender_and_nonce,
        account.SenderAndNonceParams,
        records.RPCTransaction,
    ),
    Route(
        "eth_sendRawTransactionSync",
        sending.send_raw_sync,
        sending.RawTransactionSync,
        Receipt,
        writes=True,
    ),
    Route("eth_pendingTransactions", blocks.pending_transactions, NoParams, tuple),
    Route("eth_getPendingTransactions", blocks.pending_transactions, NoParams, tuple),
    Route(
        "eth_sendRawTransaction",
        sending.send_raw,
        sending.RawTransaction,
        bytes,
        writes=True,
    ),
)

_FEES = (
    Route("eth_gasPrice", fees.gas_price, NoParams, int, chain_only=True),
    Route("eth_maxPriorityFeePerGas", fees.priority_fee, NoParams, int, chain_only=True),
    Route("eth_baseFee", fees.base_fee, NoParams, int, chain_only=True),
    Route("eth_blobBaseFee", fees.blob_base_fee, NoParams, int),
    Route(
        "eth_feeHistory",
        fees.fee_history,
        fees.FeeHistory,
        dict,
        chain_only=fees.is_committed,
    ),
)

_LOGS = (
    Route(
        "eth_getLogs",
        logs.get_logs,
        logs.LogQueryParams,
        object,
        chain_only=logs.is_whole,
        reads_index=True,
    ),
    Route("eth_newFilter", filters.new_filter, logs.LogFilterParams, str),
    Route("eth_newBlockFilter", filters.new_block_filter, NoParams, str),
    Route(
        "eth_newPendingTransactionFilter",
        filters.new_pending_filter,
        filters.PendingFilterParams,
        str,
    ),
    Route(
        "eth_getFilterChanges",
        filters.filter_changes,
        filters.FilterIdParams,
        tuple,
    ),
    Route("eth_getFilterLogs", filters.filter_logs, filters.FilterIdParams, tuple),
    Route("eth_uninstallFilter", filters.uninstall, filters.FilterIdParams, bool),
)

_STATE = (
    Route(
        "eth_getBalance",
        state.balance,
        state.AccountParams,
        int,
        chain_only=state.is_settled,
    ),
    Route(
        "eth_getTransactionCount",
        state.transaction_count,
        state.AccountParams,
        int,
        chain_only=state.is_settled,
    ),
    Route(
        "eth_getCode",
        state.code,
        state.AccountParams,
        bytes,
        chain_only=state.is_settled,
    ),
    Route(
        "eth_getStorageAt",
        state.storage_at,
        state.SlotParams,
        bytes,
        chain_only=state.is_settled,
    ),
    Route("eth_getAccount", account.account, state.AccountParams, dict),
    Route("eth_getAccountInfo", account.account_info, state.AccountParams, dict),
    Route("eth_getStorageValues", state.storage_values, state.SlotsParams, dict),
    Route(
        "eth_getProof",
        state.proof,
        state.ProofParams,
        dict,
        chain_only=state.is_settled,
    ),
    Route(
        "eth_call",
        calls.call,
        calls.CallParams,
        bytes,
        chain_only=calls.is_settled,
    ),
    Route(
        "eth_estimateGas",
        calls.estimate_gas,
        calls.EstimateParams,
        int,
        chain_only=calls.is_settled_estimate,
    ),
    Route("eth_fillTransaction", sending.fill, sending.FillParams, dict),
    Route(
        "eth_createAccessList",
        calls.create,
        calls.AccessListParams,
        dict,
        chain_only=calls.is_settled,
    ),
    Route("eth_simulateV1", simulate.simulate, simulate.SimulationParams, tuple),
)

_TXPOOL = (
    Route("txpool_status", node.status, NoParams, dict),
    Route("txpool_content", node.content, NoParams, dict),
    Route("txpool_contentFrom", node.content_from, node.SenderParams, dict),
    Route("txpool_inspect", node.inspect, NoParams, dict),
)

_DEBUG = (
    Route("debug_getRawHeader", debug.header_bytes, blocks.BlockParams, bytes),
    Route("debug_getRawBlock", debug.block_bytes, blocks.BlockParams, bytes),
    Route("debug_getRawReceipts", debug.receipt_bytes, blocks.BlockParams, tuple),
    Route("debug_getHeaderRlp", debug.header_at, debug.BlockNumberParams, bytes),
    Route("debug_getBlockRlp", debug.block_at, debug.BlockNumberParams, bytes),
    Route("debug_printBlock", debug.print_block, debug.BlockNumberParams, str),
    Route("debug_getBadBlocks", debug.bad_blocks, NoParams, tuple),
    Route("debug_codeByHash", account.code_by_hash, account.CodeHashParams, bytes),
    Route("debug_preimage", debug.preimage, debug.PreimageParams, bytes),
    Route("debug_getRawTransactions", debug.transactions_bytes, blocks.BlockParams, tuple),
    Route("debug_getRawTransaction", debug.transaction_bytes, blocks.TransactionParams, bytes),
    Route(
        "debug_traceTransaction",
        debug.transaction,
        debug.TraceTransactionParams,
        jsoncodec.Raw,
    ),
    Route("debug_traceCall", debug.call, debug.TraceCallParams, jsoncodec.Raw),
    Route("debug_traceBlock", debug.block_of_bytes, debug.TraceBytesParams, tuple),
    Route("debug_traceBlockByNumber", debug.block_by_number, debug.TraceNumberParams, tuple),
    Route("debug_traceBlockByHash", debug.block_by_hash, debug.TraceHashParams, tuple),
)

_TRACE = (
    Route("trace_block", parity.block, blocks.BlockParams, jsoncodec.Raw),
    Route("trace_transaction", parity.transaction, blocks.TransactionParams, jsoncodec.Raw),
    Route("trace_get", parity.get_trace, parity.TraceGetParams, jsoncodec.Raw),
    Route("trace_filter", parity.filter_traces, parity.TraceFilterParams, jsoncodec.Raw),
    Route(
        "trace_replayTransaction",
        parity.replay_transaction,
        parity.ReplayTransactionParams,
        jsoncodec.Raw,
    ),
    Route(
        "trace_replayBlockTransactions",
        parity.replay_block,
        parity.ReplayParams,
        jsoncodec.Raw,
    ),
    Route("trace_call", parity.call, parity.TraceCallParams, jsoncodec.Raw),
    Route("trace_callMany", parity.call_many, parity.TraceCallManyParams, jsoncodec.Raw),
    Route("trace_rawTransaction", parity.raw_transaction, parity.TraceRawParams, jsoncodec.Raw),
)

_OTTERSCAN = (
    Route("ots_getApiLevel", otterscan.api_level, NoParams, PlainNumber),
    Route("ots_hasCode", otterscan.has_code, otterscan.HasCodeParams, bool),
    Route("ots_getContractCreator", otterscan.contract_creator, otterscan.AddressParams, dict),
    Route(
        "ots_getTransactionBySenderAndNonce",
        otterscan.by_sender_and_nonce,
        otterscan.NonceParams,
        bytes,
    ),
    Route("ots_traceTransaction", otterscan.trace, blocks.TransactionParams, tuple),
    Route(
        "ots_getInternalOperations",
        otterscan.internal_operations,
        blocks.TransactionParams,
        tuple,
    ),
    Route("ots_getTransactionError", otterscan.error, blocks.TransactionParams, str),
    Route("ots_getBlockDetails", otterscan.block_details, otterscan.NumberParams, dict),
    Route(
        "ots_getBlockDetailsByHash",
        otterscan.block_details_by_hash,
        blocks.BlockHashParams,
        dict,
    ),
    Route(
        "ots_getBlockTransactions",
        otterscan.block_transactions,
        otterscan.BlockTransactionsParams,
        dict,
    ),
    Route(
        "ots_searchTransactionsBefore",
        otterscan.search_before,
        otterscan.SearchParams,
        dict,
        reads_index=True,
    ),
    Route(
        "ots_searchTransactionsAfter",
        otterscan.search_after,
        otterscan.SearchParams,
        dict,
        reads_index=True,
    ),
)

_HISTORY = (
    Route(
        "noderpc_getTransactionsByAddress",
        history.by_address,
        history.HistoryParams,
        dict,
        reads_index=True,
    ),
)

_ERIGON = (
    Route("erigon_blockNumber", blocks.height, blocks.HeightParams, int, chain_only=True),
    Route(
        "erigon_getHeaderByNumber",
        blocks.header_by_number,
        otterscan.NumberParams,
        records.Header,
        chain_only=blocks.is_committed,
    ),
    Route(
        "erigon_getHeaderByHash",
        blocks.header_by_hash,
        blocks.BlockHashParams,
        records.Header,
        WHEN_FOUND,
        chain_only=True,
    ),
)

EVM_ROUTES = RouteTable(
    (
        *tagged("Node", _NODE),
        *tagged("Blocks", _BLOCKS),
        *tagged("Transactions", _TRANSACTIONS),
        *tagged("Fees", _FEES),
        *tagged("Logs and filters", _LOGS),
        *tagged("State and calls", _STATE),
        *tagged("Mempool", _TXPOOL),
        *tagged("Debugging", _DEBUG),
        *tagged("Traces", _TRACE),
        *tagged("Otterscan", _OTTERSCAN),
        *tagged("History", _HISTORY),
        *tagged("Blocks", _ERIGON),
        *(Route(name, needs_state, UnreadParams, str, tag="Refused") for name in _NEED_STATE),
    )
)


RESERVED = EVM_ROUTES + DEV_ROUTES
"""Built-in routes; the app's routes can't have their names."""


def custom_routes(more: Iterable[Route[Any]]) -> RouteTable:
    """Return the app's own routes; raise :exc:`~flask_noderpc.errors.ConfigurationError` for a
    name that can't be served."""
    custom = RouteTable(RESERVED.with_custom(more)[len(RESERVED) :])
    for row in custom:
        namespace, _, method = row.name.partition("_")
        if not namespace or not method:
            raise ConfigurationError(
                "evm_routes: expected a name with a namespace, such as eth_myMethod, got"
                f" {short_repr(row.name)}"
            )
        if row.name in SESSION_METHODS:
            raise ConfigurationError(
                f"evm_routes: expected another name, {row.name!r} is a built-in method"
            )
    return custom


def namespaces_of(enabled: tuple[str, ...], custom: RouteTable) -> tuple[str, ...]:
    """Return the enabled namespaces and the namespaces of the app's routes; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for an unknown namespace."""
    given = dict.fromkeys(row.name.partition("_")[0] for row in custom)
    for name in enabled:
        if name not in NAMESPACES and name not in given:
            known = ", ".join(dict.fromkeys((*NAMESPACES, *given)))
            raise InvalidSetting(f"NODERPC_EVM_API: expected any of {known}, got {name!r}")
    return tuple(dict.fromkeys((*enabled, *(n for n in given if n not in NAMESPACES))))


def routes_of(namespaces: tuple[str, ...], custom: RouteTable, *, dev: bool) -> RouteTable:
    """Return the routes of these namespaces, and of ``rpc``, which is always served.

    With ``dev``, they include the methods that sign and those of development nodes.
    """
    served = {"rpc", *namespaces, *DEV_NAMESPACES}
    rows = (RESERVED if dev else EVM_ROUTES) + custom
    return RouteTable(row for row in rows if row.name.partition("_")[0] in served)
