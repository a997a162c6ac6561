"""Ethereum: its JSON-RPC, and a chain that runs its transactions."""

from __future__ import annotations

from ..feature import Feature, HitIndex
from .event_aliases import ALIASES

# Ethermint emits the first for each Ethereum transaction, and the second for its logs.
_INDEX = HitIndex(
    event_types=frozenset(("ethereum_tx", "tx_log")), hits="flask_noderpc.ethereum.index:hits"
)

FEATURE = Feature(name="ethereum", event_aliases=ALIASES, hit_indexes={"evm": _INDEX})
