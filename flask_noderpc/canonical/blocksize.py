"""How many bytes of transactions fit a block."""

from __future__ import annotations

from collections.abc import Sequence

from ..domain.block import Evidence
from ..domain.params import BlockParams
from . import messages

# CometBFT: types.MaxBlockSizeBytes, which a max_bytes of -1 means.
MAX_BLOCK_BYTES = 100 * 1024 * 1024

# CometBFT: what a block's bytes hold beside its transactions, at their longest.
_BLOCK_OVERHEAD = 11
_MAX_HEADER = 626
_MAX_COMMIT = 94
_MAX_SIGNATURE = 109

# Tag and length in front of a transaction or a piece of evidence, at their longest.
_FRAME = 6


def tx_bytes(tx: bytes) -> int:
    """How much of a block a transaction takes."""
    return len(tx) + _FRAME


def evidence_bytes(piece: Evidence) -> int:
    """How much of a block a piece of evidence takes."""
    return len(messages.any_evidence(piece)) + _FRAME


def max_data_bytes(params: BlockParams, members: int, evidence: Sequence[Evidence] = ()) -> int:
    """The room for transactions in a block that so many validators sign."""
    limit = params.max_bytes if params.max_bytes >= 0 else MAX_BLOCK_BYTES
    taken = _BLOCK_OVERHEAD + _MAX_HEADER + _MAX_COMMIT + _MAX_SIGNATURE * members
    taken += sum(map(evidence_bytes, evidence))
    return max(0, limit - taken)
