"""Namespaces of Ethereum's JSON-RPC, and its lines in the banner of ``noderpc start``.

This module imports no package of the extra ``evm``, which may not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..backends import open_store, stored_identity
from ..errors import InvalidSetting
from ..feature import application_kinds
from ..settings import Settings
from .settings import CHAIN_ID, EthereumSettings

if TYPE_CHECKING:
    from .application.state import EvmHead, ForkPoint

NAMESPACES = ("eth", "net", "web3", "txpool", "debug", "trace", "erigon", "ots", "noderpc")
DEV_NAMESPACES = ("evm", "anvil", "hardhat", "personal", "tenderly")
"""Additional namespaces of development chains."""


def check_fork(settings: Settings) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for a fork of another chain that would
    not be used, or has no URL of a node."""
    urls = settings.of(EthereumSettings).fork_url
    if urls and not (settings.application == "evm" and settings.dev):
        raise InvalidSetting(
            "NODERPC_FORK_URL: expected NODERPC_APPLICATION = 'evm' and NODERPC_DEV = True, as"
            " only a development chain can be forked from another one, got"
            f" {settings.application!r} and {settings.dev}; set both (noderpc start: --dev)"
        )
    for url in urls:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https", "tcp") or not parts.hostname:
            raise InvalidSetting(
                "NODERPC_FORK_URL: expected http://host:port or https://host, got another URL"
            )


def check_names(settings: Settings) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an unknown namespace, and the error
    of :func:`check_fork`."""
    check_fork(settings)
    known = (*NAMESPACES, *DEV_NAMESPACES)
    for name in settings.of(EthereumSettings).evm_api:
        if name not in known:
            raise InvalidSetting(
                f"NODERPC_EVM_API: expected any of {', '.join(known)}, got {name!r}"
            )


def about(settings: Settings, path: str) -> str:
    """Return a line of the banner about the chain in a store: its chain ID, which wallets need,
    and the fee and the limit of a development chain's next block."""
    (latest, point), given = _latest(path), settings.of(EthereumSettings).evm_chain_id
    shown = f"EVM chain id {(latest and latest.chain_id) or given or CHAIN_ID}"
    kind = application_kinds().get(settings.application)
    if kind and kind.txs:
        shown += " (no Ethereum transactions)"
    if latest and settings.dev:
        shown += f", base fee {latest.next_base_fee} wei, gas limit {latest.gas_limit}"
    if point:
        proven = "proven" if point.is_proven else "not proven"
        shown += f", forked after block {point.number}, whose values are {proven}"
    return shown


def _latest(path: str) -> tuple[EvmHead | None, ForkPoint | None]:
    """Return the records of a store's latest block and of its fork; each may be ``None``."""
    if not stored_identity(path):
        return None, None
    # Imported here, as only the banner of a running node reads the store in this process.
    from .application.state import fork_point, head

    with closing(open_store(path, read_only=True)) as store:
        return head(store.app_state), fork_point(store.app_state)


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
