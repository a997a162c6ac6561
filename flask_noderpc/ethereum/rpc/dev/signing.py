"""Handlers that sign with development keys, and send for impersonated accounts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .... import jsoncodec
from ....errors import NonceTaken
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....protocol.secp256k1eth import Key
from ....wire.json_schema import typed
from ....wire.params import ParamField
from ...domain.execution import CallArgs
from ...domain.records import ZERO_ADDRESS, Transaction
from ...protocol.crypto import DEV_KEYS, personal_digest
from ...protocol.execution import Receipt
from ...protocol.transactions import decode, encode_unsigned, signed
from ...protocol.typed_data import typed_digest
from ...protocol.validity import check_tip
from ..codec.params import Address, Anything, Bool, Data
from ..errors import EvmError
from ..execution.sending import (
    FillParams,
    add_to_mempool,
    check_fee,
    fill_transaction,
    pending_nonce,
    receipt_of,
    settle,
)
from ..queries import fees

_MEMO = "evm wallet"

# Maximum number of nonces to try: another process may use the same nonce at the same time, and
# the one that is refused tries the next nonce.
_MAX_TRIES = 20
_TAKEN = ("already known", "nonce too low")


class Wallet:
    """Private keys by address, and the addresses that are impersonated.

    Impersonation applies to this process only.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = {key.address: key for key in keys}
        self._names: dict[bytes, None] = {}
        self.any_name = False
        self.lock = threading.Lock()
        """Held from the choice of a nonce until its transaction is in the mempool."""

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The addresses of the keys, in order, and the impersonated addresses."""
        return tuple(dict.fromkeys((*self._keys, *self._names)))

    def key(self, address: bytes) -> Key:
        """Return the key of an account; raise :exc:`.errors.EvmError` for an unknown
        account."""
        if address not in self._keys:
            raise EvmError("unknown account")
        return self._keys[address]

    def impersonate(self, address: bytes) -> None:
        """Let transactions be sent from this account without its key."""
        self._names[address] = None

    def stop_impersonating(self, address: bytes) -> None:
        """Stop the impersonation of this account."""
        self._names.pop(address, None)

    def check(self, sender: bytes) -> None:
        """Raise :exc:`.errors.EvmError` if an account has no key and is not impersonated."""
        if not self.any_name and sender not in self._names:
            self.key(sender)

    def sign(self, tx: Transaction) -> Transaction:
        """Return a transaction with its sender's signature, or unsigned for an impersonated
        sender."""
        key = self._keys.get(tx.sender)
        if key is not None:
            return decode(signed(tx, key))
        self.check(tx.sender)
        return unsigned(tx)


def unsigned(tx: Transaction) -> Transaction:
    """Return a transaction without a signature, with its sender, who is not checked."""
    return decode(encode_unsigned(tx.sender, tx), unsigned=True)


def wallet(ctx: Context) -> Wallet:
    """Return the wallet of a mount."""
    if _MEMO not in ctx.memo:
        # Two threads may both create a wallet; setdefault keeps the first.
        ctx.memo.setdefault(_MEMO, Wallet(DEV_KEYS if ctx.settings.dev else ()))
    found: Wallet = ctx.memo[_MEMO]
    return found


def accounts(ctx: Context, params: NoParams) -> tuple[bytes, ...]:
    """The accounts of a development chain, and impersonated accounts; empty on other chains."""
    return wallet(ctx).addresses


def send(ctx: Context, params: FillParams) -> bytes:
    """Fill in, sign and send a transaction; return its hash."""
    tx = fill_and_submit(ctx, params.args)
    settle(ctx, tx)
    return tx.hash


def send_sync(ctx: Context, params: FillParams) -> Receipt:
    """Fill in, sign and send a transaction, and wait for its receipt."""
    return receipt_of(ctx, lambda: send(ctx, params))


def send_unsigned(ctx: Context, params: FillParams) -> bytes:
    """Fill in and send a transaction from any account without a signature; return its hash."""
    tx = _submit(ctx, params.args, unsigned)
    settle(ctx, tx)
    return tx.hash


def fill_and_submit(ctx: Context, args: CallArgs) -> Transaction:
    """Fill in and sign a transaction, and add it to the mempool."""
    wallet(ctx).check(args.sender or ZERO_ADDRESS)
    return _submit(ctx, args, wallet(ctx).sign)


_Sign = Callable[[Transaction], Transaction]


def _submit(ctx: Context, args: CallArgs, sign: _Sign) -> Transaction:
    tx = fill_transaction(ctx, args)
    check_tip(tx, fees.base_fee(ctx, NoParams()))
    if args.nonce is None:
        return _submit_with_next_nonce(ctx, tx, sign)
    tx = sign(tx)
    add_to_mempool(ctx, tx, partial(ctx.backend.mempool.submit_local, replaces=True))
    return tx


def _submit_with_next_nonce(ctx: Context, tx: Transaction, sign: _Sign) -> Transaction:
    """Add a transaction to the mempool with the sender's next free nonce; return it."""
    local_wallet, submit = (
        wallet(ctx),
        partial(ctx.backend.mempool.submit_local, replaces=False),
    )
    with local_wallet.lock:
        for _ in range(_MAX_TRIES):
            submitted = sign(replace(tx, nonce=pending_nonce(ctx, tx.sender)))
            try:
                add_to_mempool(ctx, submitted, submit)
                return submitted
            except NonceTaken:
                continue
            except EvmError as error:
                if not error.text.startswith(_TAKEN):
                    raise
    raise EvmError(
        f"other transactions took the {_MAX_TRIES} nonces that were tried; send it again"
    )


def sign_transaction(ctx: Context, params: FillParams) -> dict[str, Any]:
    """Fill in and sign a transaction, without sending it."""
    args = params.args
    sender = args.sender or ZERO_ADDRESS
    key = wallet(ctx).key(sender)
    if args.nonce is None:
        args = replace(args, nonce=pending_nonce(ctx, sender))
    tx = decode(signed(fill_transaction(ctx, args), key))
    check_fee(ctx, tx)
    return {"raw": tx.raw, "tx": tx}


@dataclass(frozen=True, slots=True)
class Message(Params):
    """Parameters of ``eth_sign``."""

    address: bytes = param(Address(), doc="Address that signs.")
    message: bytes = param(Data(), doc="The message.")


def sign(ctx: Context, params: Message) -> bytes:
    """Signature of a message (EIP-191)."""
    return wallet(ctx).key(params.address).sign_digest(personal_digest(params.message))


@dataclass(frozen=True, slots=True)
class PersonalMessage(Params):
    """Parameters of ``personal_sign``."""

    message: bytes = param(Data(), doc="The message.")
    address: bytes = param(Address(), doc="Address that signs.")
    password: str | None = param(
        Anything(), default=None, doc="Ignored: the keys have no password."
    )


def personal_sign(ctx: Context, params: PersonalMessage) -> bytes:
    """Signature of a message (EIP-191); the parameters are message, then address."""
    return sign(ctx, Message(params.address, params.message))


class TypedData(ParamField):
    """Structured data (EIP-712), as a JSON object or as its JSON in a string."""

    json_type = "object"
    in_json = typed("object", "string")

    def from_json(self, value: Any) -> bytes:
        """Return the digest to sign; raise :exc:`ValueError` for invalid data."""
        if isinstance(value, str):
            try:
                value = jsoncodec.decode(value.encode())
            except jsoncodec.NotJSON as error:
                raise ValueError(f"typed data: {error}") from None
        return typed_digest(value)


@dataclass(frozen=True, slots=True)
class TypedDataParams(Params):
    """Parameters of ``eth_signTypedData``."""

    address: bytes = param(Address(), doc="Address that signs.")
    digest: bytes = param(TypedData(), doc="Structured data: types, domain and message.")


def sign_typed_data(ctx: Context, params: TypedDataParams) -> bytes:
    """Signature of structured data (EIP-712)."""
    return wallet(ctx).key(params.address).sign_digest(params.digest)


@dataclass(frozen=True, slots=True)
class Name(Params):
    """Parameters of methods about an impersonated account."""

    address: bytes = param(Address(), doc="Address of the account.")


def impersonate(ctx: Context, params: Name) -> None:
    """Let ``eth_sendTransaction`` send from an account without its key."""
    wallet(ctx).impersonate(params.address)


def stop_impersonating(ctx: Context, params: Name) -> None:
    """Stop the impersonation of an account."""
    wallet(ctx).stop_impersonating(params.address)


@dataclass(frozen=True, slots=True)
class SwitchParams(Params):
    """Parameters of ``anvil_autoImpersonateAccount``."""

    on: bool = param(Bool(), doc="True to impersonate every account, false to stop it.")


def impersonate_any(ctx: Context, params: SwitchParams) -> None:
    """Start or stop the impersonation of all accounts."""
    wallet(ctx).any_name = params.on
