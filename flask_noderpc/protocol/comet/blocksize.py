"""Valid consensus parameters, and maximum bytes of the transactions of a block."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.block import Evidence
from ...domain.params import BlockParams, ConsensusParams
from ...domain.validator import ED25519, SECP256K1
from ..protobuf import varint
from . import messages

# CometBFT: types.MaxBlockSizeBytes, which a max_bytes of -1 means.
MAX_BLOCK_BYTES = 100 * 1024 * 1024

# CometBFT: maximum sizes of a block's other parts.
_BLOCK_OVERHEAD = 11
_MAX_HEADER = 626
_MAX_COMMIT = 94
# Includes the tag and the length prefix.
_MAX_SIGNATURE = 111

_KEY_TYPES = (ED25519, SECP256K1, "sr25519", "bls12_381")


def check_params(params: ConsensusParams) -> None:
    """Raise :exc:`ValueError` naming the first invalid parameter.

    CometBFT: ConsensusParams.ValidateBasic.
    """
    block, evidence = params.block, params.evidence
    rules = {
        f"block.max_bytes is -1 or 1 to {MAX_BLOCK_BYTES}": block.max_bytes == -1
        or 0 < block.max_bytes <= MAX_BLOCK_BYTES,
        "block.max_gas is -1 or more": block.max_gas >= -1,
        "evidence.max_age_num_blocks is above 0": evidence.max_age_num_blocks > 0,
        "evidence.max_age_duration is above 0": evidence.max_age_duration > 0,
        "evidence.max_bytes is 0 or more": evidence.max_bytes >= 0,
        f"validator.pub_key_types are some of {', '.join(_KEY_TYPES)}": bool(
            params.validator.pub_key_types
        )
        and all(kind in _KEY_TYPES for kind in params.validator.pub_key_types),
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(f"consensus parameters: {rule}")


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
