"""The recorded chain after its last block."""

from __future__ import annotations

import pytest

from tests.chain.conftest import clock, open_chain, unstarted

from .playing import Chain, recorded

__all__ = ["clock", "open_chain", "played", "unstarted"]


@pytest.fixture(scope="session")
def played() -> Chain:
    chain = Chain(recorded())
    for block in recorded()["blocks"]:
        chain.execute(block)
    return chain
