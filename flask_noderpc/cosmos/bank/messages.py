"""Message handlers of x/bank, and the registry to which a chain adds handlers of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..protocol import coins, keys
from ..protocol.amino import Amino
from ..protocol.coins import Coins, InvalidCoins
from ..protocol.fields import ANY_AMINO, AnyValue, Kind, Values
from ..protocol.messages import (
    MSG_MULTI_SEND,
    MSG_SEND,
    MSG_SET_SEND_ENABLED,
    MSG_UPDATE_AUTH_PARAMS,
    MSG_UPDATE_BANK_PARAMS,
    MessageType,
    Msg,
    decode,
)
from ..protocol.proto import MESSAGES
from .accounts import BASE, MODULE, Params, module_address
from .context import Codec, Context
from .errors import (
    INPUT_OUTPUT_MISMATCH,
    INTERNAL,
    INVALID_ADDRESS,
    INVALID_COINS,
    INVALID_REQUEST,
    INVALID_SIGNER,
    MULTIPLE_SENDERS,
    NO_INPUTS,
    NO_OUTPUTS,
    UNAUTHORIZED,
    Code,
    Panic,
    TxError,
)
from .vesting import KINDS as VESTING

MSG_INTERFACE = "cosmos.base.v1beta1.Msg"
"""Name of the interface that all messages implement."""

_CREATE_VESTING = "/cosmos.vesting.v1beta1.MsgCreateVestingAccount"

Handle = Callable[[Context, Values], bytes | None]
"""A function that executes a message and returns the encoded response, or ``None`` if it is
empty; it may raise :exc:`TxError`."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A message type, and the function that executes its messages."""

    type: MessageType
    handle: Handle


class Registry:
    """The message types of a chain."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers = {handler.type.type_url: handler for handler in handlers}
        # Messages may be inside of others.
        ANY_AMINO.update({url: _amino(each.type) for url, each in self._handlers.items()})
        self._kinds: dict[str, Kind] = {
            **keys.KINDS,
            **{name: handler.type.kind for name, handler in self._handlers.items()},
            **{
                name: kind
                for handler in self._handlers.values()
                for name, kind in handler.type.nested.items()
            },
            # Response types can be resolved, although they can't be sent as messages.
            **{
                handler.type.response_url: Kind(f"{handler.type.kind.name}Response")
                for handler in self._handlers.values()
            },
        }

    @property
    def interfaces(self) -> Mapping[str, Collection[str]]:
        """Type URLs of the types that may be in an ``Any``, by the name of the interface that
        they implement."""
        types = [each.type for each in self._handlers.values()]
        return {
            MSG_INTERFACE: self._handlers.keys(),
            "cosmos.auth.v1beta1.AccountI": (
                *(BASE, MODULE),
                *(VESTING if self.has(_CREATE_VESTING) else ()),
            ),
            "cosmos.crypto.PubKey": keys.KINDS.keys(),
            "cosmos.tx.v1beta1.MsgResponse": [each.response_url for each in types],
            **{each.interface: each.nested.keys() for each in types if each.interface},
        }

    @cached_property
    def amino(self) -> Amino:
        """Conversion of the chain's transactions to and from binary amino."""
        types = [each.type for each in self._handlers.values()]
        names = {each.type_url: each.binary_name or each.amino_name for each in types}
        names |= {
            url: f"cosmos-sdk/{url.rpartition('.')[2]}"
            for each in types
            for url in each.nested
            # Amino has types of its own for the members of a oneof.
            if not any(field.mark == "?" for field in MESSAGES[url.removeprefix("/")])
        }
        # SDK: messages whose name is their type URL have no binary form.
        return Amino(
            {
                url: name
                for url, name in names.items()
                if name and name != url and url.removeprefix("/") in MESSAGES
            }
        )

    def resolve(self, type_url: str) -> Kind | None:
        """Return the type of a message, response or key by type URL, or ``None``."""
        return self._kinds.get(type_url)

    def decode(self, given: AnyValue) -> Msg:
        """Return the message in an ``Any``; raise
        :exc:`~flask_noderpc.cosmos.protocol.fields.InvalidMessage`."""
        handler = self._handlers.get(given.type_url)
        found = decode(given, handler.type if handler else None)
        for each in found.values[found.type.messages] if found.type.messages else ():
            self.decode(each)
        return found

    def has(self, type_url: str) -> bool:
        """Return true if the chain has messages of a type."""
        return type_url in self._handlers

    def handle(self, context: Context, message: Msg) -> bytes:
        """Execute a message; return its encoded response."""
        return self._handlers[message.type.type_url].handle(context, message.values) or b""


def _amino(kind: MessageType) -> Callable[[bytes], object]:
    return lambda data: Msg(kind, kind.kind.decode(data)).amino_json()


def of_governance(type: MessageType, handle: Handle, refusal: Code = INVALID_SIGNER) -> Handler:
    """Return the handler of a message that only the account of the module gov can sign;
    ``refusal`` is the kind of error for other signers."""

    def handle_checked(context: Context, message: Values) -> bytes | None:
        expected, given = context.codec.show(module_address("gov")), message["authority"]
        if given != expected:
            raise TxError(refusal, f"invalid authority; expected {expected}, got {given}")
        return handle(context, message)

    return Handler(type, handle_checked)


def _send(context: Context, message: Values) -> None:
    sender = parse_address(context.codec, "from", message["from_address"])
    recipient = parse_address(context.codec, "to", message["to_address"])
    amount: Coins = message["amount"]
    check_amount(amount)
    context.balances.check_send_enabled(amount)
    refuse_blocked(context, recipient, message["to_address"])
    context.balances.send(sender, recipient, amount)


def parse_address(codec: Codec, name: str, text: str) -> bytes:
    """Return an address in a message; raise :exc:`TxError`, whose text calls it ``name``."""
    try:
        return codec.parse(text)
    except TxError as error:
        raise TxError(INVALID_ADDRESS, f"invalid {name} address: {error.log}") from None


def refuse_blocked(context: Context, address: bytes, text: str) -> None:
    """Raise :exc:`TxError` for the address of a module's account."""
    if context.accounts.is_blocked(address):
        raise TxError(UNAUTHORIZED, f"{text} is not allowed to receive funds")


def _multi_send(context: Context, message: Values) -> None:
    inputs, outputs = message["inputs"], message["outputs"]
    if not inputs:
        raise TxError(NO_INPUTS)
    if len(inputs) != 1:
        raise TxError(MULTIPLE_SENDERS)
    if not outputs:
        raise TxError(NO_OUTPUTS)
    for name, part in (("input", inputs[0]), *(("output", each) for each in outputs)):
        _check_part(context, name, part)
    total = total_of(*(each["coins"] for each in outputs))
    if total != inputs[0]["coins"]:
        raise TxError(INPUT_OUTPUT_MISMATCH)
    context.balances.check_send_enabled(inputs[0]["coins"])
    recipients = [context.codec.parse(each["address"]) for each in outputs]
    for recipient, each in zip(recipients, outputs, strict=True):
        refuse_blocked(context, recipient, each["address"])
    context.balances.send_to_many(
        context.codec.parse(inputs[0]["address"]),
        inputs[0]["coins"],
        [(to, each["coins"]) for to, each in zip(recipients, outputs, strict=True)],
    )


def total_of(*parts: Coins) -> Coins:
    """Return the sum of coins; raise :exc:`Panic` for an amount of more than 256 bits."""
    try:
        return coins.add(*parts)
    except InvalidCoins:
        raise Panic("integer overflow") from None


def _check_part(context: Context, name: str, part: dict[str, Any]) -> None:
    try:
        context.codec.parse_message(part["address"])
    except TxError as error:
        raise TxError(INVALID_ADDRESS, f"invalid {name} address: {error.log}") from None
    check_amount(part["coins"])


def check_amount(amount: Coins) -> None:
    """Raise :exc:`TxError` for coins that are invalid, or for none."""
    if not (amount and coins.is_valid(amount)):
        raise TxError(INVALID_COINS, coins.show(amount))


def _update_bank_params(context: Context, message: Values) -> None:
    params = message["params"]
    if params["send_enabled"]:
        text = "use of send_enabled in params is no longer supported"
        raise TxError(INTERNAL, text)
    default = params["default_send_enabled"]
    context.balances.set_send_enabled(default=default, by_denom={})


def _set_send_enabled(context: Context, message: Values) -> None:
    seen = set()
    for each in message["send_enabled"]:
        denom = each["denom"]
        if denom in seen:
            text = f'duplicate denom entries found for "{denom}"'
            raise TxError(INVALID_REQUEST, text)
        seen.add(denom)
        _check_denom(denom, "SendEnabled")
    for denom in message["use_default_for"]:
        _check_denom(denom, "UseDefaultFor")
    for each in message["send_enabled"]:
        context.balances.enable(each["denom"], enabled=each["enabled"])
    for denom in message["use_default_for"]:
        context.balances.enable(denom, enabled=None)


def _check_denom(denom: str, name: str) -> None:
    try:
        coins.check_denom(denom)
    except InvalidCoins as error:
        text = f'invalid {name} denom "{denom}": {error}'
        raise TxError(INVALID_REQUEST, text) from None


def _update_auth_params(context: Context, message: Values) -> None:
    expected = context.codec.show(module_address("gov"))
    if message["authority"] != expected:
        raise TxError(
            INTERNAL,
            "expected gov account as only signer for proposal message; invalid authority;"
            f" expected {expected}, got {message['authority']}",
        )
    params = Params(**message["params"])
    params.check()
    context.accounts.set_params(params)


BANK_HANDLERS = (
    Handler(MSG_SEND, _send),
    Handler(MSG_MULTI_SEND, _multi_send),
    of_governance(MSG_UPDATE_BANK_PARAMS, _update_bank_params),
    of_governance(MSG_SET_SEND_ENABLED, _set_send_enabled),
    Handler(MSG_UPDATE_AUTH_PARAMS, _update_auth_params),
)
"""Handlers of x/auth and x/bank."""
