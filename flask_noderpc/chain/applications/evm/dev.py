"""The accounts of a development chain: rich, and anybody's."""

from __future__ import annotations

import logging

from ....domain.ethereum import ETHER
from ....domain.genesis import Genesis
from ....protocol.ethereum.hexadecimal import to_checksum
from ....protocol.ethereum.keys import DEV_KEYS
from . import genesis as documents

# hardhat and anvil: of each of theirs.
_BALANCE = 10_000 * ETHER

log = logging.getLogger("flask_noderpc.dev")


def app_state() -> bytes:
    """The genesis of a chain that has them."""
    return documents.app_state({key.address: _BALANCE for key in DEV_KEYS})


def log_accounts(genesis: Genesis) -> None:
    """Tell of them, or why there are none."""
    known = documents.accounts(genesis.app_state)
    if not all(key.address in known for key in DEV_KEYS):
        log.warning(
            "NODERPC_DEV: this chain began without the development accounts, which may have"
            " nothing here; NODERPC_DATABASE at a new file makes a chain that has them"
        )
    # Less than a warning is not shown by most hosts.
    log.warning(
        "NODERPC_DEV: anybody knows the keys of these accounts; never send them anything of"
        " worth\n%s",
        "\n".join(f"{to_checksum(key.address)} 0x{key.secret.hex()}" for key in DEV_KEYS),
    )
