"""The module feegrant: messages, queries, payment of fees and genesis; SDK: x/feegrant."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from ...errors import short_repr
from ...protocol.protobuf import message
from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import INVALID_ADDRESS, INVALID_REQUEST, NOT_FOUND, UNAUTHORIZED, TxError
from ..bank.genesis_json import Item
from ..bank.genesis_values import encode as encode_json
from ..bank.messages import Handler
from ..bank.module import Module
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import QueryContext, internal
from ..protocol.coins import Coins
from ..protocol.fields import ANY_AMINO, AnyValue, InvalidMessage, Values, declared
from ..protocol.messages import MessageType
from ..protocol.records import decode, encode, name_of
from ..staking.state import sized, time_key
from .allowances import (
    KINDS,
    Allowance,
    AllowedMsgAllowance,
    BasicAllowance,
    Expired,
    Grant,
    PeriodicAllowance,
    unpacked,
)
from .proto import ROUTES

_STORE, _GRANTS, _QUEUE = b"feegrant/", b"\0", b"\1"
_PACKAGE = "cosmos.feegrant.v1beta1"
# Maximum number of expired grants that the end of a block and a message remove.
_REMOVED_EACH_BLOCK, _REMOVED_EACH_MESSAGE = 200, 75

_BASIC = declared("*feegrant.BasicAllowance", name_of(BasicAllowance))
_KINDS = {
    f"/{name_of(BasicAllowance)}": _BASIC,
    f"/{name_of(PeriodicAllowance)}": declared(
        "*feegrant.PeriodicAllowance", name_of(PeriodicAllowance), basic=_BASIC
    ),
    f"/{name_of(AllowedMsgAllowance)}": declared(
        "*feegrant.AllowedMsgAllowance", name_of(AllowedMsgAllowance)
    ),
}


def _amino(url: str) -> Any:
    kind, name = _KINDS[url], url.rpartition(".")[2]
    return lambda data: {
        "type": f"cosmos-sdk/{name}",
        "value": kind.amino_json(kind.decode(data)),
    }


ANY_AMINO.update({url: _amino(url) for url in _KINDS})


def _check_type(given: AnyValue | None) -> None:
    """Raise :exc:`InvalidMessage` if an ``Any``, or one inside, is not of an allowance."""
    while given is not None and given.type_url:
        if given.type_url not in KINDS:
            raise InvalidMessage(
                f"no concrete type registered for type URL {given.type_url} against interface"
                " *feegrant.FeeAllowanceI"
            )
        found = decode(KINDS[given.type_url], given.value)
        given = found.allowance if isinstance(found, AllowedMsgAllowance) else None


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    _check_type(values["allowance"])
    return values


MSG_GRANT = MessageType(
    f"/{_PACKAGE}.MsgGrantAllowance",
    declared(
        "*feegrant.MsgGrantAllowance",
        f"{_PACKAGE}.MsgGrantAllowance",
        _checked,
        signer="granter",
    ),
    "cosmos-sdk/MsgGrantAllowance",
    nested=_KINDS,
    interface=f"{_PACKAGE}.FeeAllowanceI",
)
MSG_REVOKE = MessageType(
    f"/{_PACKAGE}.MsgRevokeAllowance",
    declared(
        "*feegrant.MsgRevokeAllowance", f"{_PACKAGE}.MsgRevokeAllowance", signer="granter"
    ),
    "cosmos-sdk/MsgRevokeAllowance",
)
MSG_PRUNE = MessageType(
    f"/{_PACKAGE}.MsgPruneAllowances",
    declared("*feegrant.MsgPruneAllowances", f"{_PACKAGE}.MsgPruneAllowances", signer="pruner"),
    # SDK: a message without an amino name has its type URL.
    f"/{_PACKAGE}.MsgPruneAllowances",
)


def _key(granter: bytes, grantee: bytes) -> bytes:
    return _GRANTS + sized(grantee) + sized(granter)


def _queue_key(time: int, granter: bytes, grantee: bytes) -> bytes:
    return _QUEUE + time_key(time) + sized(grantee) + sized(granter)


def _find(context: Context, granter: bytes, grantee: bytes) -> Allowance | None:
    stored = context.store(_STORE).get(_key(granter, grantee))
    return None if stored is None else unpacked(decode(Grant, stored).allowance)


def _existing(context: Context, granter: bytes, grantee: bytes) -> Allowance:
    found = _find(context, granter, grantee)
    if found is None:
        raise TxError(NOT_FOUND, "fee-grant not found")
    return found


def _set(context: Context, granter: bytes, grantee: bytes, allowance: Allowance) -> None:
    show = context.codec.show
    grant = Grant(show(granter), show(grantee), allowance.any)
    context.store(_STORE).set(_key(granter, grantee), encode(grant))


def _event(context: Context, name: str, granter: bytes, grantee: bytes) -> None:
    show = context.codec.show
    context.events.append(event(name, granter=show(granter), grantee=show(grantee)))


def _refuse_existing(context: Context, granter: bytes, grantee: bytes) -> None:
    if _find(context, granter, grantee) is not None:
        raise TxError(INVALID_REQUEST, "fee allowance already exists")


def _grant(context: Context, granter: bytes, grantee: bytes, allowance: Allowance) -> None:
    _refuse_existing(context, granter, grantee)
    if context.accounts.get(grantee) is None:
        if context.accounts.is_blocked(grantee):
            shown = context.codec.show(grantee)
            raise TxError(UNAUTHORIZED, f"{shown} is not allowed to receive funds")
        context.accounts.add(grantee)
    expiration = allowance.expires_at()
    if expiration is not None:
        if expiration < context.environment.time:
            text = "expiration is before current block time"
            raise TxError(INVALID_REQUEST, text)
        context.store(_STORE).set(_queue_key(expiration, granter, grantee), b"")
    _set(context, granter, grantee, allowance)
    _event(context, "set_feegrant", granter, grantee)


def _revoke(context: Context, granter: bytes, grantee: bytes) -> None:
    allowance, store = _existing(context, granter, grantee), context.store(_STORE)
    store.delete(_key(granter, grantee))
    expiration = allowance.expires_at()
    if expiration is not None:
        # The SDK exchanges granter and grantee here, so that the entry of the queue stays.
        store.delete(_queue_key(expiration, grantee, granter))
    _event(context, "revoke_feegrant", granter, grantee)


def _remove_expired(context: Context, limit: int) -> None:
    store = context.store(_STORE)
    end = _QUEUE + time_key(context.environment.time) + b"\0"
    for count, (key, _) in enumerate(store.iterate(_QUEUE, before=end), 1):
        store.delete(key)
        store.delete(_GRANTS + key[len(end) - 1 :])
        if count == limit:
            return


def _handle_grant(context: Context, given: Values) -> None:
    if given["grantee"].casefold() == given["granter"].casefold():
        raise TxError(INVALID_ADDRESS, "cannot self-grant fee authorization")
    grantee = context.codec.parse(given["grantee"])
    granter = context.codec.parse(given["granter"])
    _refuse_existing(context, granter, grantee)
    allowance = unpacked(given["allowance"])
    allowance.check()
    _grant(context, granter, grantee, allowance)


def _handle_revoke(context: Context, given: Values) -> None:
    if given["grantee"] == given["granter"]:
        raise TxError(INVALID_ADDRESS, "addresses must be different")
    grantee = context.codec.parse(given["grantee"])
    _revoke(context, context.codec.parse(given["granter"]), grantee)


def _handle_prune(context: Context, given: Values) -> None:
    _remove_expired(context, _REMOVED_EACH_MESSAGE)
    context.events.append(event("prune_feegrant", pruner=given["pruner"]))


def _allowance(ctx: QueryContext) -> bytes:
    granter, grantee = ctx.owner(number=1), ctx.owner(number=2)
    try:
        found = _existing(ctx.context(), granter, grantee)
    except TxError as error:
        raise internal(error.log) from None
    grant = Grant(ctx.request.text(1), ctx.request.text(2), found.any)
    return message(1, encode(grant))


def _allowances(ctx: QueryContext) -> bytes:
    pairs = ctx.range(_STORE + _GRANTS + sized(ctx.owner()))
    page = Page.decode(ctx.request.blob(2), internal)
    return encode_page(page, pairs, lambda key, stored: stored, is_plain=True)


def _issued(ctx: QueryContext) -> bytes:
    granter, page = ctx.owner(), Page.decode(ctx.request.blob(2), internal)
    return encode_page(
        page,
        ctx.range(_STORE + _GRANTS),
        lambda key, stored: stored,
        keeps=lambda key, stored: key[1 + key[0] :] == sized(granter),
        is_plain=True,
    )


def _from_json(given: Item) -> AnyValue:
    """Return an allowance of the genesis document."""
    url = given["@type"].required_text()
    if url not in KINDS:
        given["@type"].refuse(f"expected {', '.join(KINDS)}, got {short_repr(url)}")
    if KINDS[url] is AllowedMsgAllowance:
        inner = _from_json(given["allowance"])
        allowed = [each.text() for each in given["allowed_messages"]]
        return AllowedMsgAllowance(inner, allowed).any
    return AnyValue(url, encode_json(name_of(KINDS[url]), given))


class FeegrantModule(Module):
    """Grants of allowances to pay fees."""

    name = "feegrant"
    version = 2
    service = f"{_PACKAGE}.Query"
    handlers = (
        Handler(MSG_GRANT, _handle_grant),
        Handler(MSG_REVOKE, _handle_revoke),
        Handler(MSG_PRUNE, _handle_prune),
    )
    queries = MappingProxyType(
        {"Allowance": _allowance, "Allowances": _allowances, "AllowancesByGranter": _issued}
    )
    routes = ROUTES
    grants_fees = True

    def use_grant(
        self,
        context: Context,
        granter: bytes,
        grantee: bytes,
        fee: Coins,
        messages: Sequence[str],
    ) -> None:
        allowance = _existing(context, granter, grantee)
        try:
            is_used_up = allowance.accept(context, fee, messages)
        except Expired:
            _revoke(context, granter, grantee)
            raise
        if is_used_up:
            _revoke(context, granter, grantee)
            _event(context, "use_feegrant", granter, grantee)
            return
        _event(context, "use_feegrant", granter, grantee)
        _existing(context, granter, grantee)
        _set(context, granter, grantee, allowance)
        _event(context, "update_feegrant", granter, grantee)

    def init_genesis(self, context: Context, state: Item) -> None:
        parse = context.codec.parse
        for each in state["allowances"]:
            granter = each["granter"].read(parse, "an address")
            grantee = each["grantee"].read(parse, "an address")
            allowance = unpacked(_from_json(each["allowance"]))
            try:
                allowance.check()
                _grant(context, granter, grantee, allowance)
            except TxError as error:
                each.refuse(error.log)

    def end_block(self, context: Context) -> None:
        _remove_expired(context, _REMOVED_EACH_BLOCK)
