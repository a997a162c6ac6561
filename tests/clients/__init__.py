"""Programs of others that tests drive."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

ETHEREUM_SCRIPTS = Path(__file__).parent / "ethereum"
# Not by its script for all platforms: whoever ends that leaves anvil running.
_PACKAGE = "node_modules/@foundry-rs/anvil-linux-amd64"
ANVIL = ETHEREUM_SCRIPTS / _PACKAGE / "bin" / "anvil"


def require(program: str) -> str:
    """Its path; without it the test is skipped, or fails where no client may be missing."""
    path = shutil.which(program)
    if path is None:
        do_without(f"{program} is not installed")
    return path


def do_without(reason: str) -> NoReturn:
    """Skip the test, or fail it where no client may be missing."""
    if os.environ.get("NODERPC_REQUIRE_CLIENTS") == "1":
        pytest.fail(f"{reason}, and NODERPC_REQUIRE_CLIENTS=1")
    pytest.skip(reason)
