"""How many bytes of transactions fit a block."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.block import Evidence
from ...domain.params import BlockParams
from . import messages
from .protobuf import varint

# CometBFT: types.MaxBlockSizeBytes, which a max_bytes of -1 means.
MAX_BLOCK_BYTES = 100 * 1024 * 1024

# CometBFT: what a block's bytes hold beside its transactions, at their longest.
_BLOCK_OVERHEAD = 11
_MAX_HEADER = 626
_MAX_COMMIT = 94
# With the tag and the length in front of it.
_MAX_SIGNATURE = 111


def tx_bytes(tx: bytes) -> int:
    """How much of a block a transaction takes."""
    return _framed(len(tx))


def evidence_bytes(piece: Evidence) -> int:
    """How much of a block a piece of evidence takes."""
    return _framed(len(messages.any_evidence(piece)))


def _framed(size: int) -> int:
    # CometBFT: types.ComputeProtoSizeForTxs, a tag and the length in front of each.
    return 1 + len(varint(size)) + size


def max_data_bytes(params: BlockParams, members: int, evidence: Sequence[Evidence] = ()) -> int:
    """The room for transactions in a block that so many validators sign."""
    limit = params.max_bytes if params.max_bytes >= 0 else MAX_BLOCK_BYTES
    taken = _BLOCK_OVERHEAD + _MAX_HEADER + _MAX_COMMIT + _MAX_SIGNATURE * members
    taken += sum(map(evidence_bytes, evidence))
    return max(0, limit - taken)
