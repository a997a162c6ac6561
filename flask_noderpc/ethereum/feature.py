"""Ethereum: its JSON-RPC, and a chain that runs its transactions."""

from __future__ import annotations

from ..feature import ApplicationKind, Feature
from .event_aliases import ALIASES

_EVM = ApplicationKind(
    make="flask_noderpc.ethereum.application.from_settings:evm",
    dev_accounts="flask_noderpc.ethereum.application.dev:EvmDevAccounts",
    blocks_needed="flask_noderpc.ethereum.application.state:blocks_needed",
    genesis_members=frozenset({"alloc"}),
    dev_defaults={"json_rpc_enable": True, "evm_api": "eth,net,web3,txpool,debug,trace"},
    is_dev_default=True,
)

FEATURE = Feature(name="ethereum", applications={"evm": _EVM}, event_aliases=ALIASES)
