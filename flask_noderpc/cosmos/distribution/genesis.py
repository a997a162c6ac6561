"""Genesis state of x/distribution; SDK: x/distribution/keeper/genesis.go."""

from __future__ import annotations

from ..bank.context import Context
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.params import read_params
from ..protocol import coins, dec_coins
from ..protocol.dec_coins import DecCoin, DecCoins
from ..protocol.records import encode
from .records import (
    AccumulatedCommission,
    CurrentRewards,
    FeePool,
    HistoricalRewards,
    OutstandingRewards,
    Params,
    SlashEvent,
    StartingInfo,
)
from .state import ACCOUNT, PARAMS, Distribution


def init(context: Context, state: Item) -> None:
    """Store the state; raise :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState`."""
    distribution = Distribution(context)
    params = read_params(Params, state["params"])
    distribution.store.set(PARAMS, encode(params))
    pool = read(FeePool, state["fee_pool"])
    distribution.set_fee_pool(pool)
    account, operator = context.codec.parse, context.environment.operators.parse
    for each in state["delegator_withdraw_infos"]:
        distribution.set_withdraw_address(
            each["delegator_address"].read(account, "an address"),
            each["withdraw_address"].read(account, "an address"),
        )
    proposer = state["previous_proposer"]
    consensus = context.environment.consensus.parse
    distribution.set_proposer(
        proposer.read(consensus, "an address") if proposer.text() else b""
    )
    held: DecCoins = tuple(pool.community_pool)
    _add_validators(distribution, state)
    for each in state["outstanding_rewards"]:
        validator = each["validator_address"].read(operator, "an address")
        rewards = [read(DecCoin, coin) for coin in each["outstanding_rewards"]]
        distribution.set_outstanding(validator, OutstandingRewards(rewards))
        held = dec_coins.add(held, rewards)
    for each in state["delegator_starting_infos"]:
        validator = each["validator_address"].read(operator, "an address")
        delegator = each["delegator_address"].read(account, "an address")
        starting = read(StartingInfo, each["starting_info"])
        distribution.set_starting_info(validator, delegator, starting)
    _check_account(context, state, held)


def _add_validators(distribution: Distribution, state: Item) -> None:
    operator = distribution.context.environment.operators.parse
    for each in state["validator_accumulated_commissions"]:
        validator = each["validator_address"].read(operator, "an address")
        commission = read(AccumulatedCommission, each["accumulated"])
        distribution.set_commission(validator, commission)
    for each in state["validator_historical_rewards"]:
        validator = each["validator_address"].read(operator, "an address")
        period = each["period"].whole_number()
        distribution.set_historical(validator, period, read(HistoricalRewards, each["rewards"]))
    for each in state["validator_current_rewards"]:
        validator = each["validator_address"].read(operator, "an address")
        distribution.set_current(validator, read(CurrentRewards, each["rewards"]))
    for each in state["validator_slash_events"]:
        validator = each["validator_address"].read(operator, "an address")
        slash = read(SlashEvent, each["validator_slash_event"])
        height, period = each["height"].whole_number(63), each["period"].whole_number()
        distribution.set_slash_event(validator, height, period, slash)


def _check_account(context: Context, state: Item, held: DecCoins) -> None:
    """Raise :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState` if the module's
    account has other coins than the rewards and the community's coins."""
    expected, _ = dec_coins.truncate(held)
    owned = context.balances.all_of(context.accounts.module(ACCOUNT))
    if owned != expected:
        state.refuse(
            f"expected a balance of the account {ACCOUNT} that equals its rewards and the"
            f" community's coins, {coins.show(expected) or 'no coins'}, got"
            f" {coins.show(owned) or 'no coins'}"
        )
