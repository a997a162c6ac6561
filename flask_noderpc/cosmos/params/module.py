"""The module params: queries; SDK: x/params/keeper/grpc_query.go.

Since SDK 0.47 each module stores its parameters itself, so all subspaces are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from ...protocol.protobuf import message, string
from ..bank.errors import TxError
from ..bank.module import Module
from ..bank.queries.request import QueryContext, coded, invalid
from ..protocol.proto import MESSAGES
from .errors import UNKNOWN_SUBSPACE
from .proto import ROUTES

_NAMES = ("auth", "bank", "crisis", "distribution", "gov", "mint", "slashing", "staking")


def _subspaces(ctx: QueryContext) -> Iterator[str]:
    known = {"auth", "bank", *(each.name for each in ctx.environment.modules)}
    return (name for name in _NAMES if name in known)


def _params(ctx: QueryContext) -> bytes:
    subspace, key = ctx.request.text(1), ctx.request.text(2)
    if not subspace or not key:
        raise invalid("invalid request")
    if subspace not in _subspaces(ctx):
        raise coded(TxError(UNKNOWN_SUBSPACE, subspace))
    return MESSAGES.encode("params.ParamsResponse", param={"subspace": subspace, "key": key})


def _list(ctx: QueryContext) -> bytes:
    return b"".join(message(1, string(1, name)) for name in _subspaces(ctx))


class ParamsModule(Module):
    """Names of the modules that had parameters here, without values."""

    name = "params"
    service = "cosmos.params.v1beta1.Query"
    queries = MappingProxyType({"Params": _params, "Subspaces": _list})
    routes = ROUTES
