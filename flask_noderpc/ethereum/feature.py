"""Ethereum: its JSON-RPC, and a chain that executes its transactions."""

from __future__ import annotations

from ..feature import Api, ApplicationKind, Feature, HitIndex, Surface
from .api import DEV_NAMESPACES, NAMESPACES
from .event_aliases import ALIASES
from .settings import EthereumSettings

_EVM = ApplicationKind(
    make="flask_noderpc.ethereum.application.from_settings:evm",
    dev_accounts="flask_noderpc.ethereum.application.dev:EvmDevAccounts",
    executor="flask_noderpc.ethereum.application.commands:at_start",
    # The next block needs the state of the latest one, and BLOCKHASH reads 256 before that.
    state_key=b"evm",
    blocks_needed=257,
    genesis_members=frozenset({"alloc"}),
    dev_defaults={
        "json_rpc_enable": True,
        "evm_api": ",".join(NAMESPACES),
    },
    is_dev_default=True,
)

# Ethermint emits ``ethereum_tx`` for each Ethereum transaction, and ``tx_log`` for its logs.
_INDEX = HitIndex(
    event_types=frozenset(("ethereum_tx", "tx_log")), hits="flask_noderpc.ethereum.index:hits"
)

_TLS = ("json_rpc_tls_cert_file", "json_rpc_tls_key_file")
_API = Api(
    setting="json_rpc_enable",
    layer="flask_noderpc.ethereum.rpc.layer:EvmLayer",
    prefixes=tuple(f"{name}_" for name in (*NAMESPACES, *DEV_NAMESPACES)),
    rows="evm_routes",
    drives_chain=True,
    about="flask_noderpc.ethereum.api:about",
    clients="flask_noderpc.ethereum.api:clients",
    check="flask_noderpc.ethereum.api:check_names",
    surfaces=(
        Surface(
            name="evm",
            title="EVM JSON-RPC",
            address="json_rpc_address",
            tls=_TLS,
            endpoint="evm",
            is_rpc=True,
        ),
        Surface(
            name="evm_ws",
            title="EVM websocket",
            address="json_rpc_ws_address",
            tls=_TLS,
            endpoint="evm_websocket",
            scheme="ws",
        ),
    ),
)

FEATURE = Feature(
    name="ethereum",
    settings=EthereumSettings,
    title="The EVM layer",
    apis=(_API,),
    applications={"evm": _EVM},
    starts={"--dev": "Ethereum's transactions and funded accounts, for tests"},
    event_aliases=ALIASES,
    hit_indexes={"evm": _INDEX},
    tx_facts="flask_noderpc.ethereum.facts.txs:tx_facts",
    tx_line="flask_noderpc.ethereum.facts.lines:tx_line",
    other_hashes="flask_noderpc.ethereum.protocol.execution:transaction_hashes",
)
