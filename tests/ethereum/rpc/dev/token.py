"""A token's contract with balances at slot 0 and allowances at slot 1, as Solidity lays out
mappings. It returns a balance for each selector but that of ``allowance``."""

from __future__ import annotations

TOKEN_ADDRESS = "0x" + "70" * 20

TOKEN = "0x" + "".join(
    (
        # Memory: the first argument at 0.
        "600435600052",
        # allowance(address,address) jumps.
        "60003560e01c63dd62ed3e14602657",
        # keccak(argument, slot 0).
        "6040600020",
        "54",
        "600052",
        "60206000f3",
        # Filler, to where the jump goes.
        "000000",
        # keccak(owner, slot 1), then keccak(spender, that).
        "5b",
        "6001602052",
        "6040600020602052",
        "602435600052",
        "6040600020",
        "54",
        "600052",
        "60206000f3",
    )
)
