"""pytest plugin with the fixtures ``noderpc_chain``, ``noderpc_url``, ``noderpc_node``,
``noderpc_cassette``, and those of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Import other modules only when they are needed, because every run of pytest in the
# environment loads this file.
if TYPE_CHECKING:
    from ..chain.embedded import EmbeddedChain
    from .node import Node

# pytest also loads these plugins: a feature has its fixtures in its ``pytest_plugin.py``.
pytest_plugins = [
    f"flask_noderpc.{each.parent.name}.pytest_plugin"
    for each in sorted(Path(__file__).parents[1].glob("*/pytest_plugin.py"))
]


@pytest.fixture
def noderpc_settings() -> dict[str, Any]:
    """Settings of this test's node, such as ``dialect``; override this fixture to change
    them."""
    return {}


@pytest.fixture
def noderpc_node(noderpc_settings: dict[str, Any]) -> Iterator[Node]:
    """A separate node for this test, with ``url``, ``chain``, ``clock`` and ``produce()``."""
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
    """Function that serves a cassette file next to the test, and returns its URL:
    ``noderpc_cassette("file.json", upstream="http://…")``.

    If the file does not exist, the upstream's responses are recorded.
    """
    from .cassette import play

    with ExitStack() as stack:

        def start(name: str, upstream: str = "") -> str:
            return stack.enter_context(play(request.path.parent / name, upstream))

        yield start
