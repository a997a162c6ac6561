"""Namespaces of Ethereum's JSON-RPC, and its lines in the banner of ``noderpc start``.

This module imports no package of the extra ``evm``, which may not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from ..backends import open_store, stored_identity
from ..errors import InvalidSetting
from ..settings import Settings
from .settings import CHAIN_ID, EthereumSettings

if TYPE_CHECKING:
    from .application.state import EvmHead

NAMESPACES = ("eth", "net", "web3", "txpool", "debug", "trace", "erigon", "ots", "noderpc")
DEV_NAMESPACES = ("evm", "anvil", "hardhat", "personal", "tenderly")
"""Additional namespaces of development chains."""


def check_names(settings: Settings) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an unknown namespace."""
    known = (*NAMESPACES, *DEV_NAMESPACES)
    for name in settings.of(EthereumSettings).evm_api:
        if name not in known:
            raise InvalidSetting(
                f"NODERPC_EVM_API: expected any of {', '.join(known)}, got {name!r}"
            )


def about(settings: Settings, path: str) -> str:
    """Return a line of the banner about the chain in a store: its chain ID, which wallets need,
    and the fee and the limit of a development chain's next block."""
    latest, given = _latest(path), settings.of(EthereumSettings).evm_chain_id
    shown = f"EVM chain id {(latest and latest.chain_id) or given or CHAIN_ID}"
    if latest and settings.dev:
        shown += f", base fee {latest.next_base_fee} wei, gas limit {latest.gas_limit}"
    return shown


def _latest(path: str) -> EvmHead | None:
    """Return the record of a store's latest block, or ``None``."""
    if not stored_identity(path):
        return None
    # Imported here, as only the banner of a running node reads the store in this process.
    from .application.state import head

    with closing(open_store(path, read_only=True)) as store:
        return head(store.app_state)


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
