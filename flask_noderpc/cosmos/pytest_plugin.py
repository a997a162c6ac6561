"""pytest fixtures: ``noderpc_bank`` is a running node with a chain like the Cosmos SDK's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# Every pytest run in the environment loads this file, so it imports the package only when a
# fixture is used.
if TYPE_CHECKING:
    from .testing import BankNode


@pytest.fixture(scope="session")
def noderpc_bank_session() -> Iterator[BankNode]:
    """Node with a chain like the Cosmos SDK's, for all tests."""
    from .testing import run_bank_node

    with run_bank_node() as node:
        yield node


@pytest.fixture
def noderpc_bank(noderpc_bank_session: BankNode) -> Iterator[BankNode]:
    """Node with a chain like the Cosmos SDK's: ``url``, ``mnemonic``, ``accounts``,
    ``mine()``.

    The chain is reverted after each test.
    """
    with noderpc_bank_session.snapshot():
        yield noderpc_bank_session
