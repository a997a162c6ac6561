"""Coins with decimal amounts; SDK: types/dec_coin.go.

Coins are sorted by denomination and have no zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import decimals
from .coins import Coin, Coins
from .records import record


@record("DecCoin")
@dataclass(frozen=True, slots=True)
class DecCoin:
    """A denomination and an amount, in units of 10^-18."""

    denom: str = ""
    amount: int = 0

    def __str__(self) -> str:
        return decimals.show(self.amount) + self.denom


DecCoins = tuple[DecCoin, ...]


def of(given: Coins) -> DecCoins:
    """Return coins with their amounts as decimal numbers."""
    return tuple(DecCoin(each.denom, decimals.of(each.value)) for each in given if each.value)


def show(given: Iterable[DecCoin]) -> str:
    """Return the SDK's text, such as ``1.500000000000000000stake``."""
    return ",".join(map(str, given))


def add(*parts: Iterable[DecCoin]) -> DecCoins:
    """Return the sum of coins."""
    return _sum((each.denom, each.amount) for part in parts for each in part)


def subtract(first: Iterable[DecCoin], second: Iterable[DecCoin]) -> DecCoins:
    """Return the difference; raise :exc:`OverflowError` if an amount would be negative."""
    found = _sum(
        (
            *((each.denom, each.amount) for each in first),
            *((each.denom, -each.amount) for each in second),
        )
    )
    if any(each.amount < 0 for each in found):
        raise OverflowError("negative coin amount")
    return found


def _sum(parts: Iterable[tuple[str, int]]) -> DecCoins:
    total: dict[str, int] = {}
    for denom, amount in parts:
        total[denom] = total.get(denom, 0) + amount
    return tuple(DecCoin(denom, total[denom]) for denom in sorted(total) if total[denom])


def mul(given: Iterable[DecCoin], factor: int) -> DecCoins:
    """Return each amount times a decimal number, rounded half to even."""
    return _sum((each.denom, decimals.mul(each.amount, factor)) for each in given)


def mul_truncate(given: Iterable[DecCoin], factor: int) -> DecCoins:
    """Return each amount times a decimal number, rounded towards zero."""
    return _sum((each.denom, decimals.mul_truncate(each.amount, factor)) for each in given)


def quo_truncate(given: Iterable[DecCoin], divisor: int) -> DecCoins:
    """Return each amount divided by a decimal number, rounded towards zero."""
    return _sum((each.denom, decimals.quo_truncate(each.amount, divisor)) for each in given)


def truncate(given: Iterable[DecCoin]) -> tuple[Coins, DecCoins]:
    """Return the integer parts of the amounts, and the rest."""
    whole = tuple(
        Coin(each.denom, decimals.truncate(each.amount))
        for each in given
        if decimals.truncate(each.amount)
    )
    return whole, subtract(given, of(whole))


def intersect(first: Iterable[DecCoin], second: Iterable[DecCoin]) -> DecCoins:
    """Return the lower amount of each denomination."""
    amounts = {each.denom: each.amount for each in second}
    return _sum((each.denom, min(each.amount, amounts.get(each.denom, 0))) for each in first)
