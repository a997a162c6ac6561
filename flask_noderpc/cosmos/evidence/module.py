"""The module evidence: penalties, messages, queries and genesis; SDK: x/evidence."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from ...domain.time import SECOND, to_go_text
from ...errors import short_repr
from ...protocol.protobuf import message
from ..bank.consensus import Misbehavior
from ..bank.context import Context
from ..bank.errors import INVALID_REQUEST, Code, Panic, TxError
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.messages import Handler, parse_address
from ..bank.module import Module
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import QueryContext, invalid, not_found
from ..protocol.fields import ANY_AMINO, AnyValue, InvalidMessage, Values, declared, hex_bytes
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, encode, record
from ..slashing import penalties
from ..slashing.state import KEYS, Slashing
from ..staking.records import UNBONDED
from ..staking.state import sized
from .proto import ROUTES

_STORE, _EVIDENCE = b"evidence/", b"\0"
_EQUIVOCATION = "cosmos.evidence.v1beta1.Equivocation"
# SDK: DoubleSignJailEndTime, the last second of the year 9999.
_FOREVER = 253_402_300_799 * SECOND
_INVALID = Code(3, "invalid evidence", "evidence")


@record(_EQUIVOCATION)
@dataclass(frozen=True, slots=True)
class Equivocation:
    """Evidence that a validator signed two blocks at one height."""

    height: int = 0
    time: int = 0
    power: int = 0
    consensus_address: str = ""


_KIND = declared("*types.Equivocation", _EQUIVOCATION)
ANY_AMINO[f"/{_EQUIVOCATION}"] = lambda data: {
    "type": "cosmos-sdk/Equivocation",
    "value": _KIND.amino_json(_KIND.decode(data)),
}


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a MsgSubmitEvidence; raise :exc:`InvalidMessage` if its evidence has
    another type."""
    submitted: AnyValue | None = values["evidence"]
    if submitted is not None and submitted.type_url not in ("", f"/{_EQUIVOCATION}"):
        raise InvalidMessage(
            f"no concrete type registered for type URL {submitted.type_url} against interface"
            " *exported.Evidence"
        )
    return values


MSG_SUBMIT_EVIDENCE = MessageType(
    "/cosmos.evidence.v1beta1.MsgSubmitEvidence",
    declared(
        "*types.MsgSubmitEvidence",
        "cosmos.evidence.v1beta1.MsgSubmitEvidence",
        _checked,
        signer="submitter",
    ),
    "cosmos-sdk/MsgSubmitEvidence",
    nested={f"/{_EQUIVOCATION}": _KIND},
    interface="cosmos.evidence.v1beta1.Evidence",
)


def _hash(found: Equivocation) -> bytes:
    return sha256(encode(found)).digest()


def _submit(context: Context, given: Values) -> None:
    """Refuse evidence of a client; as in the SDK's own applications, which get evidence from
    consensus and panic at a client's."""
    parse_address(context.codec, "submitter", given["submitter"])
    submitted: AnyValue | None = given["evidence"]
    if submitted is None:
        raise TxError(_INVALID, "missing evidence")
    found = decode(Equivocation, submitted.value)
    _check(found)
    context.store(_STORE).get(_EVIDENCE + _hash(found))
    raise Panic("runtime error: invalid memory address or nil pointer dereference")


def _check(found: Equivocation) -> None:
    wrong = ""
    if found.time < SECOND:
        wrong = f"time: {to_go_text(found.time)}"
    elif found.height < 1:
        wrong = f"height: {found.height}"
    elif found.power < 1:
        wrong = f"validator power: {found.power}"
    elif not found.consensus_address:
        wrong = "validator consensus address: "
    if wrong:
        text = f"failed basic validation: invalid equivocation {wrong}"
        raise TxError(_INVALID, text)


def _handle(context: Context, found: Misbehavior) -> None:
    """Slash, jail and tombstone a validator, unless the evidence is too old."""
    slashing, environment = Slashing(context), context.environment
    validator = slashing.staking.find_by_consensus_address(found.address)
    if validator is None or validator.status == UNBONDED:
        return
    if slashing.store.get(KEYS + sized(found.address)) is None:
        return
    is_old = environment.time - found.time > environment.head.max_age_duration
    if is_old and environment.height - found.height > environment.head.max_age_blocks:
        return
    info = slashing.find_info(found.address)
    if info is None or info.tombstoned:
        return
    penalties.punish_double_sign(slashing, found.address, found.height, found.power)
    if not validator.jailed:
        penalties.jail(slashing, found.address)
    info.jailed_until, info.tombstoned = _FOREVER, True
    slashing.set_info(found.address, info)
    shown = environment.consensus.show(found.address)
    _add(context, Equivocation(found.height, found.time, found.power, shown))


def _add(context: Context, found: Equivocation) -> None:
    stored = MESSAGES.encode("Any", type_url=f"/{_EQUIVOCATION}", value=encode(found))
    context.store(_STORE).set(_EVIDENCE + _hash(found), stored)


def _evidence(ctx: QueryContext) -> bytes:
    text = ctx.request.text(2)
    if not text:
        raise invalid("invalid request; hash is empty")
    stored = ctx.get(_STORE + _EVIDENCE + _decoded(text))
    if stored is None:
        raise not_found(f"evidence {text} not found")
    return message(1, stored)


def _decoded(text: str) -> bytes:
    try:
        return hex_bytes(text)
    except ValueError as error:
        raise TxError(INVALID_REQUEST, f"invalid evidence hash: {error}") from None


def _all_evidence(ctx: QueryContext) -> bytes:
    page = Page.decode(ctx.request.blob(1))
    return encode_page(page, ctx.range(_STORE + _EVIDENCE), lambda key, stored: stored)


class EvidenceModule(Module):
    """Penalties of validators that sign two blocks at one height."""

    name = "evidence"
    service = "cosmos.evidence.v1beta1.Query"
    handlers = (Handler(MSG_SUBMIT_EVIDENCE, _submit),)
    queries = MappingProxyType({"AllEvidence": _all_evidence, "Evidence": _evidence})
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        for each in state["evidence"]:
            kind = each["@type"].required_text()
            if kind != f"/{_EQUIVOCATION}":
                each["@type"].refuse(f"expected /{_EQUIVOCATION}, got {short_repr(kind)}")
            _add(context, read(Equivocation, each))

    def begin_block(self, context: Context) -> None:
        for found in context.environment.block.misbehaviors:
            _handle(context, found)
