"""Record a chain of the Cosmos SDK for the tests that play it back.

``python -m tests.clients.record_sdk PROGRAM``; ``go build`` in tests/clients/sdk makes the
program. Each recording is of a new chain, and replaces the last one completely.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from ..companion.recording import Recording, recorded
from ..differential.sides import Side
from ..helpers.require import require_program
from ..helpers.until import until
from .sdk_chain import (
    RECORDING,
    bank,
    followed,
    imported,
    reply,
    sdk_chain,
    search_paths,
    stored_paths,
)

# Two of the chunks in which a companion reads blocks.
BLOCKS = 28
FORWARDED = ("/abci_info", "/net_info", "/num_unconfirmed_txs")


def main(program: Path) -> None:
    """Make a chain, wait until it stops, and record all responses that the tests need."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    node = require_program("node")
    recording = Recording()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        with sdk_chain(program, home) as chain:
            bank(node, chain.url, "send")
            last = max(chain.height() + 2, BLOCKS)
            until(lambda: chain.height() >= last, f"{last} blocks")
        with sdk_chain(program, home, "-commit", "10h") as chain:
            until(lambda: _stands_still(chain), "no round begins")
            height = chain.height()
            for path in [*stored_paths(chain, height), *search_paths(height), *FORWARDED]:
                found = reply(chain.url, path)
                recording.paths[path] = found.status, found.body
            recording.printed = bank(node, chain.url, "read")
            with recorded(recording, chain.url) as url:
                _ask(node, url, height, recording, Path(scratch))
            assert chain.height() == height, "the chain went on"
    recording.write(RECORDING)
    counts = f"{height} blocks, {len(recording.calls)} calls, {len(recording.paths)} paths"
    print(f"{counts}: {RECORDING.stat().st_size} bytes")


def _stands_still(chain: Side) -> bool:
    """Return true if the node waits for the time of the next block."""
    state = chain.call("consensus_state")["round_state"]["height/round/step"]
    return bool(state == f"{chain.height() + 1}/0/1")


def _ask(node: str, url: str, height: int, recording: Recording, scratch: Path) -> None:
    """Let an import and a companion send the requests that they send in the tests."""
    imported(url, scratch / "imported.db", height - 1)
    with followed(url, scratch / "followed.db", height) as own:
        for path in recording.paths:
            reply(own, path)
        bank(node, own, "read")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
