"""pytest plugin: ``noderpc_chain``, ``noderpc_url``, ``noderpc_node`` and chains with accounts.

``noderpc_evm`` is a chain with an EVM, ``noderpc_bank`` one like the Cosmos SDK's.
``noderpc_cassette`` replays what a node answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

# Every pytest run in the environment loads this file, so it loads nothing more.
if TYPE_CHECKING:
    from ..chain.embedded import EmbeddedChain
    from ..cosmos.testing import BankNode
    from ..ethereum.testing import EvmNode
    from .node import Node


@pytest.fixture
def noderpc_settings() -> dict[str, Any]:
    """The settings of this test's node, such as ``dialect``; to be overridden."""
    return {}


@pytest.fixture
def noderpc_node(noderpc_settings: dict[str, Any]) -> Iterator[Node]:
    """A node of its own for this test: ``url``, ``chain``, ``clock``, ``produce()``."""
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
    """Serve a file beside the test, ``noderpc_cassette("file.json", upstream="http://…")``;
    return its URL.

    What the upstream answers is recorded while there is no file.
    """
    from .cassette import play

    with ExitStack() as stack:

        def start(name: str, upstream: str = "") -> str:
            return stack.enter_context(play(request.path.parent / name, upstream))

        yield start


@pytest.fixture(scope="session")
def noderpc_evm_session() -> Iterator[EvmNode]:
    """A chain with an EVM for all tests: its processes take half a second to begin."""
    from ..ethereum.testing import run_evm_node

    with run_evm_node() as node:
        yield node


@pytest.fixture
def noderpc_evm(noderpc_evm_session: EvmNode) -> Iterator[EvmNode]:
    """A chain with an EVM: ``url``, ``accounts``, ``mine()``, ``snapshot()``.

    What a test does to it has never happened for the next one.
    """
    with noderpc_evm_session.snapshot():
        yield noderpc_evm_session


@pytest.fixture(scope="session")
def noderpc_bank_session() -> Iterator[BankNode]:
    """A chain like the Cosmos SDK's for all tests."""
    from ..cosmos.testing import run_bank_node

    with run_bank_node() as node:
        yield node


@pytest.fixture
def noderpc_bank(noderpc_bank_session: BankNode) -> Iterator[BankNode]:
    """A chain like the Cosmos SDK's: ``url``, ``mnemonic``, ``accounts``, ``mine()``.

    What a test does to it has never happened for the next one.
    """
    with noderpc_bank_session.snapshot():
        yield noderpc_bank_session
