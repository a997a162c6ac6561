"""Lines of ``noderpc start`` about Ethereum's JSON-RPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..settings import Settings
from .settings import EthereumSettings


def about(settings: Settings) -> str:
    """Return the chain id that wallets ask for."""
    return f"EVM chain id {settings.of(EthereumSettings).evm_chain_id}"


def clients(
    settings: Settings, url: str, given: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield how web3.py, ethers and viem connect, or the setting that they need."""
    if url:
        yield "web3.py", f'Web3(Web3.HTTPProvider("{url}"))'
        yield "ethers", f'new ethers.JsonRpcProvider("{url}")'
        yield "viem", f'createPublicClient({{ transport: http("{url}") }})'
        return
    is_enabled = settings.of(EthereumSettings).json_rpc_enable
    name = "json_rpc_address" if is_enabled else "json_rpc_enable"
    yield "Ethereum", f"web3.py, ethers and viem need {given(name)}"
