"""Validation of consensus parameters (CometBFT: ConsensusParams.ValidateBasic)."""

from __future__ import annotations

from ...domain.params import ConsensusParams
from ...domain.validator import ED25519, SECP256K1
from .blocksize import MAX_BLOCK_BYTES

_KEY_TYPES = (ED25519, SECP256K1, "sr25519", "bls12_381")


def check_params(params: ConsensusParams) -> None:
    """Raise :exc:`ValueError` naming the first invalid parameter."""
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
