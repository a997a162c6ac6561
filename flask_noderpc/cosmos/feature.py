"""A chain of the Cosmos SDK: its application ``bank``, its REST gateway and its services."""

from __future__ import annotations

from ..feature import ApplicationKind, Feature

_BANK = ApplicationKind(
    make="flask_noderpc.cosmos.bank.application:bank",
    dev_accounts="flask_noderpc.cosmos.bank.dev:BankDevAccounts",
    # Old documents have their accounts at the top level.
    genesis_members=frozenset({"auth", "bank", "accounts"}),
    # CosmJS connects to no chain without a block.
    makes_first_block=True,
    # Clients of the Cosmos SDK know no other form of answers.
    defaults={"dialect": "comet-0.38", "rest": True},
)

FEATURE = Feature(
    name="cosmos",
    applications={"bank": _BANK},
    dev_routes="flask_noderpc.cosmos.dev_routes:DEV_ROUTES",
    abci_query="flask_noderpc.cosmos.services:answer",
)
