"""Context of a transaction: the state, the block, its gas and its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from ...domain.abci import Event
from ..protocol import bech32
from .accounts import Accounts
from .balances import Balances
from .errors import INTERNAL, LOGIC, UNKNOWN_ADDRESS, TxError
from .gas import GasMeter
from .state import ACCOUNTS, BANK, Branch, Head, Store

_MAX_ADDRESS = 255


class Mode(Enum):
    """Purpose for which a transaction is run."""

    CHECK = auto()
    RECHECK = auto()
    DELIVER = auto()
    SIMULATE = auto()


class WrongPrefix(TxError):
    """The address has the prefix of another chain."""

    def __init__(self, expected: str, found: str) -> None:
        self.found = found
        super().__init__(
            LOGIC,
            f"hrp does not match bech32 prefix: expected '{expected}' got '{found}'",
        )


@dataclass(frozen=True, slots=True)
class Codec:
    """Addresses as text, with a prefix."""

    prefix: str

    def show(self, address: bytes) -> str:
        """Return the text of an address."""
        return bech32.encode(self.prefix, address)

    def parse(self, text: str) -> bytes:
        """Return the address of a text; raise :exc:`TxError`."""
        if not text.strip():
            raise TxError(INTERNAL, "empty address string is not allowed")
        try:
            prefix, address = bech32.decode(text)
        except bech32.InvalidBech32 as error:
            raise TxError(INTERNAL, str(error)) from None
        if prefix != self.prefix:
            raise WrongPrefix(self.prefix, prefix)
        if not address:
            raise TxError(UNKNOWN_ADDRESS, "addresses cannot be empty")
        if len(address) > _MAX_ADDRESS:
            text = f"address max length is {_MAX_ADDRESS}, got {len(address)}"
            raise TxError(UNKNOWN_ADDRESS, text)
        return address

    def parse_message(self, text: str) -> bytes:
        """Return the address of a text; where messages are checked, the SDK has another error
        for a wrong prefix."""
        try:
            return self.parse(text)
        except WrongPrefix as error:
            text = f"invalid Bech32 prefix; expected {self.prefix}, got {error.found}"
            raise TxError(INTERNAL, text) from None


@dataclass(frozen=True, slots=True)
class Environment:
    """The block in which transactions run, or the last block during checks."""

    head: Head
    height: int
    time: int
    """Nanoseconds since 1970."""

    @property
    def codec(self) -> Codec:
        """The codec of addresses."""
        return Codec(self.head.prefix)


@dataclass(slots=True)
class Context:
    """State that a message reads and writes; the writes of a failed message are dropped."""

    branch: Branch
    environment: Environment
    meter: GasMeter
    events: list[Event] = field(default_factory=list)

    @property
    def codec(self) -> Codec:
        """The codec of addresses."""
        return self.environment.codec

    @property
    def accounts(self) -> Accounts:
        """Accounts by address."""
        return Accounts(self.store(ACCOUNTS), self.codec.show)

    @property
    def balances(self) -> Balances:
        """Balances by address and denomination."""
        store = self.store(BANK)
        return Balances(store, self.accounts, self.codec.show, self.events)

    def store(self, prefix: bytes) -> Store:
        """Return the store of all keys with a prefix; the prefix of your own store ends in
        ``/``."""
        return Store(self.branch, prefix, self.meter)
