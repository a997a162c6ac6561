"""The module authz: messages, queries and genesis; SDK: x/authz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ... import jsoncodec
from ...domain.time import SECOND, to_text
from ...errors import short_repr
from ...protocol.protobuf import message
from ..bank.balances import event, with_attribute
from ..bank.context import Context
from ..bank.errors import (
    INTERNAL,
    INVALID_REQUEST,
    INVALID_TYPE,
    UNAUTHORIZED,
    TxError,
)
from ..bank.genesis_json import Item
from ..bank.genesis_values import encode as encode_json
from ..bank.genesis_values import time_of
from ..bank.messages import Handler, Registry, parse_address
from ..bank.module import Module
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import QueryContext, coded
from ..protocol.fields import ANY_AMINO, AnyValue, InvalidMessage, Values, declared
from ..protocol.messages import MessageType, Msg
from ..protocol.records import decode, encode, name_of, record
from ..protocol.text import compact
from ..staking.state import sized, time_key
from .authorizations import (
    KINDS,
    Authorization,
    GenericAuthorization,
    SendAuthorization,
    StakeAuthorization,
    unpacked,
)
from .errors import (
    EXPIRED,
    GRANTEE_IS_GRANTER,
    INVALID_EXPIRATION,
    NO_GRANT_KEY,
    NOT_AUTHORIZED,
    NUMBER_OF_SIGNERS,
)
from .proto import ROUTES

_STORE, _GRANTS, _QUEUE = b"authz/", b"\1", b"\2"
_PACKAGE = "cosmos.authz.v1beta1"
_GAS_PER_ENTRY = 20
_VALIDATORS = declared(
    "*types.StakeAuthorization_Validators", "StakeValidators", omits=("address",)
)
_LISTS = {"allow_list": "AllowList", "deny_list": "DenyList"}


def _stake_amino(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a StakeAuthorization in amino JSON, whose list has a type of its own."""
    found: dict[str, Any] = {"Validators": None}
    for name, shown in _LISTS.items():
        if values[name] is not None:
            inside = {name: _VALIDATORS.amino_json(values[name])}
            kind = f"cosmos-sdk/StakeAuthorization/{shown}"
            found["Validators"] = {"type": kind, "value": inside}
    if values["max_tokens"] is not None:
        coin = values["max_tokens"]
        found["max_tokens"] = {"denom": coin.denom, "amount": str(coin.value)}
    if values["authorization_type"]:
        found["authorization_type"] = values["authorization_type"]
    return found


_KINDS = {
    f"/{name_of(GenericAuthorization)}": declared(
        "*authz.GenericAuthorization", name_of(GenericAuthorization)
    ),
    f"/{name_of(SendAuthorization)}": declared(
        "*types.SendAuthorization", name_of(SendAuthorization), omits=("allow_list",)
    ),
    f"/{name_of(StakeAuthorization)}": replace(
        declared(
            "*types.StakeAuthorization",
            name_of(StakeAuthorization),
            allow_list=_VALIDATORS,
            deny_list=_VALIDATORS,
        ),
        amino=_stake_amino,
    ),
}


def _amino(url: str) -> Callable[[bytes], Any]:
    kind, name = _KINDS[url], f"cosmos-sdk/{url.rpartition('.')[2]}"
    return lambda data: {"type": name, "value": kind.amino_json(kind.decode(data))}


ANY_AMINO.update({url: _amino(url) for url in _KINDS})


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    given: AnyValue | None = values["grant"]["authorization"]
    if given is not None and given.type_url and given.type_url not in KINDS:
        raise InvalidMessage(
            f"no concrete type registered for type URL {given.type_url} against interface"
            " *authz.Authorization"
        )
    return values


MSG_GRANT = MessageType(
    f"/{_PACKAGE}.MsgGrant",
    declared(
        "*authz.MsgGrant",
        f"{_PACKAGE}.MsgGrant",
        _checked,
        signer="granter",
        grant=declared("*authz.Grant", "AuthzGrant"),
    ),
    "cosmos-sdk/MsgGrant",
    nested=_KINDS,
    interface=f"{_PACKAGE}.Authorization",
)
MSG_REVOKE = MessageType(
    f"/{_PACKAGE}.MsgRevoke",
    declared("*authz.MsgRevoke", f"{_PACKAGE}.MsgRevoke", signer="granter"),
    "cosmos-sdk/MsgRevoke",
)
MSG_EXEC = MessageType(
    f"/{_PACKAGE}.MsgExec",
    declared("*authz.MsgExec", f"{_PACKAGE}.MsgExec", signer="grantee", omits=("msgs",)),
    "cosmos-sdk/MsgExec",
    messages="msgs",
)


@record("AuthzGrant")
@dataclass(frozen=True, slots=True)
class Grant:
    """An authorization, and the time at which it expires, or ``None``."""

    authorization: AnyValue | None = None
    expiration: int | None = None


@record("GrantAuthorization")
@dataclass(frozen=True, slots=True)
class GrantAuthorization:
    """A grant with its accounts."""

    granter: str = ""
    grantee: str = ""
    authorization: AnyValue | None = None
    expiration: int | None = None


@record("GrantQueueItem")
@dataclass(slots=True)
class QueueItem:
    """Types of the messages whose grants expire at one time."""

    msg_type_urls: list[str] = field(default_factory=list)


class _Authz:
    """Grants in the state of a context."""

    def __init__(self, context: Context) -> None:
        self._context, self._store = context, context.store(_STORE)

    def find(self, granter: bytes, grantee: bytes, url: str) -> Grant | None:
        stored = self._store.get(_key(granter, grantee, url))
        return None if stored is None else decode(Grant, stored)

    def save(
        self, granter: bytes, grantee: bytes, new: Authorization, expiration: int | None
    ) -> None:
        url, now = new.type_url, self._context.environment.time
        if expiration is not None and expiration <= now:
            text = "expiration must be after the current block time"
            raise TxError(
                INVALID_EXPIRATION, f"{text} ({_seconds(now)}), got {_seconds(expiration)}"
            )
        old = self.find(granter, grantee, url)
        before = old.expiration if old else None
        if before is not None and before != expiration:
            self._dequeue(granter, grantee, url, before)
        if expiration is not None and before != expiration:
            key = _queue_key(expiration, granter, grantee)
            queued = decode(QueueItem, self._store.get(key) or b"")
            queued.msg_type_urls.append(url)
            self._store.set(key, encode(queued))
        self._store.set(_key(granter, grantee, url), encode(Grant(new.any, expiration)))
        self._emit("EventGrant", granter, grantee, url)

    def update(self, granter: bytes, grantee: bytes, new: Authorization) -> None:
        found = self.find(granter, grantee, new.type_url)
        if found is None:
            raise TxError(NOT_AUTHORIZED)
        key = _key(granter, grantee, new.type_url)
        self._store.set(key, encode(Grant(new.any, found.expiration)))

    def delete(self, granter: bytes, grantee: bytes, url: str) -> None:
        found, key = self.find(granter, grantee, url), _key(granter, grantee, url)
        if found is None:
            shown = key.decode(errors="replace")
            raise TxError(NOT_AUTHORIZED, f"failed to delete grant with key {shown}")
        if found.expiration is not None:
            self._dequeue(granter, grantee, url, found.expiration)
        self._store.delete(key)
        self._emit("EventRevoke", granter, grantee, url)

    def remove_expired(self) -> None:
        end = _QUEUE + time_key(self._context.environment.time) + b"\0"
        for key, stored in self._store.iterate(_QUEUE, before=end):
            self._store.delete(key)
            pair = key[len(end) - 1 :]
            for url in decode(QueueItem, stored).msg_type_urls:
                self._store.delete(_GRANTS + pair + url.encode())

    def _dequeue(self, granter: bytes, grantee: bytes, url: str, expiration: int) -> None:
        key = _queue_key(expiration, granter, grantee)
        stored = self._store.get(key)
        if stored is None:
            text = "can't remove grant from the expire queue, grant key not found"
            raise TxError(NO_GRANT_KEY, text)
        urls = decode(QueueItem, stored).msg_type_urls
        for at, each in enumerate(urls):
            self._context.meter.consume(_GAS_PER_ENTRY, "grant queue")
            if each == url:
                urls[at] = urls[-1]
                self._store.set(key, encode(QueueItem(urls[:-1])))
                return

    def _emit(self, name: str, granter: bytes, grantee: bytes, url: str) -> None:
        show = self._context.codec.show
        # The values of typed events are JSON.
        values = {"grantee": show(grantee), "granter": show(granter), "msg_type_url": url}
        shown = {key: jsoncodec.encode(value).decode() for key, value in values.items()}
        self._context.events.append(event(f"{_PACKAGE}.{name}", **shown))


def _key(granter: bytes, grantee: bytes, url: str = "") -> bytes:
    return _GRANTS + sized(granter) + sized(grantee) + url.encode()


def _queue_key(time: int, granter: bytes, grantee: bytes) -> bytes:
    return _QUEUE + time_key(time) + sized(granter) + sized(grantee)


def _seconds(time: int) -> str:
    return to_text(time // SECOND * SECOND)


def _accounts(context: Context, given: Values) -> tuple[bytes, bytes]:
    """Return granter and grantee of a message."""
    if given["grantee"].casefold() == given["granter"].casefold():
        raise TxError(GRANTEE_IS_GRANTER)
    grantee = parse_address(context.codec, "grantee", given["grantee"])
    return parse_address(context.codec, "granter", given["granter"]), grantee


def _messages(context: Context) -> Registry:
    assert context.environment.messages is not None
    return context.environment.messages


def _grant(context: Context, given: Values) -> None:
    granter, grantee = _accounts(context, given)
    grant: Values = given["grant"]
    authorization = unpacked(grant["authorization"])
    authorization.check()
    if context.accounts.get(grantee) is None:
        if context.accounts.is_blocked(grantee):
            shown = context.codec.show(grantee)
            raise TxError(UNAUTHORIZED, f"{shown} is not allowed to receive funds")
        context.accounts.add(grantee)
    url = authorization.type_url
    if not _messages(context).has(url):
        raise TxError(INVALID_TYPE, f"{url} doesn't exist.")
    _Authz(context).save(granter, grantee, authorization, grant["expiration"])


def _revoke(context: Context, given: Values) -> None:
    granter, grantee = _accounts(context, given)
    if not given["msg_type_url"]:
        raise TxError(INVALID_REQUEST, "missing msg method name")
    _Authz(context).delete(granter, grantee, given["msg_type_url"])


def _execute(context: Context, given: Values) -> bytes:
    if not given["grantee"]:
        raise TxError(INTERNAL, "empty address string is not allowed")
    grantee = parse_address(context.codec, "grantee", given["grantee"])
    if not given["msgs"]:
        raise TxError(INVALID_REQUEST, "messages cannot be empty")
    messages, parts = _messages(context), []
    for at, each in enumerate(given["msgs"]):
        inner = messages.decode(each)
        _authorize(context, grantee, inner)
        own = Context(context.branch, context.environment, context.meter)
        try:
            response = messages.handle(own, inner)
        except TxError as error:
            shown = compact(each.type_url.removeprefix("/"), each.value)
            raise error.wrapped(f"failed to execute message; message {shown}") from None
        parts.append(message(1, response))
        context.events += (with_attribute(e, "authz_msg_index", str(at)) for e in own.events)
    return b"".join(parts)


def _authorize(context: Context, grantee: bytes, given: Msg) -> None:
    """Raise :exc:`TxError` unless a grantee may send a message."""
    signers, url = tuple(dict.fromkeys(context.environment.signers(given))), given.type.type_url
    if len(signers) != 1:
        raise TxError(NUMBER_OF_SIGNERS)
    (granter,) = signers
    if granter == grantee:
        return
    authz = _Authz(context)
    grant = authz.find(granter, grantee, url)
    if grant is None:
        show = context.codec.show
        text = f"granter: {show(granter)}, grantee: {show(grantee)} & msgType: {url} "
        raise TxError(NOT_AUTHORIZED, f"failed to get grant with given {text}")
    if grant.expiration is not None and grant.expiration < context.environment.time:
        raise TxError(EXPIRED)
    accepted = unpacked(grant.authorization).accept(context, given)
    if accepted.is_used_up:
        authz.delete(granter, grantee, url)
    elif accepted.updated is not None:
        authz.update(granter, grantee, accepted.updated)


def _grants(ctx: QueryContext) -> bytes:
    granter, grantee, url = ctx.owner(number=1), ctx.owner(number=2), ctx.request.text(3)
    if url:
        found = _Authz(ctx.context()).find(granter, grantee, url)
        if found is None:
            error = TxError(NOT_AUTHORIZED, f"authorization not found for {url} type")
            raise coded(error)
        return message(1, encode(found))
    page = Page.decode(ctx.request.blob(4))
    pairs = ctx.range(_STORE + _key(granter, grantee))
    return encode_page(page, pairs, lambda key, stored: stored, is_plain=True)


def _of_one(ctx: QueryContext, prefix: bytes, grantee: bytes | None = None) -> bytes:
    """Return a page of the grants below a prefix; with ``grantee``, only of this account."""

    def entry(key: bytes, stored: bytes) -> bytes:
        granter, other, _ = _parts(prefix[1:] + key)
        found, show = decode(Grant, stored), ctx.codec.show
        return encode(
            GrantAuthorization(
                show(granter), show(other), found.authorization, found.expiration
            )
        )

    def keeps(key: bytes, _: bytes) -> bool:
        return grantee is None or _parts(key)[1] == grantee

    page, pairs = Page.decode(ctx.request.blob(2)), ctx.range(_STORE + prefix)
    return encode_page(page, pairs, entry, keeps=keeps, is_plain=True)


def _parts(key: bytes) -> tuple[bytes, bytes, str]:
    """Split a key without its first byte into granter, grantee and type URL."""
    granter, rest = key[1 : 1 + key[0]], key[1 + key[0] :]
    return granter, rest[1 : 1 + rest[0]], rest[1 + rest[0] :].decode()


def _granter_grants(ctx: QueryContext) -> bytes:
    return _of_one(ctx, _GRANTS + sized(ctx.owner()))


def _grantee_grants(ctx: QueryContext) -> bytes:
    return _of_one(ctx, _GRANTS, ctx.owner())


class AuthzModule(Module):
    """Authorizations to send messages in another account's name."""

    name = "authz"
    version = 2
    service = f"{_PACKAGE}.Query"
    handlers = (
        Handler(MSG_GRANT, _grant),
        Handler(MSG_REVOKE, _revoke),
        Handler(MSG_EXEC, _execute),
    )
    queries = MappingProxyType(
        {
            "Grants": _grants,
            "GranterGrants": _granter_grants,
            "GranteeGrants": _grantee_grants,
        }
    )
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        for each in state["authorization"]:
            expiration = time_of(each["expiration"])
            if expiration is not None and expiration < context.environment.time:
                continue
            granter, grantee = (
                each[name].read(context.codec.parse, "an address")
                for name in ("granter", "grantee")
            )
            url = each["authorization"]["@type"].required_text()
            if url not in KINDS:
                expected = f"expected {', '.join(KINDS)}, got {short_repr(url)}"
                each["authorization"]["@type"].refuse(expected)
            given = AnyValue(url, encode_json(url.removeprefix("/"), each["authorization"]))
            try:
                _Authz(context).save(granter, grantee, unpacked(given), expiration)
            except TxError as error:
                each.refuse(error.log)

    def begin_block(self, context: Context) -> None:
        _Authz(context).remove_expired()
