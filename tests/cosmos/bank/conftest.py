from __future__ import annotations

from tests.chain.conftest import chain, clock, open_chain, unstarted

__all__ = ["chain", "clock", "open_chain", "unstarted"]
