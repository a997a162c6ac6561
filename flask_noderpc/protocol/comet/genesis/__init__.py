"""Genesis documents of CometBFT 0.34 to 1.0, and of the Cosmos SDK."""

from __future__ import annotations

from .document import COMETBFT, SDK, Reading, genesis_document, read, read_genesis

__all__ = ["COMETBFT", "SDK", "Reading", "genesis_document", "read", "read_genesis"]
