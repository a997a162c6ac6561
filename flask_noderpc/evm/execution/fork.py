"""``eth_config``: the rules that the chain runs by (EIP-7910)."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from ...domain.evm import PRECOMPILES
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ..codec.views import PlainNumber
from .state import block_of, machine

# EIP-7910's names, in the order of the addresses.
_NAMES = (
    "ECREC",
    "SHA256",
    "RIPEMD160",
    "ID",
    "MODEXP",
    "BN254_ADD",
    "BN254_MUL",
    "BN254_PAIRING",
    "BLAKE2F",
    "KZG_POINT_EVALUATION",
    "BLS12_G1ADD",
    "BLS12_G1MSM",
    "BLS12_G2ADD",
    "BLS12_G2MSM",
    "BLS12_PAIRING_CHECK",
    "BLS12_MAP_FP_TO_G1",
    "BLS12_MAP_FP2_TO_G2",
)


def config(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The rules since the genesis; no others are to come."""
    machine(ctx)
    genesis = block_of(ctx, 0).header.hash or b""
    current = {
        "activationTime": PlainNumber(0),
        # Headers count no blob gas, and no contract is there for the system's sake.
        "blobSchedule": None,
        "chainId": ctx.settings.evm_chain_id,
        # EIP-6122: all forks are those of the genesis.
        "forkId": crc32(genesis).to_bytes(4),
        "precompiles": dict(zip(_NAMES, sorted(PRECOMPILES), strict=True)),
        "systemContracts": {},
    }
    return {"current": current, "next": None, "last": None}
