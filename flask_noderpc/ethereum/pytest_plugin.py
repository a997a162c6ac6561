"""pytest fixtures: ``noderpc_evm`` is a chain with an EVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# Every pytest run in the environment loads this file, so other modules are imported only when
# needed.
if TYPE_CHECKING:
    from .testing import EvmNode


@pytest.fixture(scope="session")
def noderpc_evm_session() -> Iterator[EvmNode]:
    """A chain with an EVM for all tests: its processes take half a second to start."""
    from .testing import run_evm_node

    with run_evm_node() as node:
        yield node


@pytest.fixture
def noderpc_evm(noderpc_evm_session: EvmNode) -> Iterator[EvmNode]:
    """A chain with an EVM: ``url``, ``accounts``, ``mine()``, ``snapshot()``.

    Each test starts with the same state: what a test does to the chain is reverted after it.
    """
    with noderpc_evm_session.snapshot():
        yield noderpc_evm_session
