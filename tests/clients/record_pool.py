"""Record x/protocolpool, x/upgrade, x/params and the service tx of the Cosmos SDK.

``python -m tests.clients.record_pool PROGRAM``; ``go build -tags upgrade`` in tests/clients/sdk
makes the program, and its record_pool.go defines the recorded chain. It has the modules of
:mod:`.record_grants`, and these in addition. The recording has the same form, without
``imported``, ``refused`` and ``gas``, and with ``governor``: the account that executes the
messages of x/protocolpool that are governance's on other chains. Two recordings differ in the
order of interfaces, of their implementations and of subspaces, which the SDK lists in no order.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

from .record_modules import RECORDING as MODULES

RECORDING = MODULES.with_name("pool_0.53.8.json.gz")


def main(program: Path) -> None:
    """Write what the program prints."""
    found = subprocess.run([program, "-record-pool"], check=True, stdout=subprocess.PIPE)
    RECORDING.write_bytes(gzip.compress(found.stdout, mtime=0))
    print(f"{len(found.stdout)} bytes, {RECORDING.stat().st_size} compressed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
