"""Namespaces of the EVM layer, known without the packages of the extra."""

from __future__ import annotations

from ..errors import InvalidSetting
from ..settings import Settings
from .settings import EthereumSettings

NAMESPACES = ("eth", "web3", "net", "txpool", "debug", "trace")
DEV_NAMESPACES = ("evm", "anvil", "hardhat", "personal")
"""Further namespaces of development chains."""


def check_names(settings: Settings) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for a namespace that is not known."""
    known = (*NAMESPACES, *DEV_NAMESPACES)
    for name in settings.of(EthereumSettings).evm_api:
        if name not in known:
            raise InvalidSetting(
                f"NODERPC_EVM_API: no namespace {name!r}; known are {', '.join(known)}"
            )
