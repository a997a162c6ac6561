"""Allowances to spend a granter's coins on fees; SDK: x/feegrant/basic_fee.go, periodic_fee.go,
filtered_fee.go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...domain.time import SECOND, ZERO_TIME
from ..bank.balances import subtract
from ..bank.context import Context
from ..bank.errors import INVALID_COINS, Panic, TxError
from ..protocol import coins
from ..protocol.coins import Coin, Coins
from ..protocol.fields import AnyValue
from ..protocol.records import decode, encode, name_of, record
from .errors import (
    FEE_LIMIT_EXCEEDED,
    FEE_LIMIT_EXPIRED,
    INVALID_DURATION,
    MESSAGE_NOT_ALLOWED,
    NO_ALLOWANCE,
    NO_MESSAGES,
)


class Expired(TxError):
    """Error for an allowance that has expired, and is removed."""

    def __init__(self, detail: str) -> None:
        super().__init__(FEE_LIMIT_EXPIRED, detail)


_PACKAGE = "cosmos.feegrant.v1beta1"
_GAS_PER_MESSAGE = 10


class Allowance(ABC):
    """Fees that a granter pays."""

    @abstractmethod
    def accept(self, context: Context, fee: Coins, messages: Sequence[str]) -> bool:
        """Subtract a fee for messages with these type URLs; return true if nothing is left.

        Raise :exc:`TxError` if the fee is not allowed.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise :exc:`TxError` for an invalid allowance."""

    @abstractmethod
    def expires_at(self) -> int | None:
        """Return the time at which it expires, in nanoseconds since 1970, or ``None``."""

    @property
    def any(self) -> AnyValue:
        """The allowance in an ``Any``."""
        return AnyValue(f"/{name_of(type(self))}", encode(self))


@record(f"{_PACKAGE}.BasicAllowance")
@dataclass(slots=True)
class BasicAllowance(Allowance):
    """A number of coins, or any number, until a time."""

    spend_limit: list[Coin] = field(default_factory=list)
    expiration: int | None = None

    def accept(self, context: Context, fee: Coins, messages: Sequence[str]) -> bool:
        if self.expiration is not None and self.expiration < context.environment.time:
            raise Expired("basic allowance")
        if not self.spend_limit:
            return False
        left, is_exceeded = subtract(self.spend_limit, fee)
        if is_exceeded:
            raise TxError(FEE_LIMIT_EXCEEDED, "basic allowance")
        self.spend_limit = left
        return not left

    def check(self) -> None:
        if self.spend_limit and not coins.is_valid(tuple(self.spend_limit)):
            text = f"send amount is invalid: {coins.show(self.spend_limit)}"
            raise TxError(INVALID_COINS, text)
        if self.expiration is not None and self.expiration // SECOND < 0:
            raise TxError(INVALID_DURATION, "expiration time cannot be negative")

    def expires_at(self) -> int | None:
        return self.expiration


@record(f"{_PACKAGE}.PeriodicAllowance")
@dataclass(slots=True)
class PeriodicAllowance(Allowance):
    """A number of coins in each period, within a basic allowance."""

    basic: BasicAllowance = field(default_factory=BasicAllowance)
    period: int = 0
    period_spend_limit: list[Coin] = field(default_factory=list)
    period_can_spend: list[Coin] = field(default_factory=list)
    period_reset: int = ZERO_TIME

    def accept(self, context: Context, fee: Coins, messages: Sequence[str]) -> bool:
        basic, now = self.basic, context.environment.time
        if basic.expiration is not None and now > basic.expiration:
            raise Expired("absolute limit")
        self._begin_period(now)
        self.period_can_spend, is_exceeded = subtract(self.period_can_spend, fee)
        if is_exceeded:
            raise TxError(FEE_LIMIT_EXCEEDED, "period limit")
        if not basic.spend_limit:
            return False
        basic.spend_limit, is_exceeded = subtract(basic.spend_limit, fee)
        if is_exceeded:
            raise TxError(FEE_LIMIT_EXCEEDED, "absolute limit")
        return not basic.spend_limit

    def _begin_period(self, now: int) -> None:
        if now < self.period_reset:
            return
        limit, of_period = self.basic.spend_limit, self.period_spend_limit
        _, is_exceeded = subtract(limit, tuple(of_period))
        self.period_can_spend = limit if is_exceeded and limit else of_period
        self.period_reset += self.period
        if now > self.period_reset:
            self.period_reset = now + self.period

    def check(self) -> None:
        self.basic.check()
        if not coins.is_valid(tuple(self.period_spend_limit)):
            text = f"spend amount is invalid: {coins.show(self.period_spend_limit)}"
            raise TxError(INVALID_COINS, text)
        if not self.period_spend_limit:
            raise TxError(INVALID_COINS, "spend limit must be positive")
        if not coins.is_valid(tuple(self.period_can_spend)):
            text = f"can spend amount is invalid: {coins.show(self.period_can_spend)}"
            raise TxError(INVALID_COINS, text)
        limited = {coin.denom for coin in self.basic.spend_limit}
        if limited and not limited >= {coin.denom for coin in self.period_spend_limit}:
            text = "period spend limit has different currency than basic spend limit"
            raise TxError(INVALID_COINS, text)
        if self.period < 0:
            raise TxError(INVALID_DURATION, "negative clock step")

    def expires_at(self) -> int | None:
        return self.basic.expires_at()


@record(f"{_PACKAGE}.AllowedMsgAllowance")
@dataclass(slots=True)
class AllowedMsgAllowance(Allowance):
    """Another allowance, for transactions with some messages only."""

    allowance: AnyValue | None = None
    allowed_messages: list[str] = field(default_factory=list)

    def _inner(self) -> Allowance:
        return unpacked(self.allowance)

    def accept(self, context: Context, fee: Coins, messages: Sequence[str]) -> bool:
        for _ in self.allowed_messages:
            context.meter.consume(_GAS_PER_MESSAGE, "check msg")
        for each in messages:
            context.meter.consume(_GAS_PER_MESSAGE, "check msg")
            if each not in self.allowed_messages:
                text = "message does not exist in allowed messages"
                raise TxError(MESSAGE_NOT_ALLOWED, text)
        inner = self._inner()
        is_used_up = inner.accept(context, fee, messages)
        if not is_used_up:
            self.allowance = inner.any
        return is_used_up

    def check(self) -> None:
        if self.allowance is None:
            raise TxError(NO_ALLOWANCE, "allowance should not be empty")
        if not self.allowed_messages:
            raise TxError(NO_MESSAGES, "allowed messages shouldn't be empty")
        self._inner().check()

    def expires_at(self) -> int | None:
        return self._inner().expires_at()


KINDS: dict[str, type[Allowance]] = {
    f"/{name_of(kind)}": kind
    for kind in (BasicAllowance, PeriodicAllowance, AllowedMsgAllowance)
}
"""Types of allowances by type URL."""


def unpacked(given: AnyValue | None) -> Allowance:
    """Return the allowance in an ``Any``; raise :exc:`TxError`."""
    if given is None:
        raise Panic("runtime error: invalid memory address or nil pointer dereference")
    if given.type_url not in KINDS:
        raise TxError(NO_ALLOWANCE, "failed to get allowance")
    return decode(KINDS[given.type_url], given.value)


@record("FeeGrant")
@dataclass(slots=True)
class Grant:
    """An allowance of a granter for a grantee, both in bech32."""

    granter: str = ""
    grantee: str = ""
    allowance: AnyValue | None = None
