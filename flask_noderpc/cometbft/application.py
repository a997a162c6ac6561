"""The application behind the chain."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.rpc_results import ResultABCIInfo, ResultABCIQuery
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..wire.params import Flag, Int64, QueryData, Text


def abci_info(ctx: Context, params: NoParams) -> ResultABCIInfo:
    """The application's introduction."""
    return ResultABCIInfo(ctx.backend.app_info())


def is_chain_only(ctx: Context, params: Params) -> bool:
    """Return true if the application's answers depend on the chain alone."""
    return ctx.backend.application_is_chain_only()


@dataclass(frozen=True, slots=True)
class Query(Params):
    """Of ``abci_query``."""

    path: str = param(Text(), default="", doc="Path to the data, defined by the application.")
    data: bytes = param(QueryData(), default=b"", doc="The data asked for, often a key.")
    height: int = param(Int64(), default=0, doc="Height of the state to ask; 0 is the latest.")
    prove: bool = param(Flag(), default=False, doc="Whether to add a proof.")


def abci_query(ctx: Context, params: Query) -> ResultABCIQuery:
    """The application's answer to a query."""
    return ResultABCIQuery(
        ctx.backend.query(params.path, params.data, params.height, params.prove)
    )
