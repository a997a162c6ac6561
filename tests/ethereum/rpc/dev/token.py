"""A token contract with balances at slot 0 and allowances at slot 1, as Solidity lays out
mappings.

Every selector except that of ``allowance`` returns a balance.
"""

from __future__ import annotations

TOKEN_ADDRESS = "0x" + "70" * 20

TOKEN = "0x" + "".join(
    (
        # Memory at 0: the first argument.
        "600435600052",
        # Jump for allowance(address,address).
        "60003560e01c63dd62ed3e14602657",
        # keccak(argument, slot 0).
        "6040600020",
        "54",
        "600052",
        "60206000f3",
        # Padding up to the jump's destination.
        "000000",
        # keccak(owner, slot 1), then keccak(spender, that hash).
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
