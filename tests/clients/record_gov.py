"""Record x/gov of the Cosmos SDK.

``python -m tests.clients.record_gov PROGRAM``; ``go build`` in tests/clients/sdk makes the
program, and its record_gov.go defines the recorded chain. It has the modules of
:mod:`.record_grants`, and x/gov in addition. The recording has the same form.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

from .record_modules import RECORDING as MODULES

RECORDING = MODULES.with_name("gov_0.53.8.json.gz")


def main(program: Path) -> None:
    """Write what the program prints."""
    found = subprocess.run([program, "-record-gov"], check=True, stdout=subprocess.PIPE)
    RECORDING.write_bytes(gzip.compress(found.stdout, mtime=0))
    print(f"{len(found.stdout)} bytes, {RECORDING.stat().st_size} compressed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
