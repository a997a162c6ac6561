"""Run the example app in a separate process, behind gunicorn, with the chain that web3.py's
tests expect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..helpers.http import get
from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until

ROOT = Path(__file__).parents[2]
# Options as in docs/events.rst.
GUNICORN = ("--threads", "50", "--graceful-timeout", "5", "example_app:create_app()")
SETTINGS = {
    "APPLICATION": "evm",
    "DEV": "true",
    # Tests look at pending transactions, and wait for their blocks.
    "BLOCK_INTERVAL": "1.0",
    # The tests' transactions have this chain ID.
    "EVM_CHAIN_ID": "131277322940537",
}


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a node in a folder; yield its base URL."""
    port = free_port()
    settings = {**SETTINGS, "DATABASE": str(folder / "noderpc.db")}
    own = {f"FLASK_NODERPC_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", *GUNICORN]
    with (folder / "node.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **own}, stdout=log, stderr=log
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for_a_block(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _wait_for_a_block(url: str, process: subprocess.Popen[bytes]) -> None:
    def has_block() -> bool:
        assert process.poll() is None, "the node ended: see node.log"
        with suppress(OSError):
            return get(url, "/block?height=1").status == 200
        return False

    until(has_block, "a block: see node.log")
