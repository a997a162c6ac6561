from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from flask_noderpc.testing import Node, run_node

from ..helpers.websocket import WebSocketClient

Connect = Callable[..., WebSocketClient]


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        yield running


@pytest.fixture
def start() -> Iterator[Callable[..., Node]]:
    """Starts nodes with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(run_node(**settings))


@pytest.fixture
def connect(node: Node) -> Iterator[Connect]:
    """Connects clients to the test's node, or to another."""
    made: list[WebSocketClient] = []

    def make(to: Node = node, **options: Any) -> WebSocketClient:
        made.append(WebSocketClient(to.url, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()
