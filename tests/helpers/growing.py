"""Chains in memory: growth behind a backend, and other views of them."""

from __future__ import annotations

from flask_noderpc import ChainBackend, CommittedBlock, MemoryChain


def grow(backend: ChainBackend, *blocks: CommittedBlock) -> None:
    """Append blocks to the chain."""
    assert isinstance(backend.reads, MemoryChain)
    backend.reads.append_block(*blocks)


class View(MemoryChain):
    """A view of a backend's chain, which grows with it; subclasses change some reads."""

    def __init__(self, inner: ChainBackend) -> None:
        assert isinstance(inner.reads, MemoryChain)
        self.__dict__.update(inner.reads.__dict__)
        # Blocks keep their places if a subclass has another lowest height.
        self._at = inner.reads._at  # type: ignore[method-assign]
