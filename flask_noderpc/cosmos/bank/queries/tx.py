"""The methods of the tx and node services that the application answers itself.

What needs blocks and their index is answered by the node, above the application.
"""

from __future__ import annotations

from ....protocol.protobuf import Message, blob, integer, message, string
from ...protocol.responses import event
from ..errors import UNKNOWN_REQUEST
from .request import Asked, Method, Refused, invalid


def _simulate(asked: Asked) -> bytes:
    # The bytes of a transaction, or its message, which are the same.
    tx = asked.request.blob(2) or asked.request.blob(1)
    if not tx and not asked.request.blobs(1):
        raise invalid("empty txBytes is not allowed")
    result = asked.node.simulate(tx)
    if result.code:
        text = f"{result.log} with gas used: '{result.gas_used}'"
        raise Refused(UNKNOWN_REQUEST, "Unknown", text)
    # The gas meter of a simulation has no limit.
    gas = integer(1, (1 << 64) - 1) + integer(2, result.gas_used)
    events = b"".join(message(3, event(each, with_index=False)) for each in result.events)
    responses = b"".join(message(4, each) for each in Message(result.data).blobs(2))
    return message(1, gas) + message(2, blob(1, result.data) + events + responses)


def _config(asked: Asked) -> bytes:
    # The default pruning of the SDK is by numbers that it does not show.
    return string(1, asked.node.min_gas_prices) + string(2, "0") + string(3, "0")


METHODS: dict[str, Method] = {
    "/cosmos.base.node.v1beta1.Service/Config": _config,
    "/cosmos.tx.v1beta1.Service/Simulate": _simulate,
}
"""Answers by path."""
