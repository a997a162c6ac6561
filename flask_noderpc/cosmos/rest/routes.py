"""Paths of the gateway, and the gRPC methods that they call.

SDK: the ``google.api.http`` options in proto/cosmos.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from ...backends.base.capabilities import Capability
from ...errors import InvalidSetting, short_repr
from ..authz import proto as authz
from ..distribution import proto as distribution
from ..evidence import proto as evidence
from ..feegrant import proto as feegrant
from ..gov import proto as gov
from ..mint import proto as mint
from ..params import proto as params
from ..protocol.proto import MESSAGES
from ..protocolpool import proto as protocolpool
from ..slashing import proto as slashing
from ..staking import proto as staking
from ..upgrade import proto as upgrade
from ..vesting import proto as vesting

_PATHS = """
GET /cosmos/auth/v1beta1/account_info/{address} auth AccountInfo
GET /cosmos/auth/v1beta1/accounts auth Accounts
GET /cosmos/auth/v1beta1/accounts/{address} auth Account
GET /cosmos/auth/v1beta1/address_by_id/{id} auth AccountAddressByID
GET /cosmos/auth/v1beta1/bech32 auth Bech32Prefix
GET /cosmos/auth/v1beta1/bech32/{address_bytes} auth AddressBytesToString
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
GET /cosmos/base/reflection/v1beta1/app_descriptor/authn descriptor GetAuthnDescriptor
GET /cosmos/base/reflection/v1beta1/app_descriptor/chain descriptor GetChainDescriptor
GET /cosmos/base/reflection/v1beta1/app_descriptor/codec descriptor GetCodecDescriptor
GET /cosmos/base/reflection/v1beta1/app_descriptor/configuration descriptor \
GetConfigurationDescriptor
GET /cosmos/base/reflection/v1beta1/app_descriptor/query_services descriptor \
GetQueryServicesDescriptor
GET /cosmos/base/reflection/v1beta1/app_descriptor/tx_descriptor descriptor GetTxDescriptor
GET /cosmos/base/reflection/v1beta1/interfaces reflection ListAllInterfaces
GET /cosmos/base/reflection/v1beta1/interfaces/{interface_name}/implementations reflection \
ListImplementations
GET /cosmos/base/tendermint/v1beta1/abci_query tendermint ABCIQuery
GET /cosmos/base/tendermint/v1beta1/blocks/latest tendermint GetLatestBlock
GET /cosmos/base/tendermint/v1beta1/blocks/{height} tendermint GetBlockByHeight
GET /cosmos/base/tendermint/v1beta1/node_info tendermint GetNodeInfo
GET /cosmos/base/tendermint/v1beta1/syncing tendermint GetSyncing
GET /cosmos/base/tendermint/v1beta1/validatorsets/latest tendermint GetLatestValidatorSet
GET /cosmos/base/tendermint/v1beta1/validatorsets/{height} tendermint GetValidatorSetByHeight
GET /cosmos/consensus/v1/params consensus Params
GET /cosmos/tx/v1beta1/txs tx GetTxsEvent
GET /cosmos/tx/v1beta1/txs/block/{height} tx GetBlockWithTxs
GET /cosmos/tx/v1beta1/txs/{hash} tx GetTx
POST /cosmos/tx/v1beta1/decode tx TxDecode
POST /cosmos/tx/v1beta1/decode/amino tx TxDecodeAmino
POST /cosmos/tx/v1beta1/encode tx TxEncode
POST /cosmos/tx/v1beta1/encode/amino tx TxEncodeAmino
POST /cosmos/tx/v1beta1/simulate tx Simulate
POST /cosmos/tx/v1beta1/txs tx BroadcastTx
"""
_SERVICES = {
    "consensus": "cosmos.consensus.v1.Query",
    "descriptor": "cosmos.base.reflection.v2alpha1.ReflectionService",
    "node": "cosmos.base.node.v1beta1.Service",
    "protocolpool": "cosmos.protocolpool.v1.Query",
    "reflection": "cosmos.base.reflection.v1beta1.ReflectionService",
    "tendermint": "cosmos.base.tendermint.v1beta1.Service",
    "tx": "cosmos.tx.v1beta1.Service",
}
_MODULES = {
    "authz": authz.ROUTES,
    "distribution": distribution.ROUTES,
    "evidence": evidence.ROUTES,
    "feegrant": feegrant.ROUTES,
    "mint": mint.ROUTES,
    "params": params.ROUTES,
    "protocolpool": protocolpool.ROUTES,
    "slashing": slashing.ROUTES,
    "staking": staking.ROUTES,
    "vesting": vesting.ROUTES,
    "upgrade": upgrade.ROUTES,
}
_PARAMETER = re.compile(r"\{(\w+)(=\*\*)?\}")
_ROW = re.compile(r"(GET|POST) ((?:/(?:[\w-]+|\{\w+(?:=\*\*)?\})){2,}) (\w+)", re.ASCII)

BROADCAST = f"/{_SERVICES['tx']}/BroadcastTx"
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

    @property
    def prefix(self) -> str:
        """First segment of the path."""
        return self.pattern.pattern.split("/")[1]


def parse(module: str, service: str, rows: str) -> Iterator[Route]:
    """Yield the routes of a module: rows such as ``GET /cosmos/mint/v1beta1/params Params``,
    whose last word is a method of the gRPC service.

    The names of the method's messages are ``module.MethodRequest`` and
    ``module.MethodResponse``. Raise :exc:`~flask_noderpc.errors.InvalidSetting` for another
    row.
    """
    for line in filter(None, map(str.strip, rows.split("\n"))):
        row = _ROW.fullmatch(line)
        if row is None:
            raise InvalidSetting(
                f"module {module}: expected REST rows such as"
                f" 'GET /acme/vaults/v1/vaults/{{owner}} Vault', got {short_repr(line)}"
            )
        http_method, template, name = row.groups()
        pattern = _PARAMETER.sub(
            lambda found: f"(?P<{found[1]}>{'.*' if found[2] else '[^/]*'})", template
        )
        names = f"{module}.{name}Request", f"{module}.{name}Response"
        yield Route(http_method, re.compile(pattern), f"/{service}/{name}", *names)


def of_module(module: str, service: str, rows: str, queries: Container[str]) -> Iterator[Route]:
    """Yield the routes of a user's module, whose ``queries`` have these names; raise
    :exc:`~flask_noderpc.errors.InvalidSetting` for a row that could not be served."""
    for route in parse(module, service, rows):
        method = route.path.rpartition("/")[2]
        missing = [each for each in (route.request, route.response) if each not in MESSAGES]
        if method not in queries or missing:
            raise InvalidSetting(
                f"module {module}: expected a query {method}, and the declared messages"
                f" {route.request} and {route.response}, as REST rows name it"
            )
        fields = {field.name for field in MESSAGES[route.request]}
        for name in route.pattern.groupindex.keys() - fields:
            raise InvalidSetting(
                f"module {module}: expected parameters that are fields of {route.request}, got"
                f" {name} in a REST row"
            )
        yield route


def _service(module: str) -> str:
    return _SERVICES.get(module, f"cosmos.{module}.v1beta1.Query")


def _routes() -> Iterator[Route]:
    for line in _PATHS.split("\n")[1:-1]:
        http_method, template, module, name = line.split()
        yield from parse(module, _service(module), f"{http_method} {template} {name}")
    for module, rows in _MODULES.items():
        yield from parse(module, _service(module), rows)
    yield from parse("gov", "cosmos.gov.v1.Query", gov.ROUTES)
    yield from parse("gov.v1beta1", "cosmos.gov.v1beta1.Query", gov.LEGACY_ROUTES)


ROUTES = tuple(_routes())
"""Routes of the gateway of a chain of the SDK."""

REST_ROUTES: Capability[tuple[Route, ...]] = Capability("this chain has no routes of its own")
"""Routes of the modules that a user has added to an application."""


def find(
    http_method: str, path: str, routes: Iterable[Route] = ROUTES
) -> tuple[Route, dict[str, str]] | None:
    """Return the first route that matches a request, and the parameters in its path; ``None``
    if it has no route."""
    for route in routes:
        if route.http_method == http_method:
            found = route.pattern.fullmatch(path)
            if found is not None:
                return route, found.groupdict()
    return None
