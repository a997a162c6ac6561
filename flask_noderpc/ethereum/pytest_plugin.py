"""pytest fixtures: ``noderpc_evm`` is a running node with an EVM chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# Every pytest run in the environment loads this file, so it imports the package only when a
# fixture is used.
if TYPE_CHECKING:
    from .testing import EvmNode


@pytest.fixture(scope="session")
def noderpc_evm_session() -> Iterator[EvmNode]:
    """Node with an EVM chain for all tests, as it takes half a second to start."""
    from .testing import run_evm_node

    with run_evm_node() as node:
        yield node


@pytest.fixture
def noderpc_evm(noderpc_evm_session: EvmNode) -> Iterator[EvmNode]:
    """Node with an EVM chain: ``url``, ``accounts``, ``mine()``, ``snapshot()``.

    Each test starts with the same state, as the chain is reverted after it.
    """
    with noderpc_evm_session.snapshot():
        yield noderpc_evm_session
