"""Every method of the EVM layer, one row each, by namespace."""

from __future__ import annotations

from ..errors import ConfigurationError
from ..rpc.params import NoParams
from ..rpc.route import Route, RouteTable
from . import node, state

NAMESPACES = ("eth", "web3", "net", "txpool", "debug")

_NEED_STATE = (
    "eth_getBalance",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getProof",
    "eth_call",
    "eth_estimateGas",
    "eth_createAccessList",
    "eth_simulateV1",
    "debug_traceTransaction",
    "debug_traceBlockByNumber",
    "debug_traceBlockByHash",
    "debug_traceCall",
)

EVM_ROUTES = RouteTable(
    (
        Route("rpc_modules", node.modules, NoParams, dict),
        Route("web3_clientVersion", node.client_version, NoParams, str),
        Route("net_version", node.net_version, NoParams, str),
        Route("net_listening", node.listening, NoParams, bool),
        Route("net_peerCount", node.peer_count, NoParams, int),
        Route("eth_chainId", node.chain_id, NoParams, int),
        Route("eth_blockNumber", node.block_number, NoParams, int),
        *(Route(name, state.needs_state, state.Unread, str) for name in _NEED_STATE),
    )
)


def routes_of(namespaces: tuple[str, ...]) -> RouteTable:
    """The rows of these namespaces, and of ``rpc``, which is always there.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for one that is not known.
    """
    for name in namespaces:
        if name not in NAMESPACES:
            known = ", ".join(NAMESPACES)
            raise ConfigurationError(
                f"NODERPC_EVM_API: no namespace {name!r}; known are {known}"
            )
    wanted = {"rpc", *namespaces}
    return RouteTable(row for row in EVM_ROUTES if row.name.partition("_")[0] in wanted)
