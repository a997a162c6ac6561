"""Ethereum: its JSON-RPC, and a chain that runs its transactions."""

from __future__ import annotations

from ..feature import ApplicationKind, Feature, HitIndex
from .event_aliases import ALIASES

_EVM = ApplicationKind(
    make="flask_noderpc.ethereum.application.from_settings:evm",
    dev_accounts="flask_noderpc.ethereum.application.dev:EvmDevAccounts",
    blocks_needed="flask_noderpc.ethereum.application.state:blocks_needed",
    genesis_members=frozenset({"alloc"}),
    dev_defaults={"json_rpc_enable": True, "evm_api": "eth,net,web3,txpool,debug,trace"},
    is_dev_default=True,
)

# Ethermint emits the first for each Ethereum transaction, and the second for its logs.
_INDEX = HitIndex(
    event_types=frozenset(("ethereum_tx", "tx_log")), hits="flask_noderpc.ethereum.index:hits"
)

FEATURE = Feature(
    name="ethereum",
    applications={"evm": _EVM},
    event_aliases=ALIASES,
    hit_indexes={"evm": _INDEX},
    other_hashes="flask_noderpc.ethereum.protocol.execution:transaction_hashes",
)
