"""Settings of Cosmos SDK chains."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.kinds import ADDRESSES, COUNT, SWITCH, TEXT
from ..settings.table import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CosmosSettings:
    """Settings of the application ``bank`` and of the REST gateway."""

    bank_prefix: str = setting(
        "chain",
        "cosmos",
        TEXT,
        "Address prefix of a new chain of the application ``bank``; ignored if its genesis has"
        " addresses.",
        is_of_chain=True,
    )
    bank_coins: str = setting(
        "chain",
        "1000000000000stake,1000000000000token",
        TEXT,
        "Coins of each development account of a new ``bank`` chain with ``NODERPC_DEV``.",
        is_of_chain=True,
    )
    bank_heights: int = setting(
        "chain",
        100,
        COUNT,
        "Number of latest heights at which ``bank`` can be queried and to which it can be"
        " rewound.",
        is_of_chain=True,
    )
    rest: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to serve the REST gateway of a Cosmos SDK chain, at ``/cosmos/…``. With"
        " ``noderpc start --application bank`` the default is true.",
        flags=("--api.enable",),
    )
    api_address: str = setting(
        "server",
        "tcp://127.0.0.1:1317",
        ADDRESSES,
        "Addresses at which ``noderpc start`` serves only the REST gateway, if"
        " ``NODERPC_REST`` is true.",
        flags=("--api.address",),
    )
