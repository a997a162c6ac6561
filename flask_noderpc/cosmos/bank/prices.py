"""Minimum gas prices, which a transaction must pay to enter the mempool."""

from __future__ import annotations

import re

from ...errors import InvalidSetting, short_repr
from ..protocol.coins import InvalidCoins, check_denom

Prices = dict[str, tuple[int, int]]
"""Prices as numerator and denominator, by denomination."""

_PRICE = re.compile(r"([0-9]{1,60})(?:\.([0-9]{1,18}))?([a-zA-Z].*)", re.ASCII)


def parse_prices(text: str) -> Prices:
    """Return the prices of a text such as ``0.025stake,1token``; raise
    :exc:`~flask_noderpc.errors.InvalidSetting` if it is invalid."""
    found: Prices = {}
    for part in filter(None, map(str.strip, text.split(","))):
        match = _PRICE.fullmatch(part)
        try:
            if match is None:
                raise InvalidCoins("an amount and a denomination are needed")
            check_denom(match[3])
        except InvalidCoins as error:
            raise InvalidSetting(
                "min_gas_prices: expected prices such as 0.025stake, got"
                f" {short_repr(part)}: {error}"
            ) from None
        fraction = match[2] or ""
        if price := int(match[1] + fraction):
            found[match[3]] = price, 10 ** len(fraction)
    return found


def show_prices(prices: Prices) -> str:
    """Return the SDK's text of prices, with 18 decimal places."""
    shown = []
    for denom, (numerator, denominator) in sorted(prices.items()):
        digits = f"{numerator * 10**18 // denominator:019d}"
        shown.append(f"{digits[:-18]}.{digits[-18:]}{denom}")
    return ",".join(shown)
