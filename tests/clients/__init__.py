"""Programs that tests drive."""

from __future__ import annotations

from pathlib import Path

ETHEREUM_SCRIPTS = Path(__file__).parent / "ethereum"
# Run anvil's binary itself: its script for all platforms leaves anvil running when it is
# killed.
_PACKAGE = "node_modules/@foundry-rs/anvil-linux-amd64"
ANVIL = ETHEREUM_SCRIPTS / _PACKAGE / "bin" / "anvil"
