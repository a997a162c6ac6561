"""Namespaces of Ethereum's JSON-RPC, and its lines in the banner of ``noderpc start``.

This module imports no package of the extra ``evm``, which may not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import InvalidSetting
from ..settings import Settings
from .settings import EthereumSettings

NAMESPACES = ("eth", "net", "web3", "txpool", "debug", "trace", "erigon", "ots", "noderpc")
DEV_NAMESPACES = ("evm", "anvil", "hardhat", "personal")
"""Additional namespaces of development chains."""


def check_names(settings: Settings) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an unknown namespace."""
    known = (*NAMESPACES, *DEV_NAMESPACES)
    for name in settings.of(EthereumSettings).evm_api:
        if name not in known:
            raise InvalidSetting(
                f"NODERPC_EVM_API: expected any of {', '.join(known)}, got {name!r}"
            )


def about(settings: Settings) -> str:
    """Return a line of the banner with the chain ID, which wallets need."""
    return f"EVM chain id {settings.of(EthereumSettings).evm_chain_id}"


def clients(
    settings: Settings, url: str, given: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield names of clients with the code to connect them, or the setting to enable first.

    ``given`` returns the text that tells how to set a setting.
    """
    if url:
        yield "web3.py", f'Web3(Web3.HTTPProvider("{url}"))'
        yield "ethers", f'new ethers.JsonRpcProvider("{url}")'
        yield "viem", f'createPublicClient({{ transport: http("{url}") }})'
        return
    is_enabled = settings.of(EthereumSettings).json_rpc_enable
    name = "json_rpc_address" if is_enabled else "json_rpc_enable"
    yield "Ethereum", f"web3.py, ethers and viem need {given(name)}"
