"""The module upgrade: queries and genesis; SDK: x/upgrade.

The chain never has a plan for an upgrade, as no message makes one.
"""

from __future__ import annotations

from types import MappingProxyType

from ...protocol.protobuf import integer, message, string
from ..bank.accounts import module_address
from ..bank.context import Context
from ..bank.errors import TxError
from ..bank.genesis_json import Item
from ..bank.module import Module
from ..bank.queries.request import QueryContext, coded
from .errors import NO_VERSION
from .proto import ROUTES

_STORE, _VERSIONS = b"upgrade/", b"\2"
# Consensus versions of the SDK's modules that every chain has.
_ALWAYS = {"auth": 5, "bank": 4, "consensus": 1, "genutil": 1, "runtime": 0}


def _nothing(ctx: QueryContext) -> bytes:
    return b""


def _versions(ctx: QueryContext) -> bytes:
    name = ctx.request.text(1)
    if not name:
        found = ctx.range(_STORE + _VERSIONS)
        return b"".join(message(1, _version(*each)) for each in found)
    stored = ctx.get(_STORE + _VERSIONS + name.encode())
    if stored is None:
        text = f"x/upgrade: QueryModuleVersions module {name} not found"
        raise coded(TxError(NO_VERSION, text))
    return message(1, _version(name.encode(), stored))


def _version(name: bytes, stored: bytes) -> bytes:
    return string(1, name.decode()) + integer(2, int.from_bytes(stored))


def _authority(ctx: QueryContext) -> bytes:
    return string(1, ctx.codec.show(module_address("gov")))


class UpgradeModule(Module):
    """Consensus versions of the chain's modules."""

    name = "upgrade"
    version = 2
    service = "cosmos.upgrade.v1beta1.Query"
    queries = MappingProxyType(
        {
            "AppliedPlan": _nothing,
            "Authority": _authority,
            "CurrentPlan": _nothing,
            "ModuleVersions": _versions,
            "UpgradedConsensusState": _nothing,
        }
    )
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        own = {each.name: each.version for each in context.environment.modules}
        for name, version in sorted((_ALWAYS | own).items()):
            context.store(_STORE).set(_VERSIONS + name.encode(), version.to_bytes(8))
