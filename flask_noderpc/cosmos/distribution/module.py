"""The module distribution, with the interface of modules."""

from __future__ import annotations

from types import MappingProxyType

from ..bank.context import Context
from ..bank.genesis_json import Item
from ..bank.module import Module
from ..staking.hooks import StakingHooks
from . import genesis, rewards
from .messages import HANDLERS
from .proto import ROUTES
from .queries import METHODS
from .state import ACCOUNT, Distribution


class DistributionModule(Module, StakingHooks):
    """Rewards of delegators, commission of validators, and the coins of the community."""

    name = "distribution"
    version = 3
    service = "cosmos.distribution.v1beta1.Query"
    accounts = MappingProxyType({ACCOUNT: ()})
    handlers = HANDLERS
    queries = METHODS
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        genesis.init(context, state)

    def begin_block(self, context: Context) -> None:
        distribution, block = Distribution(context), context.environment.block
        if context.environment.height > 1:
            rewards.allocate(distribution, block.votes)
            rewards.pay_external_pool(distribution)
        distribution.set_proposer(block.proposer)

    def after_validator_created(self, context: Context, operator: bytes) -> None:
        distribution = Distribution(context)
        distribution.staking.validator(operator)
        rewards.begin_validator(distribution, operator)

    def after_validator_removed(
        self, context: Context, address: bytes, operator: bytes, *, is_strict: bool
    ) -> None:
        rewards.end_validator(Distribution(context), operator, is_strict=is_strict)

    def before_validator_slashed(
        self, context: Context, operator: bytes, fraction: int
    ) -> None:
        rewards.record_slash(Distribution(context), operator, fraction)

    def before_delegation_created(
        self, context: Context, delegator: bytes, operator: bytes
    ) -> None:
        distribution = Distribution(context)
        rewards.end_period(distribution, distribution.staking.validator(operator))

    def before_delegation_modified(
        self, context: Context, delegator: bytes, operator: bytes, *, is_strict: bool
    ) -> None:
        distribution = Distribution(context)
        validator = distribution.staking.validator(operator)
        delegation = distribution.staking.delegation(delegator, operator)
        to = rewards.destination(distribution, delegator, is_strict=is_strict)
        rewards.withdraw(distribution, validator, delegation, to)
        rewards.report_redirection(
            distribution, to, validator.operator_address, delegation.delegator_address
        )

    def after_delegation_modified(
        self, context: Context, delegator: bytes, operator: bytes
    ) -> None:
        rewards.begin_delegation(Distribution(context), delegator, operator)
