"""Accounts, like the SDK's keeper of x/auth: reads and writes have its order, as they cost
gas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

from ...protocol.protobuf import Message
from ..protocol import keys
from ..protocol.fields import ANY
from ..protocol.keys import Key
from ..protocol.proto import MESSAGES
from . import vesting as vestings
from .errors import INTERNAL, TxError
from .state import Store
from .vesting import Vesting

BASE, MODULE = "/cosmos.auth.v1beta1.BaseAccount", "/cosmos.auth.v1beta1.ModuleAccount"
FEE_COLLECTOR = "fee_collector"

PARAMS_KEY, ACCOUNT_KEY = b"\0", b"\1"
"""Store key of the parameters, and prefix of the accounts' store keys."""

# Number of messages around the base account, by type URL.
_DEPTHS = {MODULE: 1, **dict.fromkeys(vestings.KINDS, 2)}

_NEXT_NUMBER, _BY_NUMBER = b"\2", b"accountNumber"


@lru_cache(maxsize=100)
def module_address(name: str) -> bytes:
    """Return the address of a module's account."""
    return sha256(name.encode()).digest()[:20]


@dataclass(frozen=True, slots=True)
class Account:
    """An account of a user or of a module; ``module`` is the module's name, or empty, and
    ``vesting`` is the schedule of a vesting account."""

    address: str
    number: int = 0
    sequence: int = 0
    key: Key | None = None
    module: str = ""
    permissions: tuple[str, ...] = ()
    vesting: Vesting | None = None

    def locked(self, time: int) -> Counter[str]:
        """Return the amounts that can't be spent at a time, by denomination."""
        return self.vesting.locked(time) if self.vesting else Counter()

    def encode(self) -> bytes:
        """Return the account as an encoded ``Any``, the value in the store."""
        base = MESSAGES.encoder(BASE.removeprefix("/"))(self)
        if self.vesting:
            return self.vesting.encode(base)
        if not self.module:
            return MESSAGES.encode("Any", type_url=BASE, value=base)
        body = MESSAGES.encode(
            MODULE.removeprefix("/"),
            base_account=base,
            name=self.module,
            permissions=self.permissions,
        )
        return MESSAGES.encode("Any", type_url=MODULE, value=body)


def decode(stored: bytes) -> Account:
    """Decode a stored account."""
    # Don't cache large accounts: a sender can choose a multisig key of any size.
    return _cached(stored) if len(stored) <= _CACHED_BYTES else _decode(stored)


def _decode(stored: bytes) -> Account:
    given = Message(stored)
    kind, body = given.text(1), Message(given.blob(2))
    base = Message(_base(given)) if kind in _DEPTHS else body
    key, is_module = base.blob(2), kind == MODULE
    return Account(
        base.text(1),
        base.integer(3),
        base.integer(4),
        keys.decode(ANY.decode(key)) if key else None,
        body.text(2) if is_module else "",
        tuple(body.texts(3)) if is_module else (),
        vestings.decode(kind, body) if kind in vestings.KINDS else None,
    )


def base_of(stored: bytes) -> bytes:
    """Return the encoded base account of a stored account."""
    return _base(Message(stored))


def _base(given: Message) -> bytes:
    body = given.blob(2)
    for _ in range(_DEPTHS.get(given.text(1), 0)):
        body = Message(body).blob(1)
    return body


_CACHED_BYTES = 1_000
_cached = lru_cache(maxsize=10_000)(_decode)


_SHOWN_PARAMS = {
    "tx_sig_limit": "tx signature limit",
    "sig_verify_cost_ed25519": "ED25519 signature verification cost",
    "sig_verify_cost_secp256k1": "SECK256k1 signature verification cost",
    "max_memo_characters": "max memo characters",
    "tx_size_cost_per_byte": "tx size cost per byte",
}


@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/auth, with the SDK's defaults."""

    max_memo_characters: int = 256
    tx_sig_limit: int = 7
    tx_size_cost_per_byte: int = 10
    sig_verify_cost_ed25519: int = 590
    sig_verify_cost_secp256k1: int = 1000

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""
        for name, shown in _SHOWN_PARAMS.items():
            if not getattr(self, name):
                raise TxError(INTERNAL, f"invalid {shown}: 0")

    def encode(self) -> bytes:
        """Return the encoded message."""
        return MESSAGES.encoder("AuthParams")(self)


@lru_cache(maxsize=100)
def _decode_params(stored: bytes) -> Params:
    given = Message(stored)
    return Params(*(given.integer(number) for number in range(1, 6)))


class Accounts:
    """Accounts in the store, by address; ``show`` returns an address in bech32, and ``modules``
    has the permissions of modules' accounts, by name."""

    def __init__(
        self,
        store: Store,
        show: Callable[[bytes], str],
        modules: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._store, self._show, self._modules = store, show, modules

    def params(self) -> Params:
        """Return the parameters of x/auth."""
        return _decode_params(self._store.get(PARAMS_KEY) or b"")

    def set_params(self, params: Params) -> None:
        """Store the parameters of x/auth."""
        self._store.set(PARAMS_KEY, params.encode())

    def get(self, address: bytes) -> Account | None:
        """Return an account, or ``None``."""
        stored = self._store.get(ACCOUNT_KEY + address)
        return None if stored is None else decode(stored)

    def has(self, address: bytes) -> bool:
        """Return true if the account exists."""
        return self._store.has(ACCOUNT_KEY + address)

    def set(self, address: bytes, account: Account) -> None:
        """Store an account, and its address under the account number."""
        before = self.get(address)
        if before is not None:
            self._store.delete(number_key(before.number))
        key = number_key(account.number)
        self._store.has(key)
        self._store.set(key, address)
        self._store.set(ACCOUNT_KEY + address, account.encode())

    def next_number(self) -> int:
        """Return the next account number, and increment it."""
        number = int.from_bytes(self._store.get(_NEXT_NUMBER) or b"")
        self._store.set(_NEXT_NUMBER, (number + 1).to_bytes(8))
        return number

    def add(self, address: bytes) -> None:
        """Create the account of a new user, with the next account number."""
        number = self.next_number()
        self.set(address, Account(self._show(address), number))

    def module(self, name: str) -> bytes:
        """Return the address of a module's account, and create the account if it is
        missing."""
        address = module_address(name)
        if self.get(address) is None:
            account = Account(self._show(address), module=name, permissions=self._modules[name])
            self.set(address, replace(account, number=self.next_number()))
        return address

    def is_blocked(self, address: bytes) -> bool:
        """Return true if the address is of a module's account, which can't receive
        transfers."""
        return any(address == module_address(name) for name in self._modules)


def number_key(number: int) -> bytes:
    """Return the store key under which the address with an account number is stored."""
    return _BY_NUMBER + number.to_bytes(8)
