"""The logs that cosmos/evm keeps out of its events, in the data of a transaction's result.

Cosmos SDK: the data is a ``TxMsgData``, with the response to each message. Field numbers are
those of ``cosmos/base/abci/v1beta1/abci.proto`` and ``cosmos/evm/vm/v1``.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import protobuf
from ..protobuf import Message
from .ethermint import RawLog
from .hexadecimal import from_hex

# Forks keep the message's name and change the package's.
_RESPONSE = ".MsgEthereumTxResponse"


def logs(data: bytes) -> Iterator[list[RawLog]]:
    """The logs of each Ethereum message, which may have none; nothing of other data."""
    try:
        parts = [Message(part) for part in Message(data).blobs(2)]
        found = [
            [_log(log) for log in Message(part.blob(2)).blobs(2)]
            for part in parts
            if part.text(1).endswith(_RESPONSE)
        ]
    except (protobuf.Malformed, ValueError):
        return
    yield from found


def _log(message: bytes) -> RawLog:
    log = Message(message)
    return RawLog(
        from_hex(log.text(1), 20),
        tuple(from_hex(topic, 32) for topic in log.texts(2)),
        log.blob(3),
        from_hex(log.text(5), 32) if log.text(5) else None,
    )
