"""Coins of an account that can't be spent before some time; SDK:
x/auth/vesting/types/vesting_account.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...domain.time import SECOND
from ...protocol.protobuf import Message, int64
from ..protocol import coins, decimals
from ..protocol.coins import Coin, Coins
from ..protocol.fields import COIN, Values, declared
from ..protocol.proto import MESSAGES

_PACKAGE = "cosmos.vesting.v1beta1"
CONTINUOUS, DELAYED, PERIODIC, PERMANENT = KINDS = (
    f"/{_PACKAGE}.ContinuousVestingAccount",
    f"/{_PACKAGE}.DelayedVestingAccount",
    f"/{_PACKAGE}.PeriodicVestingAccount",
    f"/{_PACKAGE}.PermanentLockedAccount",
)
"""Type URLs of vesting accounts."""

_PERIOD = f"{_PACKAGE}.Period"
PERIOD = declared("*types.Period", _PERIOD)
"""Type of a period: its length in seconds, and the coins that may be spent at its end."""


def _amounts(given: Iterable[Coin]) -> Counter[str]:
    """Return the amounts, by denomination."""
    return Counter({coin.denom: coin.value for coin in given})


def _coins(given: Counter[str]) -> Coins:
    return tuple(Coin(denom, amount) for denom, amount in sorted(given.items()) if amount)


@dataclass(frozen=True, slots=True)
class Vesting:
    """The schedule of a vesting account, and the coins that it has delegated; times are seconds
    since 1970."""

    kind: str
    """Type URL of the account."""
    original: Coins
    """Coins that are locked at first."""
    free: Coins = ()
    """Delegated coins that were not locked."""
    delegated: Coins = ()
    """Delegated coins that were locked."""
    end: int = 0
    start: int = 0
    periods: tuple[bytes, ...] = ()
    """Encoded periods; they are decoded when needed, as an account may have thousands."""

    def encode(self, base: bytes) -> bytes:
        """Return the account as an encoded ``Any``, from its encoded base account."""
        inner = MESSAGES.encode(
            f"{_PACKAGE}.BaseVestingAccount",
            base_account=base,
            original_vesting=self.original,
            delegated_free=self.free,
            delegated_vesting=self.delegated,
            end_time=self.end,
        )
        body = MESSAGES.encode(
            self.kind.removeprefix("/"),
            base_vesting_account=inner,
            start_time=self.start,
            vesting_periods=self.periods,
        )
        return MESSAGES.encode("Any", type_url=self.kind, value=body)

    def _vesting(self, time: int) -> Counter[str]:
        """Return the amounts that are not vested at a time in nanoseconds since 1970."""
        original, now = _amounts(self.original), time // SECOND
        if self.kind == PERMANENT or now <= self.start:
            return original
        if now >= self.end:
            return Counter()
        vested: Counter[str] = Counter()
        if self.kind == CONTINUOUS:
            length = decimals.of(self.end - self.start)
            part = decimals.quo(decimals.of(now - self.start), length)
            for denom, amount in original.items():
                vested[denom] = decimals.round_int(decimals.mul(decimals.of(amount), part))
        at = self.start
        for period in map(PERIOD.decode, self.periods):
            at += period["length"]
            if now < at:
                break
            vested.update(_amounts(period["amount"]))
        return original - vested

    def locked(self, time: int) -> Counter[str]:
        """Return the amounts of the balances that can't be spent at a time in nanoseconds since
        1970."""
        return self._vesting(time) - _amounts(self.delegated)

    def track_delegation(self, time: int, amount: Coins) -> Vesting:
        """Return the schedule after a delegation: it takes locked coins first."""
        vesting = self._vesting(time)
        free, delegated = _amounts(self.free), _amounts(self.delegated)
        for denom, value in ((coin.denom, coin.value) for coin in amount):
            locked = min(max(vesting[denom] - delegated[denom], 0), value)
            delegated[denom] += locked
            free[denom] += value - locked
        return replace(self, free=_coins(free), delegated=_coins(delegated))

    def track_undelegation(self, amount: Coins) -> Vesting:
        """Return the schedule after an undelegation: it returns free coins first."""
        free, delegated = _amounts(self.free), _amounts(self.delegated)
        for denom, value in ((coin.denom, coin.value) for coin in amount):
            released = min(free[denom], value)
            free[denom] -= released
            delegated[denom] -= min(delegated[denom], value - released)
        return replace(self, free=_coins(free), delegated=_coins(delegated))

    def check(self) -> None:
        """Raise :exc:`ValueError` for an invalid schedule, with the SDK's text."""
        # A message can create a continuous vesting account that ends before it starts. Accept
        # it, although the SDK's command `genesis validate` does not.
        if self.kind == PERIODIC:
            self._check_periods()
        if self.kind == PERMANENT and self.end > 0:
            raise ValueError("permanently vested accounts cannot have an end-time")
        if self.end < 0:
            raise ValueError("end time cannot be negative")
        if not (self.original and coins.is_valid(self.original)):
            raise ValueError(f"invalid coins: {coins.show(self.original)}")
        if not (coins.is_valid(self.free) and coins.is_valid(self.delegated)):
            text = coins.show((*self.free, *self.delegated))
            raise ValueError(f"invalid delegated coins: {text}")
        if _amounts(self.delegated) - _amounts(self.original):
            raise ValueError(
                "delegated vesting amount cannot be greater than original vesting amount"
            )

    def _check_periods(self) -> None:
        if self.start >= self.end:
            raise ValueError("vesting start-time cannot be before end-time")
        periods = list(map(PERIOD.decode, self.periods))
        for at, period in enumerate(periods):
            if period["length"] < 0:
                raise ValueError(f"period #{at} has a negative length: {period['length']}")
            amount: Coins = period["amount"]
            if not (amount and coins.is_valid(amount)):
                raise ValueError(f"period #{at} has invalid coins: {coins.show(amount)}")
        if end_of(self.start, periods) != self.end:
            raise ValueError("vesting end time does not match length of all vesting periods")
        total = coins.add(*(each["amount"] for each in periods))
        if total != self.original:
            raise ValueError(
                f"original vesting coins ({coins.show(self.original)}) does not match the sum"
                f" of all coins in vesting periods ({coins.show(total)})"
            )


def end_of(start: int, periods: Iterable[Values]) -> int:
    """Return the end of periods that begin one after the other, as an int64 that overflows like
    Go's."""
    return int64((start + sum(each["length"] for each in periods)) % (1 << 64))


def encode_periods(periods: Iterable[Values]) -> tuple[bytes, ...]:
    """Return the periods of a message as a schedule has them."""
    return tuple(map(MESSAGES.encoder(_PERIOD), periods))


def decode(kind: str, body: Message) -> Vesting:
    """Return the schedule of a vesting account."""
    inner = Message(body.blob(1))
    original, free, delegated = (
        tuple(map(COIN.decode, inner.blobs(number))) for number in (2, 3, 4)
    )
    periods = tuple(body.blobs(3))
    end, start = int64(inner.integer(5)), int64(body.integer(2))
    return Vesting(kind, original, free, delegated, end, start, periods)
