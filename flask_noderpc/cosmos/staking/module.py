"""The module staking, with the interface of modules."""

from __future__ import annotations

from types import MappingProxyType

from ..bank.context import Context
from ..bank.genesis_json import Item
from ..bank.module import Module
from . import blocks, genesis, validators
from .messages import HANDLERS
from .proto import ROUTES
from .queries import METHODS
from .state import BONDED_POOL, NOT_BONDED_POOL, Staking


class StakingModule(Module):
    """Validators, delegations and their unbonding."""

    name = "staking"
    version = 5
    service = "cosmos.staking.v1beta1.Query"
    accounts = MappingProxyType(
        {BONDED_POOL: ("burner", "staking"), NOT_BONDED_POOL: ("burner", "staking")}
    )
    handlers = HANDLERS
    queries = METHODS
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        genesis.init(context, state)

    def end_genesis(self, context: Context) -> None:
        context.validator_updates += validators.apply_powers(Staking(context))

    def begin_block(self, context: Context) -> None:
        blocks.begin(Staking(context))

    def end_block(self, context: Context) -> None:
        blocks.end(Staking(context))
