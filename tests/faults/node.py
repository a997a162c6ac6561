"""A node in a separate process, for tests that stop and kill it; run with -m."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.testing.node import app_for, serve

from .processes import EVM_GENESIS, application_of


def main(
    database: str, interval: str, lease: str, empty: str, application: str, retain: str
) -> None:
    """Print the address, and serve until a line or the end of the input comes."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    schedule = BlockSchedule(
        float(interval), empty_blocks=empty == "empty", lease_s=float(lease)
    )
    chain = EmbeddedChain(
        database,
        application=application_of(application, Path(database)),
        app_state=EVM_GENESIS if application == "evm" else b"",
        schedule=schedule,
        retain_blocks=int(retain) or None,
    )
    chain.start()
    with serve(app_for(chain, json_rpc_enable=application == "evm")) as url:
        print(url, os.getpid(), flush=True)
        sys.stdin.readline()
    chain.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
