"""Prefunded accounts of a development chain, whose keys are public."""

from __future__ import annotations

import logging

from ...domain.genesis import Genesis
from ...protocol.secp256k1eth import to_checksum
from ..domain.records import ETHER
from ..protocol.crypto import DEV_KEYS
from . import patches as evm_genesis

# hardhat and anvil: the balance of each development account.
_BALANCE = 10_000 * ETHER

# https://github.com/Arachnid/deterministic-deployment-proxy: forge's scripts deploy by it, and
# anvil and geth's development chain have it. It creates a contract of its input, whose first
# word is the salt.
CREATE2_DEPLOYER = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
_DEPLOYER_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)

log = logging.getLogger("flask_noderpc.dev")
# A logger of its own: ``noderpc start`` shows them itself.
accounts_log = log.getChild("accounts")


def app_state() -> bytes:
    """Return the genesis state with the development accounts and the CREATE2 deployer."""
    balances = {key.address: _BALANCE for key in DEV_KEYS}
    return evm_genesis.app_state(balances, {CREATE2_DEPLOYER: _DEPLOYER_CODE})


def log_accounts(genesis: Genesis) -> None:
    """Log the development accounts, and a warning if the genesis does not have them."""
    accounts = evm_genesis.accounts(genesis.app_state)
    if not all(key.address in accounts for key in DEV_KEYS):
        log.warning(
            "NODERPC_DEV: this chain began without the development accounts, which may have"
            " nothing here; NODERPC_DATABASE at a new file makes a chain that has them"
        )
    # Most hosts show no log lines below a warning.
    accounts_log.warning(
        "NODERPC_DEV: anybody knows the keys of these accounts; never send them anything of"
        " worth\n%s",
        "\n".join(f"{to_checksum(key.address)} 0x{key.secret.hex()}" for key in DEV_KEYS),
    )
