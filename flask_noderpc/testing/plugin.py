"""pytest plugin: ``noderpc_chain``, ``noderpc_url``, ``noderpc_node`` and fixtures of features.

``noderpc_cassette`` replays a node's responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Every pytest run in the environment loads this file, so other modules are imported only when
# needed.
if TYPE_CHECKING:
    from ..chain.embedded import EmbeddedChain
    from .node import Node

# pytest loads these as well: the fixtures of a feature are in its ``pytest_plugin.py``.
pytest_plugins = [
    f"flask_noderpc.{each.parent.name}.pytest_plugin"
    for each in sorted(Path(__file__).parents[1].glob("*/pytest_plugin.py"))
]


@pytest.fixture
def noderpc_settings() -> dict[str, Any]:
    """The settings of this test's node, such as ``dialect``; override it to change them."""
    return {}


@pytest.fixture
def noderpc_node(noderpc_settings: dict[str, Any]) -> Iterator[Node]:
    """A separate node for this test: ``url``, ``chain``, ``clock``, ``produce()``."""
    from .node import run_node

    with run_node(**noderpc_settings) as node:
        yield node


@pytest.fixture
def noderpc_chain(noderpc_node: Node) -> EmbeddedChain:
    """The chain of this test's node; ``produce()`` produces a block."""
    return noderpc_node.chain


@pytest.fixture
def noderpc_url(noderpc_node: Node) -> str:
    """The base URL of this test's node."""
    return noderpc_node.url


@pytest.fixture
def noderpc_cassette(request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Serve a file next to the test, ``noderpc_cassette("file.json", upstream="http://…")``;
    return its URL.

    If the file does not exist, the upstream's responses are recorded.
    """
    from .cassette import play

    with ExitStack() as stack:

        def start(name: str, upstream: str = "") -> str:
            return stack.enter_context(play(request.path.parent / name, upstream))

        yield start
