"""The pytest plugin: ``noderpc_chain`` to drive, ``noderpc_url`` to talk to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# Every pytest run in the environment loads this file, so it loads nothing more.
if TYPE_CHECKING:
    from ..chain.embedded import EmbeddedChain
    from .node import Node


@pytest.fixture
def noderpc_node() -> Iterator[Node]:
    """A node of its own for this test: ``url``, ``chain``, ``clock``, ``produce()``."""
    from .node import run_node

    with run_node() as node:
        yield node


@pytest.fixture
def noderpc_chain(noderpc_node: Node) -> EmbeddedChain:
    """The chain of this test's node; ``produce()`` makes a block."""
    return noderpc_node.chain


@pytest.fixture
def noderpc_url(noderpc_node: Node) -> str:
    """The base URL of this test's node."""
    return noderpc_node.url
