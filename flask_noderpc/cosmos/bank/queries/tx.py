"""Query methods of the service ``tx`` that need the application; SDK: x/auth/tx/service.go."""

from __future__ import annotations

from ....domain.abci import Event, EventAttribute
from ....protocol.protobuf import Message, blob, message, string
from ...protocol import tx as txs
from ...protocol.amino import InvalidAmino
from ...protocol.fields import InvalidMessage
from ...protocol.proto import MESSAGES
from ..errors import INVALID_REQUEST, PANIC, TX_DECODE, UNKNOWN_REQUEST, TxError
from .request import GrpcError, Method, QueryContext, coded, invalid


def _simulate(ctx: QueryContext) -> bytes:
    # The request has the transaction as bytes (2) or as a message (1), with the same encoding.
    tx = ctx.request.blob(2) or ctx.request.blob(1)
    if not tx and not ctx.request.blobs(1):
        raise invalid("empty txBytes is not allowed")
    result = ctx.node.simulate(tx)
    if result.code:
        text = f"{result.log} with gas used: '{result.gas_used}'"
        raise GrpcError(UNKNOWN_REQUEST, "Unknown", text)
    return MESSAGES.encode(
        "tx.SimulateResponse",
        # The SDK returns the maximum, as a simulation has no gas limit.
        gas_info={"gas_wanted": (1 << 64) - 1, "gas_used": result.gas_used},
        result={
            "data": result.data,
            "events": map(_without_indexes, result.events),
            "msg_responses": Message(result.data).blobs(2),
        },
    )


def _without_indexes(event: Event) -> Event:
    attributes = (EventAttribute(a.key, a.value, index=False) for a in event.attributes)
    return Event(event.type, tuple(attributes))


def _decode(ctx: QueryContext) -> bytes:
    if not ctx.request.blobs(1):
        raise invalid("invalid empty tx bytes")
    known = ctx.node.messages
    try:
        tx = txs.decode(ctx.request.blob(1), known.resolve, known.decode)
    except InvalidMessage as error:
        raise coded(TxError(TX_DECODE, str(error))) from None
    signatures = b"".join(message(3, each) for each in tx.signatures)
    return message(1, message(1, tx.body_bytes) + message(2, tx.auth_info_bytes) + signatures)


def _encode(ctx: QueryContext) -> bytes:
    if not ctx.request.blobs(1):
        raise invalid("invalid empty tx")
    tx = Message(ctx.request.blob(1))
    if not (tx.blobs(1) and tx.blobs(2)):
        text = "runtime error: invalid memory address or nil pointer dereference"
        raise TxError(PANIC, text)
    return blob(1, txs.encode(tx.blob(1), tx.blob(2), tx.blobs(3)))


def _decode_amino(ctx: QueryContext) -> bytes:
    if not ctx.request.blobs(1):
        raise invalid("invalid empty tx bytes")
    try:
        return string(1, ctx.node.messages.amino.json(ctx.request.blob(1)))
    except InvalidAmino as error:
        raise TxError(INVALID_REQUEST, str(error)) from None


def _encode_amino(ctx: QueryContext) -> bytes:
    document = ctx.request.text(1)
    if not document:
        raise invalid("invalid empty tx json")
    try:
        return blob(1, ctx.node.messages.amino.binary(document))
    except InvalidAmino as error:
        raise TxError(INVALID_REQUEST, str(error)) from None


METHODS: dict[str, Method] = {
    "Simulate": _simulate,
    "TxDecode": _decode,
    "TxDecodeAmino": _decode_amino,
    "TxEncode": _encode,
    "TxEncodeAmino": _encode_amino,
}
"""Methods of ``/cosmos.tx.v1beta1.Service/``; the node answers the others, which read blocks
and their index."""
