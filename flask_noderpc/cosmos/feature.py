"""Cosmos SDK: the application ``bank``, the REST gateway, and the SDK's query services."""

from __future__ import annotations

from ..feature import Api, ApplicationKind, Feature, Surface
from .settings import CosmosSettings

_BANK = ApplicationKind(
    make="flask_noderpc.cosmos.bank.application:bank",
    warn="flask_noderpc.cosmos.bank.genesis_accounts:warn",
    txs="transactions of the Cosmos SDK",
    dev_accounts="flask_noderpc.cosmos.bank.dev:BankDevAccounts",
    # Old genesis documents have "accounts" as a member of their own.
    genesis_members=frozenset({"auth", "bank", "accounts"}),
    # CosmJS does not connect to a chain without a block.
    makes_first_block=True,
    # Clients of the Cosmos SDK only understand the responses of this CometBFT version.
    defaults={"dialect": "comet-0.38", "rest": True},
)

_REST = Api(
    setting="rest",
    layer="flask_noderpc.cosmos.rest.view:RestLayer",
    surfaces=(
        Surface(
            name="rest",
            title="REST",
            address="api_address",
            endpoint="rest_cosmos",
            middleware="flask_noderpc.cosmos.rest.view:RestMiddleware",
        ),
    ),
)

FEATURE = Feature(
    name="cosmos",
    settings=CosmosSettings,
    apis=(_REST,),
    applications={"bank": _BANK},
    starts={"--dev --application bank": "accounts and coins of the Cosmos SDK, for tests"},
    routes="flask_noderpc.cosmos.history:ROUTES",
    routes_setting="rest",
    dev_routes="flask_noderpc.cosmos.dev_routes:DEV_ROUTES",
    commands=("flask_noderpc.cosmos.genesis_command",),
    abci_query="flask_noderpc.cosmos.services:answer",
    account_facts="flask_noderpc.cosmos.facts:account_facts",
    tx_facts="flask_noderpc.cosmos.tx_facts:tx_facts",
    tx_line="flask_noderpc.cosmos.tx_facts:tx_line",
)
