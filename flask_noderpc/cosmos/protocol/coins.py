"""Coins, with the SDK's rules and error texts; SDK: types/coin.go, math/int.go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .proto import MESSAGES

MAX_BITS = 256
"""Maximum number of bits of the SDK's Int."""
MAX_AMOUNT = (1 << MAX_BITS) - 1

# A number with more digits has more than MAX_BITS bits in any base.
_MAX_DIGITS = 4_000
_DENOM = re.compile(r"[a-zA-Z][a-zA-Z0-9/:._-]{2,127}", re.ASCII)
_AMOUNT = re.compile(r"([+-]?)(0_?(?=[0-7_]))?([0-9a-zA-Z_]+)", re.ASCII)
_GIVEN = re.compile(rf"([0-9]+)\s*({_DENOM.pattern})", re.ASCII)


class InvalidCoins(ValueError):
    """Error for coins that the SDK refuses, with its text."""


@dataclass(frozen=True, slots=True)
class Coin:
    """A denomination and an amount; ``None`` is an amount that the message does not have,
    which the SDK distinguishes from zero."""

    denom: str
    amount: int | None

    def __str__(self) -> str:
        return f"{'<nil>' if self.amount is None else self.amount}{self.denom}"

    @property
    def value(self) -> int:
        """The amount; raise :exc:`MissingAmount` if it is ``None``."""
        if self.amount is None:
            raise MissingAmount
        return self.amount

    def encode(self) -> bytes:
        """Return the encoded ``Coin`` message."""
        return MESSAGES.encode("Coin", denom=self.denom, amount=str(self.value))


Coins = tuple[Coin, ...]


class MissingAmount(Exception):
    """Error for using a missing amount, at which the SDK panics."""

    def __init__(self) -> None:
        super().__init__("runtime error: invalid memory address or nil pointer dereference")


def parse_amount(text: str) -> int | None:
    """Return the amount of a message's text, ``None`` if it is empty; raise
    :exc:`InvalidCoins`.

    Like Go's ``big.Int``, this accepts prefixes such as ``0x`` for other bases than ten.
    """
    if not text:
        return None
    amount = parse_integer(text)
    check_size(amount)
    return amount


def parse_integer(text: str) -> int:
    """Parse an integer of any size like Go's ``big.Int``; raise :exc:`InvalidCoins`."""
    amount = None
    if match := _AMOUNT.fullmatch(text):
        sign, octal, digits = match.groups()
        if (count := len(digits.lstrip("0_"))) > _MAX_DIGITS:
            raise InvalidCoins(f"integer out of range; got: {count * 3}, max: {MAX_BITS}")
        try:
            amount = int(digits, 8 if octal else 0)
        except ValueError:
            amount = 0 if digits.strip("0") == "" else None
    if amount is None:
        raise InvalidCoins(f'math/big: cannot unmarshal "{text}" into a *big.Int')
    return -amount if match and sign == "-" else amount


def check_size(amount: int) -> None:
    """Raise :exc:`InvalidCoins` if the amount has more bits than the SDK's Int."""
    if amount.bit_length() > MAX_BITS:
        raise InvalidCoins(f"integer out of range; got: {amount.bit_length()}, max: {MAX_BITS}")


def check_denom(denom: str) -> None:
    """Raise :exc:`InvalidCoins` for an invalid denomination."""
    if not _DENOM.fullmatch(denom):
        raise InvalidCoins(f"invalid denom: {denom}")


def check(coins: Coins) -> None:
    """Raise :exc:`InvalidCoins` unless the coins are sorted, unique and positive."""
    low = ""
    for at, coin in enumerate(coins):
        check_denom(coin.denom)
        if at and coin.denom < low:
            raise InvalidCoins(f"denomination {coin.denom} is not sorted")
        if at and coin.denom == low:
            raise InvalidCoins(f"duplicate denomination {coin.denom}")
        if coin.value <= 0:
            raise InvalidCoins(f"coin {coin.denom if at else coin} amount is not positive")
        low = coin.denom


def is_valid(coins: Coins) -> bool:
    """Return true if :func:`check` raises no error."""
    try:
        check(coins)
    except InvalidCoins:
        return False
    return True


def show(coins: Iterable[Coin]) -> str:
    """Return the SDK's text of coins, such as ``10stake,5token``."""
    return ",".join(map(str, coins))


def add(*parts: Coins) -> Coins:
    """Return the sum of coins, sorted by denomination and without zeros; raise
    :exc:`InvalidCoins` for an amount of more than 256 bits."""
    total: dict[str, int] = {}
    for coin in (coin for part in parts for coin in part):
        total[coin.denom] = total.get(coin.denom, 0) + coin.value
        check_size(total[coin.denom])
    return tuple(Coin(denom, total[denom]) for denom in sorted(total) if total[denom])


def parse(text: str) -> Coins:
    """Return the coins of a text such as ``10stake,5token``; raise :exc:`InvalidCoins`."""
    found = []
    for part in filter(None, text.split(",")):
        match = _GIVEN.fullmatch(part.strip())
        if match is None or len(match[1]) > _MAX_DIGITS:
            raise InvalidCoins(
                f"invalid coin {part.strip()[:40]!r}: expected an amount and a denomination,"
                " such as 10stake"
            )
        found.append(Coin(match[2], int(match[1])))
        check_size(found[-1].value)
    coins = tuple(sorted(found, key=lambda coin: coin.denom))
    check(coins)
    return coins
