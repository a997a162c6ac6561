"""ABCI queries to the application."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.rpc_results import ResultABCIInfo, ResultABCIQuery
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..wire.params import Flag, Int64, QueryData, Text


def abci_info(ctx: Context, params: NoParams) -> ResultABCIInfo:
    """Name, version and last block of the application."""
    return ResultABCIInfo(ctx.backend.application.info())


def is_chain_only(ctx: Context, params: Params) -> bool:
    """True if the application's responses depend on the chain alone."""
    return ctx.backend.application.is_chain_only


@dataclass(frozen=True, slots=True)
class Query(Params):
    """Parameters of ``abci_query``."""

    path: str = param(Text(), default="", doc="Path to the data, defined by the application.")
    data: bytes = param(QueryData(), default=b"", doc="Data of the query, often a key.")
    height: int = param(Int64(), default=0, doc="Height of the queried state; 0 is the latest.")
    prove: bool = param(Flag(), default=False, doc="Include a proof.")


def abci_query(ctx: Context, params: Query) -> ResultABCIQuery:
    """The application's response to a query."""
    return ResultABCIQuery(
        ctx.backend.application.query(params.path, params.data, params.height, params.prove)
    )
