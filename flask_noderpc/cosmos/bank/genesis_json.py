"""Parsing of a genesis document's ``app_state``, with errors that name the invalid member."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from ...errors import short_repr
from .errors import TxError

T = TypeVar("T")

_MAX_DIGITS = 20
# Error texts are cut, as the SDK's errors repeat the invalid value.
_MAX_TEXT = 400


class InvalidState(ValueError):
    """Error for an ``app_state`` that the Cosmos SDK would not accept; it names the member."""


@dataclass(frozen=True, slots=True)
class Item:
    """A JSON value of the state and its path, for errors; a missing member has the value
    null."""

    value: Any
    path: str = ""

    def __getitem__(self, name: str) -> Item:
        """Return a member of an object; a missing one, or one of null, is null."""
        path = f"{self.path}.{name}" if self.path else name
        return Item(self.members.get(name), path)

    def __iter__(self) -> Iterator[Item]:
        """Yield the elements of a list; null counts as an empty list."""
        if not isinstance(self.value, list | None):
            self._refuse_kind("a list")
        for at, each in enumerate(self.value or ()):
            yield Item(each, f"{self.path}[{at}]")

    @property
    def members(self) -> Mapping[str, Any]:
        """Members of an object by name; null counts as an empty object."""
        if not isinstance(self.value, dict | None):
            self._refuse_kind("an object")
        return self.value or {}

    def text(self) -> str:
        """Return a string; null counts as an empty string."""
        if not isinstance(self.value, str | None):
            self._refuse_kind("a string")
        return self.value or ""

    def required_text(self) -> str:
        """Return a string; raise :exc:`InvalidState` if it is empty."""
        return self.text() or self._refuse_kind("a string that is not empty")

    def flag(self, *, default: bool = False) -> bool:
        """Return a boolean; null counts as ``default``."""
        if not isinstance(self.value, bool | None):
            self._refuse_kind("true or false")
        return default if self.value is None else self.value

    def whole_number(self, bits: int = 64) -> int:
        """Return a whole number of at most ``bits`` bits from a JSON number or string; null is
        0."""
        text = "0" if self.value is None else str(self.value)
        is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
        if isinstance(self.value, bool | float) or not is_number or int(text) >> bits:
            self._refuse_kind(f"a whole number from 0 to {(1 << bits) - 1}")
        return int(text)

    def read(self, parse: Callable[[Any], T], expected: str) -> T:
        """Return ``parse(value)``; raise :exc:`InvalidState` if ``parse`` fails.

        ``expected`` describes a valid value in the error.
        """
        try:
            return parse(self.value)
        except (InvalidState, RecursionError):
            raise
        except (TxError, ValueError) as error:
            self.refuse(str(error))
        except (KeyError, TypeError, AttributeError):
            self._refuse_kind(expected)

    def refuse(self, reason: str) -> NoReturn:
        """Raise :exc:`InvalidState` for this value."""
        text = f"{self.path}: {reason}" if self.path else reason
        raise InvalidState(text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…")

    def _refuse_kind(self, expected: str) -> NoReturn:
        is_absent = self.value is None
        given = "but it is absent or null" if is_absent else f"got {short_repr(self.value)}"
        self.refuse(f"expected {expected}, {given}")


_READ = "expected the genesis of Cosmos SDK 0.40 or later"
_MIGRATE = "convert it with the `migrate` command of the chain's own program"


def refuse_older(state: Item) -> None:
    """Raise :exc:`InvalidState` for a state of the Cosmos SDK before 0.40."""
    found = ""
    if isinstance(state["accounts"].value, list):
        found = "`accounts` is a top-level member, as before 0.38"
    elif isinstance(state["supply"].value, dict):
        found = "there is a module `supply`, as before 0.40"
    elif isinstance(state["bank"]["send_enabled"].value, bool):
        found = "`bank.send_enabled` is a boolean, as before 0.40"
    elif any(map(_is_amino, state["auth"]["accounts"])):
        found = "an account has `type` and `value`, as before 0.40"
    if found:
        raise InvalidState(f"{_READ}, got an older one: {found}; {_MIGRATE}")


def _is_amino(account: Item) -> bool:
    names = account.value.keys() if isinstance(account.value, dict) else set()
    return "@type" not in names and names >= {"type", "value"}
