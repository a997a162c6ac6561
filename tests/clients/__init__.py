"""Other programs that tests drive."""

from __future__ import annotations

from pathlib import Path

ETHEREUM_SCRIPTS = Path(__file__).parent / "ethereum"
# Not by its script for all platforms: whoever ends that leaves anvil running.
_PACKAGE = "node_modules/@foundry-rs/anvil-linux-amd64"
ANVIL = ETHEREUM_SCRIPTS / _PACKAGE / "bin" / "anvil"
