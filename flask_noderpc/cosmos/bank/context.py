"""Context of a message or a module: the state, the block, its gas and its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from ...domain.abci import Event
from ...domain.validator import ValidatorUpdate
from ..protocol import bech32
from ..protocol.messages import Msg
from .accounts import FEE_COLLECTOR, Accounts
from .balances import Balances
from .consensus import NO_BLOCK, BlockInfo
from .errors import INTERNAL, LOGIC, UNKNOWN_ADDRESS, TxError
from .gas import GasMeter
from .state import ACCOUNTS, BANK, Branch, Head, Store

if TYPE_CHECKING:
    from .messages import Registry
    from .module import Module

_MAX_ADDRESS = 255


class Mode(Enum):
    """Purpose for which a transaction is run."""

    CHECK = auto()
    RECHECK = auto()
    DELIVER = auto()
    SIMULATE = auto()


class WrongPrefix(TxError):
    """Error for an address that has another chain's prefix."""

    def __init__(self, expected: str, found: str) -> None:
        self.found = found
        super().__init__(
            LOGIC,
            f"hrp does not match bech32 prefix: expected '{expected}' got '{found}'",
        )


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion of addresses to and from bech32 with a prefix."""

    prefix: str

    def show(self, address: bytes) -> str:
        """Return an address in bech32."""
        return bech32.encode(self.prefix, address)

    def parse(self, text: str) -> bytes:
        """Return the bytes of a bech32 address; raise :exc:`TxError`."""
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
        """Return the bytes of a bech32 address in a message; raise :exc:`TxError`, whose text
        for a wrong prefix differs from :meth:`parse`, as in the SDK."""
        try:
            return self.parse(text)
        except WrongPrefix as error:
            text = f"invalid Bech32 prefix; expected {self.prefix}, got {error.found}"
            raise TxError(INTERNAL, text) from None


@dataclass(frozen=True, slots=True)
class Environment:
    """The block in which transactions run; in checks, the latest block."""

    head: Head
    height: int
    time: int
    """Nanoseconds since 1970."""
    modules: tuple[Module, ...] = ()
    """Modules that the chain has, because its genesis state has them."""
    messages: Registry | None = None
    """The chain's messages, while transactions run."""
    block: BlockInfo = NO_BLOCK
    """Proposer, votes and evidence, while the modules begin and end a block."""

    @property
    def codec(self) -> Codec:
        """Codec of the chain's addresses."""
        return Codec(self.head.prefix)

    @property
    def is_genesis(self) -> bool:
        """True before the first block, while transactions of the genesis document run."""
        return self.height == 0

    @property
    def operators(self) -> Codec:
        """Codec of validator operators' addresses."""
        return Codec(f"{self.head.prefix}valoper")

    def signers(self, given: Msg) -> Iterator[bytes]:
        """Yield the addresses that must sign a message; raise :exc:`TxError`."""
        codec = self.operators if given.type.is_signed_by_operator else self.codec
        return map(codec.parse, given.signers())

    @property
    def consensus(self) -> Codec:
        """Codec of the addresses of validators' keys."""
        return Codec(f"{self.head.prefix}valcons")

    @property
    def module_accounts(self) -> Mapping[str, tuple[str, ...]]:
        """Permissions of the modules' accounts, by name."""
        return {FEE_COLLECTOR: ()} | {
            name: permissions
            for module in self.modules
            for name, permissions in module.accounts.items()
        }


@dataclass(slots=True)
class Context:
    """State, block, gas and events of a message, or of a module that begins or ends a block;
    the writes of a failed message are dropped."""

    branch: Branch
    environment: Environment
    meter: GasMeter = field(default_factory=GasMeter)
    events: list[Event] = field(default_factory=list)
    validator_updates: list[ValidatorUpdate] = field(default_factory=list)
    """Changes of the validators at the end of a block."""

    @property
    def codec(self) -> Codec:
        """Codec of the chain's addresses."""
        return self.environment.codec

    @property
    def accounts(self) -> Accounts:
        """Accounts by address."""
        own = self.environment.module_accounts
        return Accounts(self.store(ACCOUNTS), self.codec.show, own)

    @property
    def balances(self) -> Balances:
        """Balances by address and denomination."""
        store = self.store(BANK)
        return Balances(
            store, self.accounts, self.codec.show, self.events, self.environment.time
        )

    def branched(self) -> Context:
        """Return a context whose writes and events :meth:`apply` adds to this one."""
        return Context(self.branch.branch(), self.environment, self.meter)

    def apply(self, other: Context) -> None:
        """Add the writes and events of a context that :meth:`branched` returned."""
        self.branch.apply(other.branch)
        self.events += other.events

    def store(self, prefix: bytes) -> Store:
        """Return the store of all keys with a prefix; give your own store a prefix that ends
        in ``/``."""
        return Store(self.branch, prefix, self.meter)
