"""Maximum bytes of the transactions of a block."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.block import Evidence
from ...domain.params import BlockParams
from . import messages
from .protobuf import varint

# CometBFT: types.MaxBlockSizeBytes, which a max_bytes of -1 means.
MAX_BLOCK_BYTES = 100 * 1024 * 1024

# CometBFT: maximum sizes of a block's other parts.
_BLOCK_OVERHEAD = 11
_MAX_HEADER = 626
_MAX_COMMIT = 94
# Includes the tag and the length prefix.
_MAX_SIGNATURE = 111


def tx_bytes(tx: bytes) -> int:
    """Bytes that a transaction takes in a block."""
    return _framed(len(tx))


def evidence_bytes(piece: Evidence) -> int:
    """Bytes that a piece of evidence takes in a block."""
    return _framed(len(messages.any_evidence(piece)))


def _framed(size: int) -> int:
    # CometBFT: types.ComputeProtoSizeForTxs, a tag and a length before each.
    return 1 + len(varint(size)) + size


def max_data_bytes(params: BlockParams, members: int, evidence: Sequence[Evidence] = ()) -> int:
    """Maximum bytes of transactions in a block with this many validators and this evidence."""
    limit = params.max_bytes if params.max_bytes >= 0 else MAX_BLOCK_BYTES
    used = _BLOCK_OVERHEAD + _MAX_HEADER + _MAX_COMMIT + _MAX_SIGNATURE * members
    used += sum(map(evidence_bytes, evidence))
    return max(0, limit - used)
