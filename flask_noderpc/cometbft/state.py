"""Validators and consensus parameters."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.rpc_results import ResultConsensusParams, ValidatorPage
from ..jsonrpc.context import Context
from ..jsonrpc.params import param
from ..wire.params import Int
from .heights import AtHeight, page_slice, per_page, state_height


@dataclass(frozen=True, slots=True)
class PageAtHeight(AtHeight):
    """Parameters of ``validators``."""

    page: int | None = param(Int(), default=None, doc="Page to return, counted from 1.")
    per_page: int | None = param(
        Int(), default=None, doc="Validators on a page; 30 when omitted, at most 100."
    )


def validators(ctx: Context, params: PageAtHeight) -> ValidatorPage:
    """Validator set at a height, in the order in which it is hashed."""
    height = state_height(ctx.backend, params.height)
    members = ctx.backend.validators(height).validators
    chosen = page_slice(len(members), params.page, per_page(params.per_page))
    return ValidatorPage(height, members[chosen], len(members))


def consensus_params(ctx: Context, params: AtHeight) -> ResultConsensusParams:
    """The consensus parameters in force at a height."""
    height = state_height(ctx.backend, params.height)
    return ResultConsensusParams(height, ctx.backend.consensus_params(height))
