"""Query methods of staking, mint and distribution, whose state is always the genesis state."""

from __future__ import annotations

from ....protocol.protobuf import Message, message, string
from ..accounts import module_address
from ..balances import balance_key
from ..context import Codec
from ..modules import DISTRIBUTION, MINT, STAKING, STATUSES, VALIDATOR, VALOPER, params_key
from ..state import BANK
from .pages import Page, encode_page
from .request import Method, QueryContext, internal, invalid, not_found


def _params(module: str) -> Method:
    return lambda ctx: message(1, ctx.get(params_key(module)) or b"")


def _validators(ctx: QueryContext) -> bytes:
    status = ctx.request.text(1)
    if status and status not in STATUSES:
        raise invalid(f"invalid validator status {status}")
    page = Page.decode(ctx.request.blob(2), internal)
    pairs = (
        (key, stored)
        for key, stored in ctx.range(VALIDATOR)
        if not status or Message(stored).integer(4) == STATUSES[status]
    )
    return encode_page(page, pairs, lambda key, stored: stored, is_plain=True)


def _validator(ctx: QueryContext) -> bytes:
    text = ctx.request.text(1)
    if not text:
        raise invalid("validator address cannot be empty")
    address = ctx.owner(Codec(ctx.codec.prefix + VALOPER))
    stored = ctx.get(VALIDATOR + bytes((len(address),)) + address)
    if stored is None:
        raise not_found(f"validator {text} not found")
    return message(1, stored)


def _pool(ctx: QueryContext) -> bytes:
    denom = Message(ctx.get(params_key(STAKING)) or b"").text(5)
    not_bonded, bonded = (
        int(ctx.get(BANK + balance_key(module_address(name), denom)) or b"0")
        for name in ("not_bonded_tokens_pool", "bonded_tokens_pool")
    )
    return message(1, string(1, str(not_bonded)) + string(2, str(bonded)))


METHODS: dict[str, dict[str, Method]] = {
    STAKING: {
        "Params": _params(STAKING),
        "Pool": _pool,
        "Validator": _validator,
        "Validators": _validators,
    },
    MINT: {"Params": _params(MINT)},
    DISTRIBUTION: {"Params": _params(DISTRIBUTION)},
}
"""Query methods by module and name."""
