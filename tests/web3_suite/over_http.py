"""Run web3.py's tests over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from web3 import AsyncWeb3
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    EthModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
    GoEthereumDebugModuleTest,
    GoEthereumTxPoolModuleTest,
    NetModuleTest,
    Web3ModuleTest,
)
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest

from .version import OurVersion


@pytest.fixture(scope="module")
async def async_w3(url: str) -> AsyncIterator[Any]:
    w3 = AsyncWeb3(AsyncWeb3.AsyncHTTPProvider(url))
    yield w3
    await w3.provider.disconnect()


class TestEth(EthModuleTest):
    pass


class TestAsyncEth(AsyncEthModuleTest):
    pass


class TestWeb3(OurVersion, Web3ModuleTest):  # type: ignore[misc]  # theirs only raises
    pass


class TestAsyncWeb3(OurVersion, AsyncWeb3ModuleTest):  # type: ignore[misc]  # theirs only raises
    pass


class TestNet(NetModuleTest):
    pass


class TestAsyncNet(AsyncNetModuleTest):
    pass


class TestTxPool(GoEthereumTxPoolModuleTest):
    pass


class TestAsyncTxPool(GoEthereumAsyncTxPoolModuleTest):
    pass


class TestDebug(GoEthereumDebugModuleTest):
    pass


class TestAsyncDebug(GoEthereumAsyncDebugModuleTest):
    pass
