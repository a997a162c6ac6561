"""The recorded chain after its last block."""

from __future__ import annotations

import pytest

from .playing import Chain, recorded


@pytest.fixture(scope="session")
def played() -> Chain:
    chain = Chain(recorded())
    for block in recorded()["blocks"]:
        chain.execute(block)
    return chain
