"""Balances, like the SDK's keeper of x/bank, with its order of reads, writes and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...domain.abci import Event, EventAttribute
from ...protocol.protobuf import Message, integer
from ..protocol import coins
from ..protocol.coins import Coin, Coins, InvalidCoins
from .accounts import Accounts, module_address
from .errors import (
    INSUFFICIENT_FUNDS,
    INVALID_COINS,
    SEND_DISABLED,
    UNAUTHORIZED,
    UNKNOWN_ADDRESS,
    Panic,
    TxError,
)
from .state import Store
from .vesting import Vesting

SUPPLY, METADATA, BALANCES, HOLDERS, SEND_ENABLED, PARAMS = (bytes((n,)) for n in range(6))
"""Prefixes of the keys in the bank's store."""


def event(kind: str, **attributes: str) -> Event:
    """Return an event whose attributes are indexed, as they are by default in the SDK."""
    return Event(
        kind, tuple(EventAttribute(k.encode(), v.encode()) for k, v in attributes.items())
    )


def with_attribute(given: Event, key: str, value: str) -> Event:
    """Return an event with one more attribute, which is not indexed."""
    attribute = EventAttribute(key.encode(), value.encode())
    return replace(given, attributes=(*given.attributes, attribute))


def subtract(limit: Sequence[Coin], amount: Sequence[Coin]) -> tuple[list[Coin], bool]:
    """Return what is left of a limit after an amount, and whether the limit was exceeded."""
    present = tuple(sorted((c for c in amount if c.value), key=lambda coin: coin.denom))
    try:
        coins.check(present)
        left = coins.add(tuple(limit), tuple(Coin(c.denom, -c.value) for c in present))
    except InvalidCoins as error:
        raise Panic(str(error)) from None
    return list(left), any(coin.value < 0 for coin in left)


def balance_key(address: bytes, denom: str = "") -> bytes:
    """Return the store key of a balance; without ``denom``, the key prefix of an account."""
    return BALANCES + bytes((len(address),)) + address + denom.encode()


def holders_key(denom: str) -> bytes:
    """Return the key prefix of the accounts that hold a denomination."""
    return HOLDERS + denom.encode() + b"\0"


class Balances:
    """Balances by address and denomination; ``time`` is the block's."""

    def __init__(
        self,
        store: Store,
        accounts: Accounts,
        show: Callable[[bytes], str],
        events: list[Event],
        time: int,
    ) -> None:
        self._store, self._accounts, self._show = store, accounts, show
        self.events, self._time = events, time

    def get(self, address: bytes, denom: str) -> int:
        """Return a balance."""
        return int(self._store.get(balance_key(address, denom)) or b"0")

    def set(self, address: bytes, denom: str, amount: int) -> None:
        """Store a balance, and add or remove the account as a holder of the denomination."""
        key = balance_key(address, denom)
        holder = holders_key(denom) + bytes((len(address),)) + address
        if amount:
            self._store.set(holder, b"")
            self._store.set(key, str(amount).encode())
        else:
            self._store.delete(holder)
            self._store.delete(key)

    def set_supply(self, supply: Coins) -> None:
        """Store the total supply."""
        for coin in supply:
            self._store.set(SUPPLY + coin.denom.encode(), str(coin.value).encode())

    def set_send_enabled(self, *, default: bool, by_denom: dict[str, bool]) -> None:
        """Store which denominations may be sent."""
        self._store.set(PARAMS, integer(2, default))
        for denom, enabled in by_denom.items():
            self.enable(denom, enabled=enabled)

    def enable(self, denom: str, *, enabled: bool | None) -> None:
        """Store whether a denomination may be sent; ``None`` stands for the default."""
        key = SEND_ENABLED + denom.encode()
        if enabled is None:
            self._store.delete(key)
        else:
            self._store.set(key, integer(1, enabled))

    def check_send_enabled(self, amount: Coins) -> None:
        """Raise :exc:`TxError` for a denomination that may not be sent."""
        if not amount:
            return
        default = bool(Message(self._store.get(PARAMS) or b"").integer(2))
        for coin in amount:
            key, enabled = SEND_ENABLED + coin.denom.encode(), default
            if self._store.has(key):
                enabled = bool(Message(self._store.get(key) or b"").integer(1))
            if not enabled:
                raise TxError(SEND_DISABLED, f"{coin.denom} transfers are currently disabled")

    def send(self, sender: bytes, recipient: bytes, amount: Coins) -> None:
        """Send coins, and create the recipient's account if it is missing; raise
        :exc:`TxError`."""
        if not coins.is_valid(amount):
            raise TxError(INVALID_COINS, coins.show(amount))
        self._subtract(sender, amount)
        self._add(recipient, amount)
        if not self._accounts.has(recipient):
            self._accounts.add(recipient)
        own = self._show(sender)
        self.events += (
            self._transfer(self._show(recipient), own, amount),
            event("message", sender=own),
        )

    def send_to_many(
        self, sender: bytes, amount: Coins, outputs: Sequence[tuple[bytes, Coins]]
    ) -> None:
        """Send coins to several recipients; ``amount`` is the sum of the outputs. Raise
        :exc:`TxError`."""
        own = self._show(sender)
        self.events.append(event("message", sender=own))
        for recipient, _ in outputs:
            if not self._accounts.has(recipient):
                self._accounts.add(recipient)
        self._subtract(sender, amount)
        for recipient, part in outputs:
            self._add(recipient, part)
            self.events.append(self._transfer(self._show(recipient), own, part))

    def _transfer(self, recipient: str, sender: str, amount: Coins) -> Event:
        return event("transfer", recipient=recipient, sender=sender, amount=coins.show(amount))

    def locked(self, address: bytes) -> Counter[str]:
        """Return the amounts that an account can't spend, by denomination."""
        account = self._accounts.get(address)
        return account.locked(self._time) if account else Counter()

    def _subtract(self, address: bytes, amount: Coins) -> None:
        locked = self.locked(address)
        for coin in amount:
            balance = self.get(address, coin.denom)
            spendable = balance - locked[coin.denom]
            if spendable < 0:
                raise TxError(
                    INSUFFICIENT_FUNDS,
                    "locked amount exceeds account balance funds:"
                    f" {Coin(coin.denom, locked[coin.denom])} > {Coin(coin.denom, balance)}",
                )
            if spendable < coin.value:
                raise TxError(
                    INSUFFICIENT_FUNDS,
                    f"spendable balance {Coin(coin.denom, spendable)} is smaller than {coin}",
                )
            self.set(address, coin.denom, balance - coin.value)
        self.events.append(
            event("coin_spent", spender=self._show(address), amount=coins.show(amount))
        )

    def _add(self, address: bytes, amount: Coins) -> None:
        for coin in amount:
            total = self.get(address, coin.denom) + coin.value
            try:
                coins.check_size(total)
            except InvalidCoins:
                raise Panic("integer overflow") from None
            self.set(address, coin.denom, total)
        self.events.append(
            event("coin_received", receiver=self._show(address), amount=coins.show(amount))
        )

    def all_of(self, address: bytes) -> Coins:
        """Return all balances of an account."""
        prefix = balance_key(address)
        return tuple(
            Coin(key[len(prefix) :].decode(), int(value))
            for key, value in self._store.iterate(prefix)
        )

    def supply(self, denom: str) -> int:
        """Return the total supply of a denomination."""
        return int(self._store.get(SUPPLY + denom.encode()) or b"0")

    def send_to_module(self, sender: bytes, name: str, amount: Coins) -> None:
        """Send coins from an account to a module's account; raise :exc:`TxError`."""
        self.send(sender, self._accounts.module(name), amount)

    def send_between_modules(self, sender: str, recipient: str, amount: Coins) -> None:
        """Send coins from a module's account to another module's; raise :exc:`TxError`."""
        self.send_to_module(module_address(sender), recipient, amount)

    def send_from_module(self, name: str, recipient: bytes, amount: Coins) -> None:
        """Send coins from a module's account to an account; raise :exc:`TxError`."""
        if self._accounts.is_blocked(recipient):
            raise TxError(
                UNAUTHORIZED, f"{self._show(recipient)} is not allowed to receive funds"
            )
        self.send(module_address(name), recipient, amount)

    def delegate(self, delegator: bytes, name: str, amount: Coins) -> None:
        """Move coins that are delegated to a module's account; raise :exc:`TxError`."""
        pool = self._accounts.module(name)
        self._accounts.get(pool)
        if not coins.is_valid(amount):
            raise TxError(INVALID_COINS, coins.show(amount))
        for coin in amount:
            balance = self.get(delegator, coin.denom)
            if balance < coin.value:
                owned = Coin(coin.denom, balance)
                raise TxError(
                    INSUFFICIENT_FUNDS,
                    f"failed to delegate; {owned} is smaller than {coins.show(amount)}",
                )
            self.set(delegator, coin.denom, balance - coin.value)
        self._track(
            "delegation", delegator, lambda each: each.track_delegation(self._time, amount)
        )
        self.events.append(
            event("coin_spent", spender=self._show(delegator), amount=coins.show(amount))
        )
        self._add(pool, amount)

    def undelegate(self, name: str, delegator: bytes, amount: Coins) -> None:
        """Move coins that are no longer delegated from a module's account back to their
        owner; raise :exc:`TxError`."""
        pool = self._accounts.module(name)
        self._accounts.get(pool)
        if not coins.is_valid(amount):
            raise TxError(INVALID_COINS, coins.show(amount))
        self._subtract(pool, amount)
        self._track("undelegation", delegator, lambda each: each.track_undelegation(amount))
        self._add(delegator, amount)

    def _track(self, name: str, delegator: bytes, change: Callable[[Vesting], Vesting]) -> None:
        """Change the schedule of a vesting account; raise :exc:`TxError` for an account that
        does not exist."""
        account = self._accounts.get(delegator)
        if account is None:
            text = f"account {self._show(delegator)} does not exist"
            raise TxError(UNKNOWN_ADDRESS, f"failed to track {name}: {text}")
        if account.vesting:
            changed = replace(account, vesting=change(account.vesting))
            self._accounts.set(delegator, changed)

    def mint(self, name: str, amount: Coins) -> None:
        """Create coins in a module's account."""
        address = self._accounts.module(name)
        self._add(address, amount)
        for coin in amount:
            self._change_supply(coin.denom, coin.value)
        self.events.append(
            event("coinbase", minter=self._show(address), amount=coins.show(amount))
        )

    def burn(self, name: str, amount: Coins) -> None:
        """Destroy coins of a module's account; raise :exc:`TxError`."""
        address = self._accounts.module(name)
        self._subtract(address, amount)
        for coin in amount:
            self._change_supply(coin.denom, -coin.value)
        self.events.append(event("burn", burner=self._show(address), amount=coins.show(amount)))

    def _change_supply(self, denom: str, by: int) -> None:
        total = self.supply(denom) + by
        if total:
            self._store.set(SUPPLY + denom.encode(), str(total).encode())
        else:
            self._store.delete(SUPPLY + denom.encode())
