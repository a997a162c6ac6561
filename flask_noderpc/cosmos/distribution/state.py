"""Store of x/distribution, in the SDK's layout; SDK: x/distribution/keeper/store.go and
x/distribution/types/keys.go.

Reads and writes have the SDK's order, as they cost gas.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from ..bank.context import Context
from ..bank.errors import TxError
from ..protocol import dec_coins
from ..protocol.coins import Coins
from ..protocol.records import decode, encode
from ..staking.state import Staking, sized
from .errors import NO_VALIDATOR_INFO
from .records import (
    AccumulatedCommission,
    BytesValue,
    CurrentRewards,
    FeePool,
    HistoricalRewards,
    OutstandingRewards,
    Params,
    SlashEvent,
    StartingInfo,
)

ACCOUNT = "distribution"
"""Name of the account that holds rewards, commission and the community's coins."""

STORE = b"distribution/"
"""Prefix of the module's keys."""

FEE_POOL, PROPOSER, OUTSTANDING, WITHDRAW_ADDRESS, STARTING_INFO = (
    bytes((number,)) for number in range(5)
)
HISTORICAL, CURRENT, COMMISSION, SLASH_EVENTS, PARAMS = (
    bytes((number,)) for number in range(5, 10)
)

T = TypeVar("T")


class Distribution:
    """Rewards of validators and delegators in the state of a context."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store(STORE)

    @cached_property
    def staking(self) -> Staking:
        """Validators and delegations."""
        return Staking(self.context)

    @property
    def external_pool(self) -> str:
        """Name of another module's account that gets the community's coins, or an empty
        string."""
        modules = self.context.environment.modules
        return next((each.community_pool for each in modules if each.community_pool), "")

    def _read(self, kind: type[T], key: bytes) -> T:
        return decode(kind, self.store.get(key) or b"")

    def params(self) -> Params:
        """Return the parameters."""
        return self._read(Params, PARAMS)

    def fee_pool(self) -> FeePool:
        """Return the coins of the community."""
        return self._read(FeePool, FEE_POOL)

    def set_fee_pool(self, pool: FeePool) -> None:
        """Store the coins of the community."""
        self.store.set(FEE_POOL, encode(pool))

    def fund_community_pool(self, sender: bytes, amount: Coins) -> None:
        """Send coins to the community's; raise :exc:`TxError`."""
        self.context.balances.send_to_module(sender, ACCOUNT, amount)
        pool = self.fee_pool()
        pool.community_pool = [*dec_coins.add(pool.community_pool, dec_coins.of(amount))]
        self.set_fee_pool(pool)

    def set_proposer(self, address: bytes) -> None:
        """Store the address of the block's proposer."""
        self.store.set(PROPOSER, encode(BytesValue(address)))

    def withdraw_address(self, delegator: bytes) -> bytes:
        """Return the address that gets a delegator's rewards, by default its own."""
        return self.store.get(WITHDRAW_ADDRESS + sized(delegator)) or delegator

    def set_withdraw_address(self, delegator: bytes, address: bytes) -> None:
        """Store the address that gets a delegator's rewards."""
        self.store.set(WITHDRAW_ADDRESS + sized(delegator), address)

    def _starting_key(self, operator: bytes, delegator: bytes) -> bytes:
        return STARTING_INFO + sized(operator) + sized(delegator)

    def has_starting_info(self, operator: bytes, delegator: bytes) -> bool:
        """Return true if a delegation's rewards have begun."""
        return self.store.has(self._starting_key(operator, delegator))

    def starting_info(self, operator: bytes, delegator: bytes) -> StartingInfo:
        """Return the beginning of a delegation's rewards."""
        return self._read(StartingInfo, self._starting_key(operator, delegator))

    def set_starting_info(
        self, operator: bytes, delegator: bytes, starting: StartingInfo
    ) -> None:
        """Store the beginning of a delegation's rewards."""
        self.store.set(self._starting_key(operator, delegator), encode(starting))

    def delete_starting_info(self, operator: bytes, delegator: bytes) -> None:
        """Remove the beginning of a delegation's rewards."""
        self.store.delete(self._starting_key(operator, delegator))

    def _historical_key(self, operator: bytes, period: int) -> bytes:
        return HISTORICAL + sized(operator) + period.to_bytes(8, "little")

    def historical(self, operator: bytes, period: int) -> HistoricalRewards:
        """Return a validator's rewards up to a period; raise :exc:`TxError` if they are not
        stored."""
        stored = self.store.get(self._historical_key(operator, period))
        if stored is None:
            shown = self.staking.show_operator(operator)
            raise TxError(
                NO_VALIDATOR_INFO,
                f"no historical rewards for validator {shown} period {period}",
            )
        return decode(HistoricalRewards, stored)

    def set_historical(self, operator: bytes, period: int, rewards: HistoricalRewards) -> None:
        """Store a validator's rewards up to a period; remove them if nothing needs them."""
        key = self._historical_key(operator, period)
        if rewards.reference_count:
            self.store.set(key, encode(rewards))
        else:
            self.store.delete(key)

    def current(self, operator: bytes) -> CurrentRewards:
        """Return a validator's rewards in the current period."""
        return self._read(CurrentRewards, CURRENT + sized(operator))

    def set_current(self, operator: bytes, rewards: CurrentRewards) -> None:
        """Store a validator's rewards in the current period."""
        self.store.set(CURRENT + sized(operator), encode(rewards))

    def commission(self, operator: bytes) -> AccumulatedCommission:
        """Return a validator's commission."""
        return self._read(AccumulatedCommission, COMMISSION + sized(operator))

    def set_commission(self, operator: bytes, commission: AccumulatedCommission) -> None:
        """Store a validator's commission."""
        self.store.set(COMMISSION + sized(operator), encode(commission))

    def outstanding(self, operator: bytes) -> OutstandingRewards:
        """Return all rewards of a validator that were not withdrawn."""
        return self._read(OutstandingRewards, OUTSTANDING + sized(operator))

    def set_outstanding(self, operator: bytes, rewards: OutstandingRewards) -> None:
        """Store all rewards of a validator that were not withdrawn."""
        self.store.set(OUTSTANDING + sized(operator), encode(rewards))

    def _slash_key(self, operator: bytes, height: int) -> bytes:
        return SLASH_EVENTS + sized(operator) + height.to_bytes(8)

    def set_slash_event(
        self, operator: bytes, height: int, period: int, slash: SlashEvent
    ) -> None:
        """Store that a validator was slashed at a height."""
        self.store.set(self._slash_key(operator, height) + period.to_bytes(8), encode(slash))

    def slash_events(self, operator: bytes, first: int, last: int) -> Iterator[SlashEvent]:
        """Yield the slashes of a validator between two heights, inclusively."""
        pairs = self.store.iterate(
            SLASH_EVENTS + sized(operator),
            self._slash_key(operator, first),
            self._slash_key(operator, last + 1),
        )
        for _, stored in pairs:
            yield decode(SlashEvent, stored)

    def delete_validator(self, operator: bytes) -> None:
        """Remove all records of a validator."""
        self.store.delete(OUTSTANDING + sized(operator))
        self.store.delete(COMMISSION + sized(operator))
        for prefix in (SLASH_EVENTS, HISTORICAL):
            for key, _ in self.store.iterate(prefix + sized(operator)):
                self.store.delete(key)
        self.store.delete(CURRENT + sized(operator))
