"""Run web3.py's tests over the websocket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from web3 import AsyncWeb3, WebSocketProvider
from web3._utils.module_testing import AsyncEthModuleTest, AsyncNetModuleTest
from web3._utils.module_testing.persistent_connection_provider import (
    PersistentConnectionProviderTest,
)
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest

from .version import OurVersion


@pytest.fixture
async def async_w3(url: str) -> AsyncIterator[Any]:
    async with AsyncWeb3(WebSocketProvider(f"{url}/ws".replace("http", "ws"))) as w3:
        yield w3


class TestAsyncEth(AsyncEthModuleTest):
    pass


class TestAsyncWeb3(OurVersion, AsyncWeb3ModuleTest):  # type: ignore[misc]  # theirs only raises
    pass


class TestAsyncNet(AsyncNetModuleTest):
    pass


class TestConnection(PersistentConnectionProviderTest):
    pass
