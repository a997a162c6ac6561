"""Authorizations of messages; SDK: x/authz/generic_authorization.go,
x/bank/types/send_authorization.go, x/staking/types/authz.go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..bank.balances import subtract
from ..bank.context import Context
from ..bank.errors import (
    DUPLICATE_ENTRY,
    INSUFFICIENT_FUNDS,
    INTERNAL,
    INVALID_COINS,
    INVALID_REQUEST,
    INVALID_TYPE,
    UNAUTHORIZED,
    Panic,
    TxError,
)
from ..protocol.coins import Coin
from ..protocol.fields import AnyValue
from ..protocol.messages import MSG_SEND, Msg
from ..protocol.records import decode, encode, name_of, record
from .errors import NEGATIVE_MAX_TOKENS, UNKNOWN_TYPE

_STAKING = "/cosmos.staking.v1beta1."
_STAKING_MESSAGES = {
    1: f"{_STAKING}MsgDelegate",
    2: f"{_STAKING}MsgUndelegate",
    3: f"{_STAKING}MsgBeginRedelegate",
    4: f"{_STAKING}MsgCancelUnbondingDelegation",
}
_GAS_PER_ENTRY = 10


class Accepted(NamedTuple):
    """Result of using an authorization."""

    is_used_up: bool = False
    updated: Authorization | None = None
    """The authorization to store instead; ``None`` leaves it unchanged."""


class Authorization(ABC):
    """Messages that a grantee may send."""

    @property
    @abstractmethod
    def type_url(self) -> str:
        """Type URL of the messages."""

    @abstractmethod
    def accept(self, context: Context, message: Msg) -> Accepted:
        """Use the authorization for a message; raise :exc:`TxError` if it is not allowed."""

    @abstractmethod
    def check(self) -> None:
        """Raise :exc:`TxError` for an invalid authorization."""

    @property
    def any(self) -> AnyValue:
        """The authorization in an ``Any``."""
        return AnyValue(f"/{name_of(type(self))}", encode(self))


@record("cosmos.authz.v1beta1.GenericAuthorization")
@dataclass(frozen=True, slots=True)
class GenericAuthorization(Authorization):
    """All messages of a type."""

    msg: str = ""

    @property
    def type_url(self) -> str:
        return self.msg

    def accept(self, context: Context, message: Msg) -> Accepted:
        return Accepted()

    def check(self) -> None:
        if not self.msg:
            raise TxError(INTERNAL, "msg type cannot be empty")


@record("cosmos.bank.v1beta1.SendAuthorization")
@dataclass(frozen=True, slots=True)
class SendAuthorization(Authorization):
    """Transfers of a number of coins, to some addresses or to any."""

    spend_limit: list[Coin] = field(default_factory=list)
    allow_list: list[str] = field(default_factory=list)

    @property
    def type_url(self) -> str:
        return MSG_SEND.type_url

    def accept(self, context: Context, message: Msg) -> Accepted:
        if message.type is not MSG_SEND:
            raise TxError(INVALID_TYPE, "type mismatch")
        left, is_exceeded = subtract(self.spend_limit, message.values["amount"])
        if is_exceeded:
            text = "requested amount is more than spend limit"
            raise TxError(INSUFFICIENT_FUNDS, text)
        recipient = message.values["to_address"]
        is_allowed = _is_listed(context, recipient, self.allow_list, "send authorization")
        if self.allow_list and not is_allowed:
            raise TxError(UNAUTHORIZED, f"cannot send to {recipient} address")
        if not left:
            return Accepted(is_used_up=True)
        return Accepted(updated=replace(self, spend_limit=left))

    def check(self) -> None:
        if not self.spend_limit:
            raise TxError(INVALID_COINS, "spend limit cannot be nil")
        if any(coin.value <= 0 for coin in self.spend_limit):
            raise TxError(INVALID_COINS, "spend limit must be positive")
        if len(set(self.allow_list)) < len(self.allow_list):
            raise TxError(DUPLICATE_ENTRY)


def _is_listed(context: Context, one: str, listed: list[str], what: str) -> bool:
    for each in listed:
        context.meter.consume(_GAS_PER_ENTRY, what)
        if each == one:
            return True
    return False


@record("StakeValidators")
@dataclass(frozen=True, slots=True)
class StakeValidators:
    """Addresses of operators."""

    address: list[str] = field(default_factory=list)


@record("cosmos.staking.v1beta1.StakeAuthorization")
@dataclass(frozen=True, slots=True)
class StakeAuthorization(Authorization):
    """Messages of staking of one type, for some validators, up to a number of tokens."""

    max_tokens: Coin | None = None
    allow_list: StakeValidators | None = None
    deny_list: StakeValidators | None = None
    authorization_type: int = 0

    @property
    def type_url(self) -> str:
        if self.authorization_type not in _STAKING_MESSAGES:
            text = "cannot normalize authz type with types.AuthorizationType"
            raise Panic(f"{text}: {UNKNOWN_TYPE.text}")
        return _STAKING_MESSAGES[self.authorization_type]

    def accept(self, context: Context, message: Msg) -> Accepted:
        values, what = message.values, "stake authorization"
        if message.type.type_url not in _STAKING_MESSAGES.values():
            raise TxError(INVALID_REQUEST, "unknown msg type")
        validator = values.get("validator_dst_address") or values.get("validator_address", "")
        allowed = self.allow_list.address if self.allow_list else []
        denied = self.deny_list.address if self.deny_list else []
        is_allowed = _is_listed(context, validator, allowed, what)
        is_denied = _is_listed(context, validator, denied, what)
        if is_denied or (allowed and not is_allowed):
            text = f"cannot delegate/undelegate to {validator} validator"
            raise TxError(UNAUTHORIZED, text)
        if self.max_tokens is None:
            return Accepted(updated=self)
        limit, amount = self.max_tokens, values["amount"]
        if limit.denom != amount.denom:
            text = f"invalid coin denoms: {limit.denom}, {amount.denom}"
            raise TxError(INTERNAL, text)
        left = Coin(limit.denom, limit.value - amount.value)
        if left.value < 0:
            raise TxError(INTERNAL, f"negative coin amount: {left}")
        if not left.value:
            return Accepted(is_used_up=True)
        return Accepted(updated=replace(self, max_tokens=left))

    def check(self) -> None:
        if self.max_tokens is not None and self.max_tokens.value < 0:
            raise TxError(NEGATIVE_MAX_TOKENS, f"negative coin amount: {self.max_tokens}")
        if not self.authorization_type:
            raise TxError(UNKNOWN_TYPE)


KINDS: dict[str, type[Authorization]] = {
    f"/{name_of(kind)}": kind
    for kind in (GenericAuthorization, SendAuthorization, StakeAuthorization)
}
"""Types of authorizations by type URL."""


def unpacked(given: AnyValue | None) -> Authorization:
    """Return the authorization in an ``Any``; raise :exc:`TxError`."""
    if given is None:
        raise TxError(INVALID_TYPE, "authorization is nil")
    if given.type_url not in KINDS:
        raise TxError(INVALID_TYPE, "expected <nil>, got <nil>")
    return decode(KINDS[given.type_url], given.value)
