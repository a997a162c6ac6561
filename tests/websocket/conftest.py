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
    """Return a function that starts nodes with given settings."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(run_node(**settings))


@pytest.fixture
def connect(node: Node) -> Iterator[Connect]:
    """Return a function that connects clients to the test's node, or to another one."""
    made: list[WebSocketClient] = []

    def make(to: Node = node, **options: Any) -> WebSocketClient:
        made.append(WebSocketClient(to.url, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()
