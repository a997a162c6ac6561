"""Rewards of validators and delegators, by the F1 algorithm; SDK:
x/distribution/keeper/allocation.go, delegation.go and validator.go.

The rewards of a validator are divided into periods, which end when a delegation changes. The
rewards of a delegation are its tokens times the rewards for each token between two periods.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bank.accounts import FEE_COLLECTOR
from ..bank.balances import event
from ..bank.consensus import VoteInfo
from ..bank.errors import UNAUTHORIZED, TxError
from ..protocol import coins, dec_coins, decimals
from ..protocol.coins import Coin, Coins
from ..protocol.dec_coins import DecCoins
from ..staking.records import Delegation, Validator
from .errors import NO_DELEGATION_INFO, NO_VALIDATOR_INFO
from .records import (
    AccumulatedCommission,
    CurrentRewards,
    FeePool,
    HistoricalRewards,
    OutstandingRewards,
    SlashEvent,
    StartingInfo,
)
from .state import ACCOUNT, Distribution

_COMMUNITY_POOL = "community_pool"
# Denomination of the zero coin that stands for no rewards in events.
_NO_REWARDS = (Coin("stake", 0),)
# Differences by rounding that are tolerated, in units of 10^-18.
_MARGIN = 3


def allocate(distribution: Distribution, votes: tuple[VoteInfo, ...]) -> None:
    """Distribute the fees of the last block to the validators that were to sign it, by their
    powers, and to the community."""
    context, staking = distribution.context, distribution.staking
    collected = context.balances.all_of(context.accounts.module(FEE_COLLECTOR))
    context.balances.send_between_modules(FEE_COLLECTOR, ACCOUNT, collected)
    fees, pool = dec_coins.of(collected), distribution.fee_pool()
    total, remaining = sum(vote.power for vote in votes), fees
    if total:
        tax = distribution.params().community_tax
        shared = dec_coins.mul_truncate(fees, decimals.ONE - tax)
        for vote in votes:
            validator = staking.find_by_consensus_address(vote.address)
            if validator is None:
                continue
            fraction = decimals.quo_truncate(decimals.of(vote.power), decimals.of(total))
            reward = dec_coins.mul_truncate(shared, fraction)
            allocate_to(distribution, validator, reward)
            remaining = dec_coins.subtract(remaining, reward)
    distribution.set_fee_pool(FeePool([*dec_coins.add(pool.community_pool, remaining)]))


def pay_external_pool(distribution: Distribution) -> None:
    """Send the community's coins to the module that keeps them, if there is one."""
    name = distribution.external_pool
    if not name:
        return
    pool = distribution.fee_pool().community_pool
    if any(coin.amount for coin in pool):
        paid, rest = dec_coins.truncate(pool)
        distribution.context.balances.send_between_modules(ACCOUNT, name, paid)
        distribution.set_fee_pool(FeePool([*rest]))


def allocate_to(distribution: Distribution, validator: Validator, tokens: DecCoins) -> None:
    """Give a validator its commission, and its delegators the rest."""
    operator = distribution.staking.operator(validator)
    commission = dec_coins.mul(tokens, validator.commission.commission_rates.rate)
    shared = dec_coins.subtract(tokens, commission)
    _emit(distribution, "commission", commission, validator)
    own = distribution.commission(operator)
    own.commission = [*dec_coins.add(own.commission, commission)]
    distribution.set_commission(operator, own)
    current = distribution.current(operator)
    current.rewards = [*dec_coins.add(current.rewards, shared)]
    distribution.set_current(operator, current)
    _emit(distribution, "rewards", tokens, validator)
    outstanding = distribution.outstanding(operator)
    outstanding.rewards = [*dec_coins.add(outstanding.rewards, tokens)]
    distribution.set_outstanding(operator, outstanding)


def _emit(
    distribution: Distribution, kind: str, amount: DecCoins, validator: Validator
) -> None:
    distribution.context.events.append(
        event(kind, amount=dec_coins.show(amount), validator=validator.operator_address)
    )


def begin_validator(distribution: Distribution, operator: bytes) -> None:
    """Begin the first period of a new validator."""
    distribution.set_historical(operator, 0, HistoricalRewards(reference_count=1))
    distribution.set_current(operator, CurrentRewards(period=1))
    distribution.set_commission(operator, AccumulatedCommission())
    distribution.set_outstanding(operator, OutstandingRewards())


def end_period(distribution: Distribution, validator: Validator) -> int:
    """End the current period of a validator, and return its number."""
    operator = distribution.staking.operator(validator)
    current = distribution.current(operator)
    if not current.period:
        text = f"no current rewards for validator {validator.operator_address}"
        raise TxError(NO_VALIDATOR_INFO, text)
    if validator.tokens:
        tokens = decimals.of(validator.tokens)
        ratio = dec_coins.quo_truncate(current.rewards, tokens)
    else:
        # Without tokens there are no rewards for each of them; the community gets them.
        pool = distribution.fee_pool()
        outstanding = distribution.outstanding(operator)
        pool.community_pool = [*dec_coins.add(pool.community_pool, current.rewards)]
        outstanding.rewards = [*dec_coins.subtract(outstanding.rewards, current.rewards)]
        distribution.set_fee_pool(pool)
        distribution.set_outstanding(operator, outstanding)
        ratio = ()
    before = distribution.historical(operator, current.period - 1).cumulative_reward_ratio
    _release(distribution, operator, current.period - 1)
    total = HistoricalRewards([*dec_coins.add(before, ratio)], 1)
    distribution.set_historical(operator, current.period, total)
    distribution.set_current(operator, CurrentRewards(period=current.period + 1))
    return current.period


def _retain(distribution: Distribution, operator: bytes, period: int) -> None:
    """Keep the record of a period for one more purpose."""
    historical = distribution.historical(operator, period)
    historical.reference_count += 1
    if historical.reference_count > 2:
        raise OverflowError("reference count should never exceed 2")
    distribution.set_historical(operator, period, historical)


def _release(distribution: Distribution, operator: bytes, period: int) -> None:
    """Remove the record of a period if it was needed for nothing else."""
    historical = distribution.historical(operator, period)
    if not historical.reference_count:
        raise OverflowError("cannot set negative reference count")
    historical.reference_count -= 1
    distribution.set_historical(operator, period, historical)


def record_slash(distribution: Distribution, operator: bytes, fraction: int) -> None:
    """End a period of a validator whose tokens will be slashed."""
    validator = distribution.staking.validator(operator)
    period = end_period(distribution, validator)
    _retain(distribution, operator, period)
    height = distribution.context.environment.height
    distribution.set_slash_event(operator, height, period, SlashEvent(period, fraction))


def begin_delegation(distribution: Distribution, delegator: bytes, operator: bytes) -> None:
    """Begin the rewards of a delegation with the period that has just ended."""
    staking = distribution.staking
    period = distribution.current(operator).period - 1
    _retain(distribution, operator, period)
    validator = staking.validator(operator)
    shares = staking.delegation(delegator, operator).shares
    starting = StartingInfo(
        period, validator.tokens_of_truncated(shares), distribution.context.environment.height
    )
    distribution.set_starting_info(operator, delegator, starting)


def calculate(
    distribution: Distribution, validator: Validator, delegation: Delegation, period: int
) -> DecCoins:
    """Return the rewards of a delegation up to the end of a period."""
    staking = distribution.staking
    delegator = staking.parse(delegation.delegator_address)
    operator = staking.parse_operator(delegation.validator_address)
    starting = distribution.starting_info(operator, delegator)
    height = distribution.context.environment.height
    if starting.height == height:
        return ()
    rewards: DecCoins = ()
    first, stake = starting.previous_period, starting.stake
    if height > starting.height:
        for slash in distribution.slash_events(operator, starting.height, height):
            if slash.validator_period > first:
                last = slash.validator_period
                rewards = dec_coins.add(
                    rewards, _between(distribution, operator, first, last, stake)
                )
                stake = decimals.mul_truncate(stake, decimals.ONE - slash.fraction)
                first = last
    most = validator.tokens_of(delegation.shares)
    if stake > most + _MARGIN:
        raise OverflowError(
            f"calculated final stake for delegator {delegation.delegator_address} greater than"
            f" current stake\n\tfinal stake:\t{decimals.show(stake)}"
            f"\n\tcurrent stake:\t{decimals.show(most)}"
        )
    own = _between(distribution, operator, first, period, min(stake, most))
    return dec_coins.add(rewards, own)


def _between(
    distribution: Distribution, operator: bytes, first: int, last: int, stake: int
) -> DecCoins:
    """Return the rewards of tokens between the ends of two periods."""
    if first > last:
        raise OverflowError("startingPeriod cannot be greater than endingPeriod")
    starting = distribution.historical(operator, first).cumulative_reward_ratio
    ending = distribution.historical(operator, last).cumulative_reward_ratio
    return dec_coins.mul_truncate(dec_coins.subtract(ending, starting), stake)


@dataclass(frozen=True, slots=True)
class Destination:
    """Address that gets rewards, ``None`` for the community; ``chosen`` is the address that
    their owner has chosen."""

    address: bytes | None
    chosen: bytes


def destination(distribution: Distribution, owner: bytes, *, is_strict: bool) -> Destination:
    """Return where the rewards of an account go.

    An account of a module can't receive them: raise :exc:`TxError` if ``is_strict``, otherwise
    they go to the owner, or to the community.
    """
    chosen, accounts = distribution.withdraw_address(owner), distribution.context.accounts
    if not accounts.is_blocked(chosen):
        return Destination(chosen, chosen)
    if is_strict:
        shown = distribution.context.codec.show(chosen)
        raise TxError(UNAUTHORIZED, f"{shown} is not allowed to receive funds")
    return Destination(None if accounts.is_blocked(owner) else owner, chosen)


def report_redirection(
    distribution: Distribution, to: Destination, validator: str, delegator: str = ""
) -> None:
    """Emit an event if rewards did not go to the chosen address."""
    if to.address == to.chosen:
        return
    show = distribution.context.codec.show
    attributes = {
        "original_withdraw_address": show(to.chosen),
        "withdraw_address": _COMMUNITY_POOL if to.address is None else show(to.address),
        "validator": validator,
    }
    if delegator:
        attributes["delegator"] = delegator
    distribution.context.events.append(event("withdraw_addr_redirected", **attributes))


def pay(distribution: Distribution, amount: DecCoins, to: Destination) -> Coins:
    """Pay the integer parts of rewards, and give the rest to the community; return what was
    paid."""
    paid, rest = dec_coins.truncate(amount)
    if to.address is None:
        rest = dec_coins.add(rest, dec_coins.of(paid))
    elif paid:
        distribution.context.balances.send_from_module(ACCOUNT, to.address, paid)
    if rest:
        pool = distribution.fee_pool()
        pool.community_pool = [*dec_coins.add(pool.community_pool, rest)]
        distribution.set_fee_pool(pool)
    return paid


def withdraw(
    distribution: Distribution, validator: Validator, delegation: Delegation, to: Destination
) -> Coins:
    """Pay the rewards of a delegation, and return them; raise :exc:`TxError`."""
    staking = distribution.staking
    delegator = staking.parse(delegation.delegator_address)
    operator = staking.parse_operator(delegation.validator_address)
    if not distribution.has_starting_info(operator, delegator):
        raise TxError(NO_DELEGATION_INFO)
    period = end_period(distribution, validator)
    calculated = calculate(distribution, validator, delegation, period)
    outstanding = distribution.outstanding(operator).rewards
    # Rounding may have left less than was calculated.
    rewards = dec_coins.intersect(calculated, outstanding)
    paid = pay(distribution, rewards, to)
    left = OutstandingRewards([*dec_coins.subtract(outstanding, rewards)])
    distribution.set_outstanding(operator, left)
    starting = distribution.starting_info(operator, delegator)
    _release(distribution, operator, starting.previous_period)
    distribution.delete_starting_info(operator, delegator)
    shown = paid or _NO_REWARDS
    distribution.context.events.append(
        event(
            "withdraw_rewards",
            amount=coins.show(shown),
            validator=validator.operator_address,
            delegator=delegation.delegator_address,
        )
    )
    return shown


def end_validator(distribution: Distribution, operator: bytes, *, is_strict: bool) -> None:
    """Pay the commission of a validator that is removed, and give the rest to the community."""
    outstanding = tuple(distribution.outstanding(operator).rewards)
    commission = tuple(distribution.commission(operator).commission)
    if commission:
        outstanding = dec_coins.subtract(outstanding, commission)
        to = destination(distribution, operator, is_strict=is_strict)
        pay(distribution, commission, to)
        report_redirection(distribution, to, distribution.staking.show_operator(operator))
    pool = distribution.fee_pool()
    pool.community_pool = [*dec_coins.add(pool.community_pool, outstanding)]
    distribution.set_fee_pool(pool)
    distribution.delete_validator(operator)
