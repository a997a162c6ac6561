"""State of x/protocolpool, and the distribution of coins in each block; SDK:
x/protocolpool/keeper/keeper.go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..bank.accounts import module_address
from ..bank.balances import subtract
from ..bank.context import Context
from ..protocol import coins, decimals
from ..protocol.coins import Coin, Coins
from ..protocol.records import decode, encode, record

ACCOUNT, ESCROW = "protocolpool", "protocolpool_escrow"
"""Names of the account that holds the community's coins, and of the account that x/distribution
pays them to."""
STORE, FUNDS, PARAMS = b"protocolpool/", b"\3", b"\10"


@record("PoolParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Denominations that are distributed, and the number of blocks between distributions."""

    enabled_distribution_denoms: list[str] = field(default_factory=list)
    distribution_frequency: int = 0

    def check(self) -> None:
        """Raise :exc:`ValueError` with the SDK's text for invalid parameters."""
        seen = set()
        for denom in self.enabled_distribution_denoms:
            coins.check_denom(denom)
            if denom in seen:
                raise ValueError(f"duplicate enabled distribution denom {denom}")
            seen.add(denom)
        if not self.distribution_frequency:
            raise ValueError("DistributionFrequency must be greater than 0")


@record("ContinuousFund")
@dataclass(frozen=True, slots=True)
class ContinuousFund:
    """A part of the coins, in units of 10^-18, that a recipient gets until a time."""

    recipient: str = ""
    percentage: int | None = None
    expiry: int | None = None

    @property
    def part(self) -> int:
        """The part as a number, 0 if it is missing."""
        return self.percentage or 0

    def check(self) -> None:
        """Raise :exc:`ValueError` with the SDK's text for an invalid fund."""
        if not self.recipient:
            raise ValueError("recipient cannot be empty")
        if not self.part:
            raise ValueError("percentage cannot be zero or empty")
        if self.part < 0:
            raise ValueError("percentage cannot be negative")
        if self.part > decimals.ONE:
            raise ValueError("percentage cannot be greater than one")


class Pool:
    """Parameters and funds in the state of a context."""

    def __init__(self, context: Context) -> None:
        self.context, self.store = context, context.store(STORE)

    def params(self) -> Params:
        """Return the parameters."""
        return decode(Params, self.store.get(PARAMS) or b"")

    def funds(self) -> Iterator[tuple[bytes, ContinuousFund]]:
        """Yield the recipients' addresses and their funds."""
        for key, stored in self.store.iterate(FUNDS):
            yield key[len(FUNDS) :], decode(ContinuousFund, stored)

    def set_fund(self, recipient: bytes, fund: ContinuousFund) -> None:
        """Store the fund of a recipient."""
        self.store.set(FUNDS + recipient, encode(fund))

    def distribute(self) -> None:
        """Pay the recipients of funds, and give the rest to the community."""
        balances, escrow = self.context.balances, self.context.accounts.module(ESCROW)
        denoms = self.params().enabled_distribution_denoms
        given = [Coin(denom, balances.get(escrow, denom)) for denom in denoms]
        if not any(coin.value for coin in given):
            return
        left = coins.add(tuple(given))
        for recipient, fund in [*self.funds()]:
            if fund.expiry is not None and fund.expiry < self.context.environment.time:
                self.store.delete(FUNDS + recipient)
                continue
            paid = coins.add(tuple(_part(fund, given, coin.denom) for coin in given))
            left = tuple(subtract(left, paid)[0])
            balances.send_from_module(ESCROW, recipient, paid)
        balances.send_between_modules(ESCROW, ACCOUNT, left)

    def owned(self) -> Coins:
        """Return the community's coins."""
        return self.context.balances.all_of(module_address(ACCOUNT))


def _part(fund: ContinuousFund, given: list[Coin], denom: str) -> Coin:
    amount = _amount_of(given, denom)
    return Coin(denom, decimals.truncate(decimals.mul_int(fund.part, amount)))


def _amount_of(given: list[Coin], denom: str) -> int:
    """Return the amount of a denomination by binary search, as the SDK does; in coins that are
    not sorted it may find nothing, which counts as 0."""
    while given:
        middle = len(given) // 2
        found = given[middle]
        if found.denom == denom:
            return found.value
        given = given[:middle] if denom < found.denom else given[middle + 1 :]
    return 0
