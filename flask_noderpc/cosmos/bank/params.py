"""Checks of parameters, in the genesis state and in proposals of governance, with the SDK's
texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ..protocol import coins, decimals
from ..protocol.coins import InvalidCoins
from ..protocol.fields import Values
from ..protocol.records import encode
from .context import Context
from .errors import INTERNAL, TxError
from .genesis_json import Item
from .genesis_values import read
from .messages import Handle


class Params(Protocol):
    """Parameters of a module."""

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""


P = TypeVar("P", bound=Params)


def read_params(kind: type[P], given: Item) -> P:
    """Return parameters from their JSON in the genesis state; raise
    :exc:`~.genesis_json.InvalidState`."""
    params = read(kind, given)
    given.read(lambda _: params.check(), "parameters")
    return params


def updating(kind: Callable[..., Params], store: bytes, key: bytes) -> Handle:
    """Return a function that executes a message with new parameters of a module, which are
    stored under a key of the module's store."""

    def update(context: Context, message: Values) -> None:
        params = kind(**message["params"])
        params.check()
        context.store(store).set(key, encode(params))

    return update


def check_positive(shown: str, value: int, text: str = "") -> None:
    """Raise :exc:`TxError` unless a parameter is positive; ``text`` is the value as the error
    shows it."""
    if value <= 0:
        raise TxError(INTERNAL, f"{shown} must be positive: {text or value}")


def check_denom(shown: str, denom: str) -> None:
    """Raise :exc:`TxError` unless a parameter is a denomination."""
    if not denom.strip():
        raise TxError(INTERNAL, f"{shown} denom cannot be blank")
    try:
        coins.check_denom(denom)
    except InvalidCoins as error:
        raise TxError(INTERNAL, str(error)) from None


def check_rate(
    shown: str,
    rate: int | None,
    *,
    nil: str = "cannot be nil: <nil>",
    negative: str = "cannot be negative",
    large: str = "too large",
) -> None:
    """Raise :exc:`TxError` unless a parameter is a decimal number from 0 to 1."""
    if rate is None:
        raise TxError(INTERNAL, f"{shown} {nil}")
    if rate < 0:
        raise TxError(INTERNAL, f"{shown} {negative}: {decimals.show(rate)}")
    if rate > decimals.ONE:
        raise TxError(INTERNAL, f"{shown} {large}: {decimals.show(rate)}")
