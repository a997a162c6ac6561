"""Prefunded accounts of a development chain, whose keys are public."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...chain.source import DevAccounts, accounts_log, log
from ...domain.genesis import Genesis
from ...protocol.secp256k1eth import to_checksum
from ...settings import Settings
from ..domain.records import ETHER
from ..protocol.crypto import DEV_KEYS, DEV_MNEMONIC, DEV_PATH
from . import patches as evm_genesis

# Balance of each development account in hardhat and anvil.
_BALANCE = 10_000 * ETHER

# https://github.com/Arachnid/deterministic-deployment-proxy: forge's scripts deploy through it,
# and anvil's and geth's development chains have it. The input is a salt of one word and the
# init code of the contract to create.
CREATE2_DEPLOYER = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
_DEPLOYER_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)


class EvmDevAccounts(DevAccounts):
    """Ten accounts with ether, and the CREATE2 deployer."""

    def app_state(self, settings: Settings) -> bytes:
        balances = {key.address: _BALANCE for key in DEV_KEYS}
        return evm_genesis.app_state(balances, {CREATE2_DEPLOYER: _DEPLOYER_CODE})

    def log(self, settings: Settings, genesis: Genesis) -> None:
        accounts = evm_genesis.accounts(genesis.app_state)
        if not all(key.address in accounts for key in DEV_KEYS):
            log.warning(
                "NODERPC_DEV: expected a chain with the development accounts in its genesis,"
                " got one without them, so they may have no funds; set NODERPC_DATABASE to a"
                " new file to start a chain that has them"
            )
        # Most hosts only show log lines from the level warning on.
        accounts_log.warning(
            "NODERPC_DEV: the keys of these accounts are public; never send real funds to"
            " them\n%s",
            "\n".join(_lines()),
        )

    def banner(self, settings: Settings, home: Path, curl: str) -> Iterator[tuple[str, str]]:
        yield "accounts", "their keys are public: never send real funds to them"
        for number, key in enumerate(DEV_KEYS):
            yield "accounts", f"({number}) {to_checksum(key.address)} ({_BALANCE // ETHER} ETH)"
        for number, key in enumerate(DEV_KEYS):
            yield "private keys", f"({number}) 0x{key.secret.hex()}"
        yield "mnemonic", DEV_MNEMONIC
        yield "derivation", f"{DEV_PATH}0 to {len(DEV_KEYS) - 1}"


def _lines() -> Iterator[str]:
    """Yield a line with address and private key for each account."""
    for key in DEV_KEYS:
        yield f"{to_checksum(key.address)} 0x{key.secret.hex()}"
