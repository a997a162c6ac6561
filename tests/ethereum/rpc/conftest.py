from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.websocket import WebSocketClient

from .chain import ethereum_chain

Connect = Callable[[], WebSocketClient]
Serve = Callable[..., Connect]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    """A chain with the three blocks of :mod:`.chain`, to which tests add."""
    made = ethereum_chain(tmp_path)
    yield made
    made.close()


@pytest.fixture
def serving(chain: EmbeddedChain) -> Iterator[Serve]:
    """Return a function that serves the chain with settings, and connects clients to its
    websocket."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Connect:
            app = app_for(chain, **{"json_rpc_enable": True, **settings})
            url = stack.enter_context(serve(app))

            def connect() -> WebSocketClient:
                client = WebSocketClient(url, path="/evm/ws")
                stack.callback(client.close)
                return client

            return connect

        yield start


@pytest.fixture
def client(serving: Serve) -> WebSocketClient:
    """A client of a node with the default settings."""
    return serving()()
