"""Settings of chains of the Cosmos SDK."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.kinds import ADDRESSES, COUNT, SWITCH, TEXT
from ..settings.table import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CosmosSettings:
    """Settings of a chain of the Cosmos SDK, and of its REST gateway."""

    bank_prefix: str = setting(
        "chain",
        "cosmos",
        TEXT,
        "Prefix of the addresses of a new chain of the application ``bank``, unless its genesis"
        " has addresses.",
        is_of_chain=True,
    )
    bank_coins: str = setting(
        "chain",
        "1000000000000stake,1000000000000token",
        TEXT,
        "Coins that ``NODERPC_DEV`` gives each account of a new chain of ``bank``.",
        is_of_chain=True,
    )
    bank_heights: int = setting(
        "chain",
        100,
        COUNT,
        "Number of latest heights of ``bank`` that can be queried and rewound to.",
        is_of_chain=True,
    )
    rest: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to serve the REST gateway of a chain of the Cosmos SDK, at ``/cosmos/…``. The"
        " default of ``noderpc start --application bank`` is true.",
        flags=("--api.enable",),
    )
    api_address: str = setting(
        "server",
        "tcp://127.0.0.1:1317",
        ADDRESSES,
        "Addresses where ``noderpc start`` serves the REST gateway alone, if ``NODERPC_REST``"
        " brings it.",
        flags=("--api.address",),
    )
