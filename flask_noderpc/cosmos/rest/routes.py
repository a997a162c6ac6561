"""Paths of the gateway, and the gRPC methods that they call.

SDK: the ``google.api.http`` options in proto/cosmos.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PATHS = """
GET /cosmos/auth/v1beta1/account_info/{address} auth AccountInfo
GET /cosmos/auth/v1beta1/accounts auth Accounts
GET /cosmos/auth/v1beta1/accounts/{address} auth Account
GET /cosmos/auth/v1beta1/address_by_id/{id} auth AccountAddressByID
GET /cosmos/auth/v1beta1/bech32 auth Bech32Prefix
GET /cosmos/auth/v1beta1/module_accounts auth ModuleAccounts
GET /cosmos/auth/v1beta1/module_accounts/{name} auth ModuleAccountByName
GET /cosmos/auth/v1beta1/params auth Params
GET /cosmos/bank/v1beta1/balances/{address} bank AllBalances
GET /cosmos/bank/v1beta1/balances/{address}/by_denom bank Balance
GET /cosmos/bank/v1beta1/denom_owners/{denom=**} bank DenomOwners
GET /cosmos/bank/v1beta1/denom_owners_by_query bank DenomOwnersByQuery
GET /cosmos/bank/v1beta1/denoms_metadata bank DenomsMetadata
GET /cosmos/bank/v1beta1/denoms_metadata/{denom=**} bank DenomMetadata
GET /cosmos/bank/v1beta1/denoms_metadata_by_query_string bank DenomMetadataByQueryString
GET /cosmos/bank/v1beta1/params bank Params
GET /cosmos/bank/v1beta1/send_enabled bank SendEnabled
GET /cosmos/bank/v1beta1/spendable_balances/{address} bank SpendableBalances
GET /cosmos/bank/v1beta1/spendable_balances/{address}/by_denom bank SpendableBalanceByDenom
GET /cosmos/bank/v1beta1/supply bank TotalSupply
GET /cosmos/bank/v1beta1/supply/by_denom bank SupplyOf
GET /cosmos/base/node/v1beta1/config node Config
GET /cosmos/base/node/v1beta1/status node Status
GET /cosmos/base/tendermint/v1beta1/abci_query tendermint ABCIQuery
GET /cosmos/base/tendermint/v1beta1/blocks/latest tendermint GetLatestBlock
GET /cosmos/base/tendermint/v1beta1/blocks/{height} tendermint GetBlockByHeight
GET /cosmos/base/tendermint/v1beta1/node_info tendermint GetNodeInfo
GET /cosmos/base/tendermint/v1beta1/syncing tendermint GetSyncing
GET /cosmos/base/tendermint/v1beta1/validatorsets/latest tendermint GetLatestValidatorSet
GET /cosmos/base/tendermint/v1beta1/validatorsets/{height} tendermint GetValidatorSetByHeight
GET /cosmos/consensus/v1/params consensus Params
GET /cosmos/distribution/v1beta1/params distribution Params
GET /cosmos/mint/v1beta1/params mint Params
GET /cosmos/staking/v1beta1/params staking Params
GET /cosmos/staking/v1beta1/pool staking Pool
GET /cosmos/staking/v1beta1/validators staking Validators
GET /cosmos/staking/v1beta1/validators/{validator_addr} staking Validator
GET /cosmos/tx/v1beta1/txs tx GetTxsEvent
GET /cosmos/tx/v1beta1/txs/block/{height} tx GetBlockWithTxs
GET /cosmos/tx/v1beta1/txs/{hash} tx GetTx
POST /cosmos/tx/v1beta1/simulate tx Simulate
POST /cosmos/tx/v1beta1/txs tx BroadcastTx
"""
_SERVICES = {
    "consensus": "/cosmos.consensus.v1.Query",
    "node": "/cosmos.base.node.v1beta1.Service",
    "tendermint": "/cosmos.base.tendermint.v1beta1.Service",
    "tx": "/cosmos.tx.v1beta1.Service",
}
_PARAMETER = re.compile(r"\{(\w+)(=\*\*)?\}")

BROADCAST = f"{_SERVICES['tx']}/BroadcastTx"
"""The method that sends a transaction, which is not a query."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the gateway, and the gRPC method that it calls."""

    http_method: str
    pattern: re.Pattern[str]
    path: str
    """Path of the gRPC method, which is also its ``abci_query`` path."""
    request: str
    """Name of the request's protobuf message."""
    response: str
    """Name of the response's protobuf message."""


def _routes() -> Iterator[Route]:
    for line in _PATHS.split("\n")[1:-1]:
        http_method, template, module, name = line.split()
        service = _SERVICES.get(module, f"/cosmos.{module}.v1beta1.Query")
        pattern = _PARAMETER.sub(
            lambda found: f"(?P<{found[1]}>{'.*' if found[2] else '[^/]*'})", template
        )
        names = f"{module}.{name}Request", f"{module}.{name}Response"
        yield Route(http_method, re.compile(pattern), f"{service}/{name}", *names)


ROUTES = tuple(_routes())
"""Routes of the gateway; the first one that matches a request is used."""


def find(http_method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a request and the parameters in its path; ``None`` if it has no
    route."""
    for route in ROUTES:
        if route.http_method == http_method:
            found = route.pattern.fullmatch(path)
            if found is not None:
                return route, found.groupdict()
    return None
